"""Every address of the site, by app."""

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from llmeval_site import views
from llmeval_site.dashboard import dashboard
from llmeval_site.health import healthz, readyz

admin.site.site_header = admin.site.site_title = "LLM-Eval"
admin.site.index_title = "Curators' desk"

handler400 = "llmeval_site.views.bad_request"
handler403 = "llmeval_site.views.forbidden"
handler404 = "llmeval_site.views.not_found"
handler500 = "llmeval_site.views.broken"

urlpatterns = [
    path("", dashboard, name="dashboard"),
    path("search/", views.search, name="search"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("account/", views.account, name="account"),
    path("hub/", include("hub.urls")),
    path("", include("runs.urls")),
    path("", include("preferences.urls")),
    path("review/", include("review.urls")),
    path("api/v1/", include("llmeval_site.api_urls")),
    path("favicon.ico", views.favicon),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("admin/", admin.site.urls),
]
if settings.DEBUG:
    urlpatterns.append(path("styleguide/", views.styleguide, name="styleguide"))

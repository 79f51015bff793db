"""The URLs of the site. `middleware/health_checks.py` responds to /healthz and /readyz."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path

from llmeval_site.accounts.sign_in import SignInView, SignOutView, sign_in_to_admin
from llmeval_site.accounts.views import account
from llmeval_site.dashboard import dashboard
from llmeval_site.metrics import metrics
from llmeval_site.pages.icon import favicon
from llmeval_site.pages.manual import manual
from llmeval_site.pages.search import search
from llmeval_site.pages.styleguide import styleguide
from llmeval_site.teams import views as team_views
from llmeval_site.webhooks import views as webhook_views

admin.autodiscover()
admin.site.site_header = admin.site.site_title = "LLM-Eval"
admin.site.index_title = "Administration"

handler400 = "llmeval_site.pages.errors.bad_request"
handler403 = "llmeval_site.pages.errors.forbidden"
handler404 = "llmeval_site.pages.errors.not_found"
handler500 = "llmeval_site.pages.errors.server_error"

urlpatterns = [
    path("", dashboard, name="dashboard"),
    path("search/", search, name="search"),
    path("login/", SignInView.as_view(), name="login"),
    path("password/", include("llmeval_site.accounts.passwords")),
    path("logout/", SignOutView.as_view(), name="logout"),
    path("openid/", include("llmeval_site.accounts.openid.views")),
    path("account/", account, name="account"),
    path("account/webhooks/", webhook_views.webhooks, name="webhooks"),
    path("account/webhooks/<int:pk>/", webhook_views.webhook, name="webhook"),
    path("teams/", team_views.teams, name="teams"),
    path("teams/<slug:team>/", team_views.team, name="team"),
    path("teams/<slug:team>/members/", team_views.add, name="team-add"),
    path("teams/<slug:team>/members/<str:username>/remove/", team_views.remove, name="team-remove"),
    path("teams/<slug:team>/members/<str:username>/promote/", team_views.promote, name="team-promote"),
    path("teams/<slug:team>/members/<str:username>/demote/", team_views.demote, name="team-demote"),
    path("hub/", include("hub.urls")),
    path("", include("runs.urls")),
    path("", include("preferences.urls")),
    path("review/", include("review.urls")),
    path("docs/", manual, name="manual"),
    path("docs/<path:path>", manual, name="manual"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include("llmeval_site.api_urls")),
    # Browsers request this path for pages that link to no icon, such as JSON.
    path("favicon.ico", favicon),
    path("admin/login/", sign_in_to_admin),
    path("admin/", admin.site.urls),
]
if settings.DEBUG:
    urlpatterns.append(path("styleguide/", styleguide, name="styleguide"))

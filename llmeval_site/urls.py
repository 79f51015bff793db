"""Every address of the site, by app."""

from django.contrib import admin
from django.urls import path

from llmeval_site.health import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("admin/", admin.site.urls),
]

"""Addresses of the hub's pages, under /hub/."""

from django.urls import path

from hub.web import upload_views, views

app_name = "hub"
urlpatterns = [
    path("", views.catalogue, name="catalogue"),
    path("upload/", upload_views.upload, name="upload"),
    path("upload/starters/<str:harness>/", upload_views.starter, name="starter"),
    path("upload/<uuid:pk>/", upload_views.draft, name="draft"),
    path("upload/<uuid:pk>/bundle", upload_views.draft_bundle, name="draft_bundle"),
    path("upload/<uuid:pk>/discard/", upload_views.discard, name="discard"),
    path("<slug:slug>/", views.environment, name="environment"),
    path("<slug:slug>/<str:version>/", views.environment, name="version"),
    path("<slug:slug>/<str:version>/bundle", views.bundle, name="bundle"),
    path("<slug:slug>/<str:version>/files/", views.files, name="files"),
    path("<slug:slug>/<str:version>/publish/", views.publish, name="publish"),
    path("<slug:slug>/<str:version>/gates/", views.gates, name="gates"),
    path("<slug:slug>/<str:version>/changes/", views.changes, name="changes"),
    path("<slug:slug>/<str:version>/defects/<path:case>/", views.defect, name="defect"),
    path("<slug:slug>/<str:version>/cases/<path:case>/", views.case, name="case"),
]

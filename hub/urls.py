"""Addresses of the hub's pages, under /hub/. Those of cases and results with data of runs are in runs/urls.py."""

from django.urls import path

from hub.web.views import cases, catalogue, curating, environments, files, uploads, versions

app_name = "hub"
urlpatterns = [
    path("", catalogue.catalogue, name="catalogue"),
    path("upload/", uploads.upload, name="upload"),
    path("upload/starters/<str:harness>/", uploads.starter, name="starter"),
    path("upload/<uuid:pk>/", uploads.draft, name="draft"),
    path("upload/<uuid:pk>/bundle", uploads.draft_bundle, name="draft_bundle"),
    path("upload/<uuid:pk>/discard/", uploads.discard, name="discard"),
    path("<slug:slug>/", environments.environment, name="environment"),
    path("<slug:slug>/<str:version>/", environments.environment, name="version"),
    path("<slug:slug>/<str:version>/certificate/", environments.certificate, name="certificate"),
    path("<slug:slug>/<str:version>/bundle", files.bundle, name="bundle"),
    path("<slug:slug>/<str:version>/files/", files.files, name="files"),
    path("<slug:slug>/<str:version>/file", files.file, name="file"),
    path("<slug:slug>/<str:version>/publish/", curating.publish, name="publish"),
    path("<slug:slug>/<str:version>/retire/", curating.retire, name="retire"),
    path("<slug:slug>/<str:version>/team/", curating.move, name="move"),
    path("<slug:slug>/<str:version>/gates/", curating.gates, name="gates"),
    path("<slug:slug>/<str:version>/changes/", versions.changes, name="changes"),
    path("<slug:slug>/<str:version>/defects/<path:case>/", cases.defect, name="defect"),
    path("<slug:slug>/<str:version>/cases/<path:case>/", cases.case, name="case"),
]

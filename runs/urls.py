"""Addresses of runs, responses, comparisons and models, at the root of the site."""

from django.urls import path

from runs.web import views

app_name = "runs"
urlpatterns = [
    path("runs/", views.runs, name="list"),
    path("runs/new/", views.new, name="new"),
    path("runs/past/<slug:slug>/", views.past, name="past"),
    path("runs/<int:pk>/", views.run, name="run"),
    path("runs/<int:pk>/progress/", views.progress, name="progress"),
    path("runs/<int:pk>/cancel/", views.cancel, name="cancel"),
    path("runs/<int:pk>/resume/", views.resume, name="resume"),
    path("runs/<int:pk>/report", views.report, name="report"),
    path("runs/<int:pk>/failures", views.failures, name="failures"),
    path("runs/<int:pk>/cases/<int:case>/", views.case, name="case"),
    path("responses/<int:pk>/", views.response, name="response"),
    path("responses/<int:pk>/raw", views.raw, name="raw"),
    path("compare/", views.compare, name="compare"),
    path("models/", views.models, name="models"),
    path("models/<path:name>/", views.model, name="model"),
]

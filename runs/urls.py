"""URLs of runs, responses, comparisons and models, at the root of the site."""

from django.urls import path

from runs.web.views import comparison, models, responses, runs

app_name = "runs"
urlpatterns = [
    path("runs/", runs.runs, name="list"),
    path("runs/new/", runs.new, name="new"),
    path("runs/past/<slug:slug>/", models.past_results, name="past_results"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/progress/", runs.progress, name="progress"),
    path("runs/<int:pk>/cancel/", runs.cancel, name="cancel"),
    path("runs/<int:pk>/resume/", runs.resume, name="resume"),
    path("runs/<int:pk>/report", runs.report, name="report"),
    path("runs/<int:pk>/failures", runs.failures, name="failures"),
    path("runs/<int:pk>/cases/<int:case>/", responses.case, name="case"),
    path("responses/<int:pk>/", responses.response, name="response"),
    path("responses/<int:pk>/raw", responses.raw, name="raw"),
    path("compare/", comparison.compare, name="compare"),
    path("models/", models.models, name="models"),
    path("models/<path:name>/", models.model, name="model"),
]

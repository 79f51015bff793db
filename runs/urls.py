"""URLs of runs, responses, comparisons and models, and of the pages of environments that show data of runs."""

from django.urls import path

from runs.web.views import cases, comparison, endpoints, environments, models, new, responses, runs, start

app_name = "runs"
urlpatterns = [
    path("runs/", runs.runs, name="list"),
    path("runs/new/", new.new, name="new"),
    path("runs/start/<slug:slug>/", start.start, name="start"),
    path("runs/best/", environments.best_results, name="best_results"),
    path("hub/<slug:slug>/<str:version>/cases/", environments.cases, name="environment_cases"),
    path("hub/<slug:slug>/<str:version>/results/", environments.results, name="environment_results"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/progress/", runs.progress, name="progress"),
    path("runs/<int:pk>/cancel/", runs.cancel, name="cancel"),
    path("runs/<int:pk>/resume/", runs.resume, name="resume"),
    path("runs/<int:pk>/rescore/", runs.rescore, name="rescore"),
    path("runs/<int:pk>/describe/", runs.describe, name="describe"),
    path("runs/<int:pk>/team/", runs.move, name="move"),
    path("runs/<int:pk>/delete/", runs.delete, name="delete"),
    path("runs/<int:pk>/report", runs.report, name="report"),
    path("runs/<int:pk>/failures", runs.failures, name="failures"),
    path("runs/<int:pk>/rollouts", runs.rollouts, name="rollouts"),
    path("runs/<int:pk>/slices/", cases.slices, name="slices"),
    path("runs/<int:pk>/cases/", cases.grid, name="grid"),
    path("runs/<int:pk>/cases/<int:case>/", responses.case, name="case"),
    path("responses/<int:pk>/", responses.response, name="response"),
    path("responses/<int:pk>/raw", responses.raw, name="raw"),
    path("compare/", comparison.compare, name="compare"),
    path("compare/failures", comparison.failures, name="compared_failures"),
    path("compare/cases/", comparison.cases, name="compared_cases"),
    path("compare/case/", comparison.case, name="compared_case"),
    path("endpoints/new/", endpoints.new, name="endpoint_new"),
    path("endpoints/<int:pk>/", endpoints.edit, name="endpoint_edit"),
    path("endpoints/<int:pk>/test/", endpoints.test, name="endpoint_test"),
    path("models/", models.models, name="models"),
    path("models/<path:name>/", models.model, name="model"),
]

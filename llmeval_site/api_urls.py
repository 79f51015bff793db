"""All REST URLs, under /api/v1/."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from hub.web import api as hub
from llmeval_site.teams import api as teams
from llmeval_site.webhooks import api as webhooks
from preferences.web import api as preferences
from review.web import api as review
from runs.web.api import batches, comparison, episodes, events, exports, models, responses, runs

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api-schema"), name="api-docs"),
    # environments
    path("environments/", hub.Environments.as_view(), name="api-environments"),
    path("environments/<slug:slug>/", hub.EnvironmentDetail.as_view(), name="api-environment"),
    path("environments/<slug:slug>/versions/<str:version>/", hub.VersionDetail.as_view(), name="api-version"),
    path("environments/<slug:slug>/versions/<str:version>/cases/", hub.Cases.as_view(), name="api-cases"),
    path("environments/<slug:slug>/versions/<str:version>/bundle", hub.BundleFile.as_view(), name="api-bundle"),
    # runs
    path("models/", models.ModelList.as_view(), name="api-models"),
    path("runs/", runs.RunList.as_view(), name="api-runs"),
    path("runs/<int:pk>/", runs.RunDetail.as_view(), name="api-run"),
    path("runs/<int:pk>/events", events.RunEvents.as_view(), name="api-run-events"),
    path("runs/<int:pk>/cancel", runs.RunCancel.as_view(), name="api-run-cancel"),
    path("runs/<int:pk>/rescore", runs.RunRescore.as_view(), name="api-run-rescore"),
    path("runs/<int:pk>/resume", runs.RunResume.as_view(), name="api-run-resume"),
    path("runs/<int:pk>/responses/", responses.ResponseList.as_view(), name="api-run-responses"),
    path("runs/<int:pk>/report", runs.RunReport.as_view(), name="api-run-report"),
    path("runs/<int:pk>/failures", exports.RunFailures.as_view(), name="api-run-failures"),
    path("runs/<int:pk>/rollouts", exports.RunRollouts.as_view(), name="api-run-rollouts"),
    # episodes for trainers
    path("episodes/", episodes.EpisodeList.as_view(), name="api-episodes"),
    path("episodes/export", exports.EpisodeExport.as_view(), name="api-episodes-export"),
    path("episodes/cases", batches.EpisodeCases.as_view(), name="api-episodes-cases"),
    path("episodes/batch", batches.EpisodeBatch.as_view(), name="api-episodes-batch"),
    path("score", batches.ConversationScores.as_view(), name="api-score"),
    path("episodes/<uuid:pk>/", episodes.EpisodeDetail.as_view(), name="api-episode"),
    path("episodes/<uuid:pk>/step", episodes.EpisodeStep.as_view(), name="api-episode-step"),
    path("episodes/<uuid:pk>/finish", episodes.EpisodeFinish.as_view(), name="api-episode-finish"),
    path("episodes/<uuid:pk>/turns/<int:turn>", episodes.EpisodeTurn.as_view(), name="api-episode-turn"),
    path("compare/", comparison.CompareRuns.as_view(), name="api-compare"),
    # teams
    path("teams/", teams.TeamList.as_view(), name="api-teams"),
    path("teams/<slug:team>/", teams.TeamDetail.as_view(), name="api-team"),
    path("teams/<slug:team>/members/", teams.MemberList.as_view(), name="api-team-members"),
    path("teams/<slug:team>/members/<str:username>/", teams.MemberDetail.as_view(), name="api-team-member"),
    # webhooks
    path("webhooks/", webhooks.WebhookList.as_view(), name="api-webhooks"),
    path("webhooks/<int:pk>/", webhooks.WebhookDetail.as_view(), name="api-webhook"),
    path("webhooks/<int:pk>/deliveries/", webhooks.DeliveryList.as_view(), name="api-webhook-deliveries"),
    # review and preferences
    path("pairs/next", review.PairNext.as_view(), name="api-pair-next"),
    path("pairs/<int:pk>/", review.PairDetail.as_view(), name="api-pair"),
    path("pairs/<int:pk>/decision", review.PairDecision.as_view(), name="api-pair-decision"),
    path("preferences/", preferences.Preferences.as_view(), name="api-preferences"),
    path("preferences/export", preferences.PreferencesExport.as_view(), name="api-preferences-export"),
    path("agreement/", preferences.AgreementFigures.as_view(), name="api-agreement"),
]

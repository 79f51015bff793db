"""Admin of review for curators: guidelines can be edited, assignments (with reasons for skipping) are read-only."""

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from hub.admin import CuratorAdmin
from hub.selectors import is_curator
from review.models import Assignment, Guideline
from runs.selectors import visible_runs


@admin.register(Guideline)
class GuidelineAdmin(CuratorAdmin):
    list_display = ["title", "active", "updated_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_curator(request.user)


@admin.register(Assignment)
class AssignmentAdmin(CuratorAdmin):
    list_display = ["pair", "reviewer", "state", "skip_reason", "started_at"]
    list_filter = ["state"]
    list_select_related = ["pair", "reviewer"]
    show_full_result_count = False
    search_fields = ["=reviewer__username", "=pair__pk", "=pair__case__external_id", "skip_reason"]
    search_help_text = (
        "User name of the reviewer, number of the pair or id of the case, each in full, or words of the skip reason."
    )
    fields = ["pair", "reviewer", "state", "skip_reason", "started_at", "finished_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Assignment]:
        runs = visible_runs(request.user, deleted=True).order_by().values("pk")
        return super().get_queryset(request).filter(pair__run__in=runs)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

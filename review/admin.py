"""Admin of review for curators: guidelines can be edited, assignments (with reasons for skipping) are read-only."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from preferences.admin import ForCurators
from review.models import Assignment, Guideline


@admin.register(Guideline)
class GuidelineAdmin(ForCurators):
    list_display = ["title", "active", "updated_at"]


@admin.register(Assignment)
class AssignmentAdmin(ForCurators):
    list_display = ["pair", "reviewer", "state", "skip_reason", "started_at"]
    list_filter = ["state"]
    list_select_related = ["pair", "reviewer"]
    fields = ["pair", "reviewer", "state", "skip_reason", "started_at", "finished_at"]

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

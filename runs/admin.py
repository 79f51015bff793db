"""Admin of registered models, and of runs, which can be deleted and restored here."""

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from hub.common import wording
from hub.teams.choice import list_own_teams
from hub.teams.visibility import list_teams, sees_all_teams
from hub.web.audited import record_nothing
from runs.models import ModelEndpoint, Run
from runs.selectors import visible_models, visible_runs
from runs.services import RunActive, delete_run, restore_run
from runs.web.model_form import ModelEndpointForm


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(admin.ModelAdmin):
    form = ModelEndpointForm
    list_display = ["name", "provider", "model", "base_url", "api_key_env", "enabled"]
    list_filter = ["enabled", "provider"]
    search_fields = ["name", "model"]
    fieldsets = [
        (None, {"fields": ["name", "team", "enabled", "provider", "model", "base_url", "api_key_env"]}),
        ("Requests", {"fields": ["parameters", "family"]}),
        ("Price", {"fields": ["price_input", "price_cached_input", "price_output"]}),
        ("Limits of all runs together", {"fields": ["requests_per_minute", "tokens_per_minute"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelEndpoint]:
        return visible_models(request.user)

    def get_readonly_fields(self, request: HttpRequest, obj: ModelEndpoint | None = None) -> list[str]:
        return [] if obj is None or sees_all_teams(request.user) else ["team"]

    def formfield_for_foreignkey(
        self, db_field: "ForeignKey[Model, Model]", request: HttpRequest, **kwargs: object
    ) -> "ModelChoiceField[Model] | None":
        """Offer only the teams of the user as owners of a model."""
        if db_field.name == "team":
            kwargs["queryset"] = list_teams(request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, str | list[str]]:
        """Begin with the only team of the user, as the form on the site does."""
        own = list_own_teams(request.user)
        return {"team": str(own[0].pk)} if len(own) == 1 else {}


class DeletedFilter(admin.SimpleListFilter):
    """Filter of runs that are deleted, or are not."""

    title = "deleted"
    parameter_name = "deleted"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("1", "deleted"), ("0", "not deleted")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        return queryset if self.value() is None else queryset.filter(deleted_at__isnull=self.value() == "0")


@admin.register(Run)
class RunAdmin(admin.ModelAdmin):
    """Runs, deleted ones included. Nothing can be edited; actions delete and restore."""

    list_display = ["__str__", "team", "status", "created_by", "created_at", "deleted_at", "deleted_by"]
    list_filter = [DeletedFilter, "status"]
    list_select_related = ["created_by", "deleted_by", "team"]
    search_fields = ["name"]
    readonly_fields = (
        "name",
        "team",
        "status",
        "message",
        "created_by",
        "created_at",
        "finished_at",
        "budget_changes",
        "deleted_at",
        "deleted_by",
    )
    fields = list(readonly_fields)
    actions = ["delete_runs", "restore_runs"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return visible_runs(request.user, deleted=True)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse lookups by fields that are not shown, which would reveal their values letter by letter."""
        shown = (DeletedFilter.parameter_name, *self.fields)
        return lookup.partition("__")[0] in shown and super().lookup_allowed(lookup, value, request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False  # `manage.py prune` removes deleted runs permanently

    @admin.action(description="Delete the selected runs (can be restored)", permissions=["change"])
    def delete_runs(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        assert isinstance(request.user, User)
        deleted = 0
        for run in queryset:
            try:
                delete_run(run=run, user=request.user)
                deleted += 1
            except RunActive as error:
                messages.warning(request, str(error))
        if not deleted:
            return record_nothing(redirect(request.get_full_path()))
        messages.success(request, f"Deleted {wording.counted(deleted, 'run')}.")
        return None

    @admin.action(description="Restore the selected runs", permissions=["change"])
    def restore_runs(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        for run in queryset:
            restore_run(run=run)
        messages.success(request, f"Restored {wording.counted(len(queryset), 'run')}.")

"""Admin of preferences for curators: issue categories can be edited, preferences are read-only."""

from collections.abc import Sequence

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse

from hub.admin import CuratorAdmin
from hub.selectors import is_curator
from preferences.decision_fields import labelled_values
from preferences.models import IssueCategory, Preference
from preferences.selectors import visible_preferences


class NamedRows(forms.BaseModelFormSet):
    """Rows of the list of categories. Their fields have names for screen readers, because the list has no labels."""

    def add_fields(self, form: "forms.ModelForm[IssueCategory]", index: int | None) -> None:
        for field in form.fields.values():
            field.widget.attrs["aria-label"] = f"{field.label}: {form.instance.title}"
        super().add_fields(form, index)


@admin.register(IssueCategory)
class IssueCategoryAdmin(CuratorAdmin):
    list_display = ["title", "slug", "active", "position"]
    list_editable = ["active", "position"]
    fields = ["title", "slug", "description", "active", "position"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_curator(request.user)

    def get_changelist_formset(
        self, request: HttpRequest, **kwargs: object
    ) -> "type[forms.BaseModelFormSet[IssueCategory, forms.ModelForm[IssueCategory]]]":
        return super().get_changelist_formset(request, formset=NamedRows, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: IssueCategory | None = None) -> list[str]:
        return ["slug"] if obj else []  # exports and prompts of judges contain the slug

    def get_prepopulated_fields(
        self, request: HttpRequest, obj: IssueCategory | None = None
    ) -> dict[str, Sequence[str]]:
        return {} if obj else {"slug": ["title"]}


@admin.register(Preference)
class PreferenceAdmin(CuratorAdmin):
    list_display = ["pk", "source", "verdict", "judge", "reviewer", "run", "created_at"]
    list_filter = ["source", "verdict"]
    list_select_related = ["run", "reviewer"]
    show_full_result_count = False
    search_fields = ["=reviewer__username", "=judge", "=case__external_id"]
    fields = ["source", "verdict", "decision", "confidence", "judge", "reviewer", "run", "case", "created_at"]
    readonly_fields = ["decision"]

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Preference]:
        return visible_preferences(request.user, superseded=True)

    @admin.display(description="decision", empty_value="-")
    def decision(self, obj: Preference) -> str:
        """Return what the reviewer filled in besides the verdict, a line for each field."""
        return "\n".join(f"{label}: {value}" for label, value in labelled_values(obj))

    def view_on_site(self, obj: Preference) -> str:
        return reverse("preferences:preference", args=[obj.pk])

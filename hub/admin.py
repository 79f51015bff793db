"""Admin for curators: publish, feature, retire, edit texts, read certificates, resolve reports of wrong cases.

The content of a version is never edited: changed content is a new version.
"""

import json
from collections.abc import Callable, Sequence

from django import forms
from django.contrib import admin, messages
from django.core.validators import validate_slug
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from hub import services
from hub.common.wording import counted
from hub.gates.certificates import Certificate
from hub.manifest.schema import CATEGORIES
from hub.models import CaseDefect, Environment, EnvironmentVersion, Team
from hub.selectors import is_curator, list_foreign_environments, list_visible_environments
from hub.teams.visibility import sees_all_teams, sees_team
from hub.web.audited import record_nothing


class CuratorAdmin(admin.ModelAdmin):
    """Admin that curators can view and change. Nothing can be added or deleted."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_curator(request.user)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_curator(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_curator(request.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class EnvironmentFilter(admin.SimpleListFilter):
    """Filter of versions by the environments that the user may see."""

    title = "environment"
    parameter_name = "environment"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        slugs = list_visible_environments(request.user).order_by("slug").values_list("slug", flat=True)
        return [(slug, slug) for slug in slugs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[EnvironmentVersion]) -> QuerySet[EnvironmentVersion]:
        return queryset if self.value() is None else queryset.filter(environment__slug=self.value())


def gates_table(certificate: Certificate | None) -> str:
    """Return one line for each gate of a certificate."""
    if certificate is None:
        return "The gates have not been run."
    return "\n".join(
        f"{gate['status']:8} {gate['name']:8} {gate['checked']} checked, {gate['failed']} failed  {gate['note']}"
        for gate in certificate["gates"]
    )


class TagsField(forms.CharField):
    """Field for tags separated by commas."""

    def prepare_value(self, value: object) -> object:
        return ", ".join(value) if isinstance(value, list) else value

    def clean(self, value: str) -> list[str]:
        tags = [tag.strip() for tag in super().clean(value).split(",") if tag.strip()]
        for tag in tags:
            validate_slug(tag)
        return list(dict.fromkeys(tags))


class EnvironmentForm(forms.ModelForm):
    """Form for the texts of an environment that curators may edit."""

    summary = forms.CharField(max_length=400, widget=forms.Textarea(attrs={"rows": 3, "cols": 80}))
    category = forms.ChoiceField(choices=[(name, name) for name in CATEGORIES])
    tags = TagsField(required=False, help_text="Letters, digits, - and _, separated by commas: python, multi-step")

    class Meta:
        model = Environment
        fields = ["title", "summary", "category", "tags", "license", "featured", "held_out"]
        widgets = {"title": forms.TextInput(attrs={"size": 80})}


@admin.register(Environment)
class EnvironmentAdmin(CuratorAdmin):
    form = EnvironmentForm
    list_display = ["slug", "title", "category", "state", "certificate", "featured", "held_out", "number", "updated_at"]
    list_filter = ["visibility", "category", "featured", "held_out"]
    list_select_related = ["latest__environment"]
    search_fields = ["slug", "title", "summary"]
    fieldsets = [
        (None, {"fields": ["slug", "title", "summary", "category", "tags", "license", "featured", "held_out"]}),
        (
            "State",
            {
                "description": "Publish and retire environments with the actions of the list.",
                "fields": ["visibility", "owner", "team", "latest", "gates"],
            },
        ),
    ]
    readonly_fields = ["slug", "visibility", "owner", "latest", "gates"]
    actions = ["publish", "feature", "unfeature", "retire"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Environment]:
        return list_visible_environments(request.user)

    def get_readonly_fields(self, request: HttpRequest, obj: Environment | None = None) -> list[str]:
        # What was held out may already be in someone's report as unseen in training: it can only be tightened.
        fields = [*self.readonly_fields, "held_out"] if obj and obj.held_out else list(self.readonly_fields)
        return fields if sees_all_teams(request.user) else [*fields, "team"]

    def view_on_site(self, environment: Environment) -> str:
        return reverse("hub:environment", args=[environment.slug])

    @admin.display(description="state", ordering="visibility")
    def state(self, environment: Environment) -> str:
        return environment.visibility

    @admin.display(description="latest")
    def number(self, environment: Environment) -> str:
        return environment.latest.version if environment.latest else "-"

    @admin.display(description="certificate")
    def certificate(self, environment: Environment) -> str:
        gates = ((environment.latest and environment.latest.certificate) or {}).get("gates", [])
        failed = [gate["name"] for gate in gates if gate["status"] == "failed"]
        return f"failed: {', '.join(failed)}" if failed else "gates passed" if gates else "gates not run"

    @admin.display(description="certificate of the latest version")
    def gates(self, environment: Environment) -> SafeString:
        latest = environment.latest
        return format_html('<pre tabindex="0">{}</pre>', gates_table(latest.certificate if latest else None))

    @admin.action(description="Publish (the gates must have passed)")
    def publish(self, request: HttpRequest, queryset: QuerySet[Environment]) -> HttpResponse | None:
        return self._change_each(request, queryset, services.publish_environment, "published")

    @admin.action(description="Feature")
    def feature(self, request: HttpRequest, queryset: QuerySet[Environment]) -> None:
        self._set_featured(request, queryset, True)

    @admin.action(description="Stop featuring")
    def unfeature(self, request: HttpRequest, queryset: QuerySet[Environment]) -> None:
        self._set_featured(request, queryset, False)

    def _set_featured(self, request: HttpRequest, queryset: QuerySet[Environment], featured: bool) -> None:
        queryset.update(featured=featured)
        self.message_user(request, "Featured." if featured else "No longer featured.", messages.SUCCESS)

    @admin.action(description="Retire published ones (old runs keep them)")
    def retire(self, request: HttpRequest, queryset: QuerySet[Environment]) -> HttpResponse | None:
        return self._change_each(request, queryset, services.retire_environment, "retired")

    def _change_each(
        self, request: HttpRequest, queryset: QuerySet[Environment], change: Callable[..., None], result: str
    ) -> HttpResponse | None:
        """Call *change* with each environment, and report which are *result* and why the others are not."""
        changed = False
        for environment in queryset.select_related("latest__environment"):
            try:
                change(environment=environment)
            except services.EnvironmentRefused as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                self.message_user(request, f"{environment} is {result}.", messages.SUCCESS)
                changed = True
        return None if changed else record_nothing(redirect(request.get_full_path()))


class ProtectedDeletionAdmin(admin.ModelAdmin):
    """Admin of teams, or of their groups. The page for deleting one names what the team owns, which prevents it.

    Users who do not see what the team owns only learn that it owns something.
    """

    def get_deleted_objects(
        self, objs: Sequence[Model] | QuerySet[Model], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Return what is deleted with *objs*, its counts, missing permissions, and what prevents it."""
        deleted, counts, missing, protected = super().get_deleted_objects(objs, request)
        if not protected:
            return deleted, counts, missing, protected
        protected = [text for item in objs for text in self._list_obstacles(item, request)]
        # The page shows missing permissions instead of what prevents the deletion, and nobody may delete runs there.
        return deleted, counts, set(), protected

    def _list_obstacles(self, item: Model, request: HttpRequest) -> list[str]:
        protected = super().get_deleted_objects([item], request)[3]
        team = item if isinstance(item, Team) else Team.objects.filter(group=item.pk).first()
        if not protected or team is None or sees_team(request.user, team.pk):
            return protected
        return [format_html("What the team {} owns", item)]


@admin.register(Team)
class TeamAdmin(ProtectedDeletionAdmin):
    """Teams with their quotas. The members of a team are the users in its group."""

    list_display = ["slug", "group", "spend_usd_per_month", "runs_per_day", "storage_bytes"]
    list_select_related = ["group"]
    filter_horizontal = ["managers"]
    fields = ["group", "slug", "managers", "spend_usd_per_month", "runs_per_day", "storage_bytes"]


@admin.register(EnvironmentVersion)
class EnvironmentVersionAdmin(CuratorAdmin):
    list_display = ["__str__", "case_count", "short_digest", "deprecated", "created_at"]
    list_filter = [EnvironmentFilter]
    list_select_related = ["environment"]
    search_fields = ["environment__slug", "digest"]
    fields = ["environment", "version", "digest", "case_count", "deprecated", "gates", "source", "created_at"]
    readonly_fields = ["environment", "version", "digest", "case_count", "gates", "source", "created_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EnvironmentVersion]:
        hidden = list_foreign_environments(request.user).values("pk")
        return super().get_queryset(request).exclude(environment__in=hidden)

    @admin.display(description="digest", ordering="digest")
    def short_digest(self, version: EnvironmentVersion) -> str:
        """Return the first characters, as the pages show them: all 64 would push the next columns out of sight."""
        return version.digest[:12]

    @admin.display(description="certificate")
    def gates(self, version: EnvironmentVersion) -> SafeString:
        return format_html('<pre tabindex="0">{}</pre>', gates_table(version.certificate))

    @admin.display(description="manifest")
    def source(self, version: EnvironmentVersion) -> SafeString:
        return format_html('<pre tabindex="0">{}</pre>', json.dumps(version.manifest, indent=1, ensure_ascii=False))


@admin.register(CaseDefect)
class CaseDefectAdmin(CuratorAdmin):
    list_display = ["case", "version", "status", "description", "reported_by", "created_at"]
    list_filter = ["status"]
    list_select_related = ["case__version__environment", "reported_by"]
    search_fields = ["case__external_id", "description"]
    fields = ["case", "version", "description", "reported_by", "status", "resolution", "resolved_by", "resolved_at"]
    readonly_fields = ["case", "version", "description", "reported_by", "status", "resolved_by", "resolved_at"]
    actions = ["accept", "reject"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CaseDefect]:
        hidden = list_foreign_environments(request.user).values("pk")
        return super().get_queryset(request).exclude(case__version__environment__in=hidden)

    @admin.display(description="environment")
    def version(self, defect: CaseDefect) -> str:
        return str(defect.case.version)

    @admin.action(description="Accept: later reports leave the case out")
    def accept(self, request: HttpRequest, queryset: QuerySet[CaseDefect]) -> HttpResponse | None:
        return self._resolve(request, queryset, accepted=True)

    @admin.action(description="Reject: the case is correct")
    def reject(self, request: HttpRequest, queryset: QuerySet[CaseDefect]) -> HttpResponse | None:
        return self._resolve(request, queryset, accepted=False)

    def _resolve(self, request: HttpRequest, queryset: QuerySet[CaseDefect], *, accepted: bool) -> HttpResponse | None:
        assert request.user.is_authenticated
        resolved = 0
        for defect in queryset:
            try:
                services.resolve_defect(
                    defect=defect, accepted=accepted, resolution=defect.resolution, user=request.user
                )
            except services.EnvironmentRefused as error:
                self.message_user(request, f"{defect}: {error}", messages.ERROR)
            else:
                resolved += 1
        if not resolved:
            return record_nothing(redirect(request.get_full_path()))
        done = "accepted: later reports leave the cases out." if accepted else "rejected: the cases are kept."
        self.message_user(request, f"{counted(resolved, 'report')} {done}", messages.SUCCESS)
        return None

"""Pages of the hub: catalogue, environment, case, report of a wrong case, changes between versions."""

import json
from collections.abc import Mapping

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hub.bundles.changes import VersionChanges, manifest_yaml, version_changes
from hub.bundles.stored import ArchiveUnavailable, open_stored_archive, open_stored_bundle
from hub.common.web.pagination import Order, keyset_page, order_of, page_or_part, render_list, render_part
from hub.environments.compiled import CaseError, CompileError
from hub.gates.queue import TRIES, dispatch_gates
from hub.manifest.problems import MANIFEST, BundleError
from hub.models import Case, Environment, EnvironmentVersion, GateRequest
from hub.protocols.cases import CaseData, file_bytes
from hub.protocols.messages import JSON, Message
from hub.selectors import (
    CURATE,
    compile_version,
    is_curator,
    list_forgeable_rules,
    list_open_defects,
    may_see_content,
)
from hub.services import EnvironmentRefused, publish_environment, report_defect, why_not_publishable
from hub.web import queries
from hub.web.forms import CasesForm, CatalogueForm, DefectForm
from hub.web.reading.markdown import markdown_html
from sandbox.errors import SandboxUnavailable

ENVIRONMENTS, CASES = 30, 25  # on a page
SHOWN_FILE = 200_000  # bytes of a file that a page shows
FEATURED = Order(field="featured", descending=True)  # default order: featured first, then by slug


@require_safe
def catalogue(request: HttpRequest) -> HttpResponse:
    """List the environments that the user may see: /hub/?q=&category=&tag=&state=&sort="""
    form = CatalogueForm(request.GET)
    chosen = form.chosen
    rows = queries.filter_environments(request.user, **form.values()) if form.is_valid() else Environment.objects.none()
    order = order_of(request, queries.ENVIRONMENT_COLUMNS)
    context = {
        "form": form,
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "order": order,
        "page": keyset_page(rows, request, by="slug", size=ENVIRONMENTS, order=order if order.name else FEATURED),
        "total": rows.count(),
        "curator": is_curator(request.user),
        **queries.facets(request.user),
    }
    return render_list(request, page_or_part(request, "hub/catalogue.html", "environments"), context, form)


@require_safe
def environment(request: HttpRequest, slug: str, version: str | None = None) -> HttpResponse:
    """Show a version of an environment, by default the latest; `?q=` searches its cases."""
    found = queries.environment_of(request.user, slug)
    shown = queries.version_of(found, version)
    form = CasesForm(request.GET)
    open_to_user = may_see_content(request.user, found)
    rows = queries.case_list(shown, **form.values()) if open_to_user and form.is_valid() else Case.objects.none()
    order = order_of(request, queries.CASE_COLUMNS)
    context = {
        "environment": found,
        "version": shown,
        "form": form,
        "q": form.chosen["q"],
        "curator": is_curator(request.user),
        "content": open_to_user,
        "gates": _pending_gates(shown),
        "tries": TRIES,
        "order": order,
        "cases": keyset_page(rows, request, by="position", size=CASES, order=order),
    }
    template = page_or_part(request, "hub/environment.html", "cases")
    if request.headers.get("HX-Target") == "certificate":
        template = "hub/environment.html#certificate"
    if template == "hub/environment.html":
        context |= _description(shown)
        context["forgeable"] = list_forgeable_rules(shown)
        context["follows"] = found.versions.filter(pk__lt=shown.pk).exists()
        if found.visibility != Environment.Visibility.PUBLISHED and shown.pk == found.latest_id:
            context["unpublished"] = True
            context["publish_problem"] = why_not_publishable(found)
        if context["curator"]:
            context["open_defects"] = list_open_defects(shown).count()
        context["versions"] = found.versions.only("version", "created_at", "deprecated", "case_count", "environment_id")
    return render_list(request, template, context, form)


def _pending_gates(version: EnvironmentVersion) -> dict[str, object] | None:
    """Return the state of a request for the gates that has no result yet; None if there is no such request."""
    request = GateRequest.objects.filter(version=version).first() if version.certificate is None else None
    return {"problem": request.problem, "given_up": request.tries >= TRIES} if request else None


def _description(version: EnvironmentVersion) -> dict[str, object]:
    """Return the harness, the scoring rules, the manifest and the README for display."""
    harness = version.manifest.get("harness") or {}
    scoring = version.manifest.get("scoring") or {}
    return {
        "readme": markdown_html(_body(version.readme)) if version.readme else "",
        "harness": harness.get("type", "single_turn"),
        "rules": scoring.get("rules") or [{"type": "reward"}],
        "pass_mark": scoring.get("pass", 1.0),
        "manifest": manifest_yaml(version),
    }


def _body(readme: str) -> str:
    """Return the README without its first heading, because the page has a title already."""
    first, _, rest = readme.lstrip().partition("\n")
    return rest if first.startswith("# ") else readme


@require_safe
def case(request: HttpRequest, slug: str, version: str, case: str) -> HttpResponse:
    """Show one case: its prompt, target, scoring rules, files, and links to the cases before and after it."""
    shown = queries.version_of(queries.content_of(request.user, slug), version)
    found = queries.case_of(shown, case)
    data = found.data
    around = shown.cases.defer("data").order_by("position")
    context = {
        "environment": shown.environment,
        "version": shown,
        "case": found,
        "data": data,
        "target": _shown(data["target"]) if "target" in data else None,
        "files": [(path, _file(content)) for path, content in data.get("files", {}).items()],
        "row": _shown({**data.get("metadata", {}), **data.get("row", {})}),
        "before": around.filter(position__lt=found.position).last(),
        "after": around.filter(position__gt=found.position).first(),
        "defects": found.defects.select_related("reported_by"),
        "curator": is_curator(request.user),
        **_rendered(shown, data),
    }
    return render(request, "hub/case.html", context)


def _rendered(version: EnvironmentVersion, data: dict[str, JSON]) -> dict[str, object]:
    """Return the prompt and the scoring rules rendered for a case; both empty if the stored bundle cannot be read."""
    case = CaseData.from_json(data)
    try:
        compiled = compile_version(version)
        options = compiled.harness_options(case).model_dump(mode="json")
        rules = compiled.rendered_rules(case)
    except (CompileError, CaseError, SandboxUnavailable, OSError, ValueError):
        return {"asked": None, "rules": []}
    return {
        "asked": _opening(options),
        "rules": [
            {
                "name": item.rule.spec.name,
                "type": item.rule.spec.type,
                "weight": item.rule.spec.weight,
                "options": _shown(item.options.model_dump(mode="json", exclude_defaults=True)),
            }
            for item in rules
        ],
    }


def _opening(options: Mapping[str, object]) -> list[Message]:
    """Return the messages of the options `system` and `prompt`; [] for harnesses that create theirs in the sandbox."""
    system, prompt = options.get("system"), options.get("prompt")
    messages: list[Message] = [{"role": "system", "content": str(system)}] if system else []
    if isinstance(prompt, list):
        return [*messages, *prompt]
    return [*messages, {"role": "user", "content": str(prompt)}] if prompt else messages


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _file(content: JSON) -> str:
    return content if isinstance(content, str) else f"(binary, {len(file_bytes(content)):,} bytes)"


@require_http_methods(["GET", "POST"])
def defect(request: HttpRequest, slug: str, version: str, case: str) -> HttpResponse:
    """Report that a case is wrong. Everyone who may see it may report it; a curator decides."""
    assert request.user.is_authenticated
    shown = queries.version_of(queries.content_of(request.user, slug), version)
    found = queries.case_of(shown, case)
    posted = request.method == "POST"
    form = DefectForm(request.POST) if posted else DefectForm()
    if posted and form.is_valid():
        try:
            report_defect(case=found, description=form.cleaned_data["description"], user=request.user)
        except EnvironmentRefused as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "Your report is stored. A curator will accept or reject it.")
            return redirect("hub:case", slug, shown.version, found.external_id)
    context = {"environment": shown.environment, "version": shown, "case": found, "form": form}
    return render(request, "hub/defect.html", context, status=422 if form.errors else 200)


@require_safe
def changes(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Show the differences between *version* and the version stored before it, or that of `?from=`."""
    found = queries.content_of(request.user, slug)
    after = queries.version_of(found, version)
    given = request.GET.get("from")
    if given:
        before: EnvironmentVersion | None = queries.version_of(found, given)
    else:
        before = found.versions.filter(pk__lt=after.pk).order_by("-pk").first()
    if before is not None:
        before.environment = found
    part = "changed" if request.headers.get("HX-Target") == "changed" and before else "changes"
    shown, problem = VersionChanges(before=None, after=after), ""
    if before is not None:
        try:
            shown = version_changes(before, after, with_files=part == "changes")
        except ArchiveUnavailable as error:
            shown, problem = version_changes(before, after), str(error)
    return render_part(
        request,
        page_or_part(request, "hub/changes.html", part),
        {
            "environment": found,
            "version": after,
            "changes": shown,
            "files_problem": problem,
            "others": found.versions.exclude(pk=after.pk),
        },
    )


@require_safe
def files(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Show the files of a version, and the text of `?file=`, by default of the manifest."""
    shown = queries.version_of(queries.content_of(request.user, slug), version)
    with open_stored_bundle(shown) as stored:
        path = request.GET.get("file", MANIFEST)
        if path not in stored.files:
            raise Http404(f"{shown} has no file {path!r}.")
        try:
            text, problem = stored.text(path, SHOWN_FILE), ""
        except BundleError as error:
            text, problem = "", " ".join(item.message for item in error.problems)
        listed = [(name, info.size) for name, info in stored.files.items()]
    context = {"environment": shown.environment, "version": shown, "files": listed, "path": path}
    return render(request, "hub/files.html", {**context, "text": text, "problem": problem})


@require_safe
def bundle(request: HttpRequest, slug: str, version: str) -> FileResponse:
    """Download the stored .zip."""
    shown = queries.version_of(queries.content_of(request.user, slug), version)
    return FileResponse(
        open_stored_archive(shown),
        as_attachment=True,
        filename=f"{slug}-{shown.version}.zip",
        content_type="application/zip",
    )


@require_POST
@permission_required(CURATE, raise_exception=True)
def gates(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Request the gates of a version that has no certificate."""
    shown = queries.version_of(queries.environment_of(request.user, slug), version)
    if shown.certificate is None:
        dispatch_gates(version=shown)
    return _to_version(shown)


@require_POST
@permission_required(CURATE, raise_exception=True)
def publish(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Publish an environment, if this is its latest version and the version passed its gates."""
    found = queries.environment_of(request.user, slug)
    shown = queries.version_of(found, version)
    if found.latest_id != shown.pk:
        messages.error(request, f"{shown} is not the latest version; publish the latest.")
        return _to_version(shown)
    try:
        publish_environment(environment=found)
    except EnvironmentRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{found.title} is published: everybody who signs in can see and run it.")
    return _to_version(shown)


def _to_version(version: EnvironmentVersion) -> HttpResponse:
    return redirect("hub:version", version.environment.slug, version.version)

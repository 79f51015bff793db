"""Pages of one case: its prompt, target and scoring, and the report that it is wrong."""

import json
from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from hub.common.web.users import signed_in_user
from hub.environments.compiled import CaseError, CompileError
from hub.models import EnvironmentVersion
from hub.protocols.cases import CaseData, file_bytes
from hub.protocols.messages import JSON, Message
from hub.selectors import compile_version, is_curator
from hub.services import EnvironmentRefused, report_defect
from hub.web import queries
from hub.web.forms import DefectForm
from sandbox.errors import SandboxUnavailable


@require_safe
def case(request: HttpRequest, slug: str, version: str, case: str) -> HttpResponse:
    """Show one case: its prompt, target, scoring rules, files, and links to the cases before and after it."""
    shown = queries.get_version_or_404(queries.get_environment_with_content(request.user, slug), version)
    found = queries.get_case_or_404(shown, case)
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
    shown = queries.get_version_or_404(queries.get_environment_with_content(request.user, slug), version)
    found = queries.get_case_or_404(shown, case)
    posted = request.method == "POST"
    form = DefectForm(request.POST) if posted else DefectForm()
    if posted and form.is_valid():
        try:
            report_defect(case=found, description=form.cleaned_data["description"], user=signed_in_user(request))
        except EnvironmentRefused as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "Your report is stored. A curator will accept or reject it.")
            return redirect("hub:case", slug, shown.version, found.external_id)
    context = {"environment": shown.environment, "version": shown, "case": found, "form": form}
    return render(request, "hub/defect.html", context, status=422 if form.errors else 200)

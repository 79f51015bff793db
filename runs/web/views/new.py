"""Page of a new run: choose environments and models, see what the run needs, start it."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods

from hub.bundles.stored import ArchiveUnavailable
from hub.common.web.users import signed_in_user
from hub.teams.quotas import QuotaExceeded
from hub.web.audited import record_nothing
from hub.web.queries import facets
from runs.config.parsed import ConfigError
from runs.config.registered import MAX_CONFIG, resolve_registered_text
from runs.config.resolve import ResolvedConfig
from runs.models import Run
from runs.services import create_run
from runs.web import queries
from runs.web.new_run.choices import choose_all_found, list_environments, list_models
from runs.web.new_run.document import Filled, fill_from_run, fill_from_text, run_yaml
from runs.web.new_run.draft import Draft, read_draft
from runs.web.new_run.form import NewRunForm
from runs.web.notices import notify_workers

ADD = "runs.add_run"


@require_http_methods(["GET", "POST"])
@permission_required(ADD, raise_exception=True)
def new(request: HttpRequest) -> HttpResponse:
    """Show the form with what the address chooses (`?run=` with that of a run), change it, or start the run.

    The button is in `do`: `start`, `fill` the form from YAML, `start-yaml`. Every other submission changes what is
    chosen, and is redirected to the address of the new state unless that is too long.
    """
    user = signed_in_user(request)
    if request.method != "POST":
        return _show(request, user)
    draft, do = read_draft(request.POST), request.POST.get("do", "")
    if do == "add-found":
        choose_all_found(user, draft)
    if request.headers.get("HX-Request"):
        return _update(request, user, draft)
    if do == "start":
        form = NewRunForm(draft, user=user, complete=True)
        if form.is_valid():
            try:
                return redirect("runs:run", pk=_start(request, user, form.resolved).pk)
            except QuotaExceeded as error:
                form.add_error(None, error.message)
        return _page(request, draft, form, status=422)
    if do in ("fill", "start-yaml"):
        return _read_yaml(request, user, draft, start=do == "start-yaml")
    return _show_draft(request, user, draft)


def _show(request: HttpRequest, user: User) -> HttpResponse:
    earlier = request.GET.get("run", "")
    if not (earlier.isascii() and earlier.isdecimal() and len(earlier) < 16):
        draft = read_draft(request.GET)
        return _page(request, draft, NewRunForm(draft, user=user, complete=False))
    run = queries.get_visible_run(user, int(earlier))
    filled, text = fill_from_run(run)
    more: dict[str, object] = {"run": run, "inexpressible": [reason for _, reason in filled.inexpressible]}
    if filled.inexpressible:
        more["yaml_text"] = text
    return _page(request, filled.draft, NewRunForm(filled.draft, user=user, complete=False), more)


def _show_draft(request: HttpRequest, user: User, draft: Draft) -> HttpResponse:
    """Redirect to the address of the state, or show the page itself if the address would be too long."""
    address = draft.address()
    if address:
        return record_nothing(redirect(address))
    return record_nothing(_page(request, draft, NewRunForm(draft, user=user, complete=False)))


def _read_yaml(request: HttpRequest, user: User, draft: Draft, *, start: bool) -> HttpResponse:
    """Start the run in the field for YAML, or fill the form with it. With errors, all that was entered is kept."""
    text = request.POST.get("config", "")
    try:
        if not text.strip():
            problems = ["Paste a config first."]
        elif len(text) > MAX_CONFIG:
            problems = [f"The text has {len(text):,} characters; at most {MAX_CONFIG:,} are read."]
        elif start:
            return redirect("runs:run", pk=_start(request, user, resolve_registered_text(text, user=user)).pk)
        else:
            filled = fill_from_text(text, user)
            messages.success(request, _describe_filled(filled))
            return _show_draft(request, user, filled.draft)
    except ConfigError as error:
        problems = [str(problem) for problem in error.problems]
    except (ArchiveUnavailable, QuotaExceeded) as error:
        problems = [error.message]
    form = NewRunForm(draft, user=user, complete=False)
    return _page(request, draft, form, {"yaml_text": text, "yaml_problems": problems}, status=422)


def _describe_filled(filled: Filled) -> str:
    kept = f" Kept under “Other settings”: {', '.join(filled.kept)}." if filled.kept else ""
    return f"The form is filled from the YAML.{kept}"


def _start(request: HttpRequest, user: User, resolved: ResolvedConfig) -> Run:
    run = create_run(config=resolved.config, environments=resolved.environments, user=user, team=resolved.team)
    notify_workers(request, run)
    return run


def _page(
    request: HttpRequest, draft: Draft, form: NewRunForm, more: dict[str, object] | None = None, *, status: int = 200
) -> HttpResponse:
    response = render(
        request, "runs/new.html", {**_context(signed_in_user(request), draft, form), **(more or {})}, status=status
    )
    patch_vary_headers(response, ["HX-Request"])
    return response


def _update(request: HttpRequest, user: User, draft: Draft) -> HttpResponse:
    """Return the parts of the page that depend on the choices. htmx replaces each of them.

    A list is not replaced after a choice in it, because further choices may follow in quick succession.
    """
    form = NewRunForm(draft, user=user, complete=False)
    shown = (request.POST.get("listed"), request.POST.get("page"))
    models_shown = (request.POST.get("model_listed"), request.POST.get("model_page"))
    context = _context(user, draft, form)
    context["lists_changed"] = (
        bool(request.POST.get("do") or request.POST.get("drop"))
        or shown != (draft.listed, draft.fields["page"])
        or models_shown != (draft.fields["model_q"], draft.fields["model_page"])
    )
    response = render(request, "runs/new.html#update", {**context, "oob": True})
    response["HX-Replace-Url"] = draft.address() or "false"
    patch_vary_headers(response, ["HX-Request"])
    return record_nothing(response)


def _context(user: User, draft: Draft, form: NewRunForm) -> dict[str, object]:
    valid = form.is_valid()
    ready = valid and form.environments and form.models
    estimate, budget = form.estimate(), form.cleaned_data.get("budget")
    return {
        "form": form,
        "draft": draft,
        "address": draft.address(),
        "fields": draft.fields,
        "environments": list_environments(user, draft),
        "models": list_models(user, draft),
        "categories": facets(user)["categories"],
        "cases": sum(count for _, count in form.planned),
        "estimate": estimate,
        "over_budget": bool(budget and estimate and (estimate.cost_usd or 0) > budget),
        "yaml": run_yaml(form) if ready else "",
    }

"""Export of rollouts as JSON lines to train on: episodes that trainers drove, or the scored responses of a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from django.contrib.auth.models import User
from django.db.models import QuerySet

from hub.common.output_files import Outputs
from hub.models import CaseDefect, EnvironmentVersion
from hub.protocols.messages import plain_message, tools_text
from hub.selectors import get_offered_tools
from runs.exports.protocol import CHUNK, ExportFormat, ExportReport, JSONObject, LeftOut, export_items
from runs.exports.provenance import attempt_provenance, token_usage
from runs.exports.selection import find_run_environments, find_run_model, is_held_out, refuse_held_out
from runs.models import EpisodeSession, Response, Run
from runs.results.counting import defective_cases
from runs.rollouts.roles import session_recordings

_UNSCORED = "unscored: a rule could not decide, and a reward of 0 would be wrong"
_IN_PROCESS = "judged with code and tests in one process (trust: auto), where a hostile answer can forge the result"
_DEFECTIVE = "of a case that was found wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSelection:
    """What to export; fields that are not given do not restrict it. `since` is a day in UTC."""

    user: User | None = None
    environment: str = ""
    model: str = ""
    since: date | None = None


@dataclass(frozen=True)
class EpisodeRollouts(ExportFormat[EpisodeSession]):
    """Format of episodes. `held_out` holds ids of versions, `defective` ids of cases that a curator found wrong."""

    held_out: frozenset[int]
    defective: frozenset[int]

    name = "rollouts"
    summary = "transcript, reward, rules and tokens of each episode"

    def rows(self, item: EpisodeSession) -> Iterator[JSONObject]:
        if item.case.version_id in self.held_out:
            raise LeftOut(f"{item.case.version} is held out")
        if not item.done:
            raise LeftOut("not over yet")
        if item.case_id in self.defective:
            raise LeftOut(_DEFECTIVE)
        if (item.score or {}).get("status") == "unscored":
            raise LeftOut(_UNSCORED)
        yield episode_row(item)


@dataclass(frozen=True)
class ResponseRollouts(ExportFormat[Response]):
    """Format of the responses of a run, with the same keys as episodes. `defective` is as in EpisodeRollouts."""

    defective: frozenset[int]

    name = "rollouts"
    summary = "transcript, reward, rules and tokens of each scored response"

    def rows(self, item: Response) -> Iterator[JSONObject]:
        if item.case_id in self.defective:
            raise LeftOut(_DEFECTIVE)
        if item.status == Response.Status.UNSCORED:
            raise LeftOut(_UNSCORED)
        if any((score.execution or {}).get("trust_reason") for score in item.scores.all()):
            raise LeftOut(_IN_PROCESS)
        if item.score is None:
            raise LeftOut("errored: the network, the provider or the sandbox failed, not the model")
        yield response_row(item)


def export_episodes(path: Path, selection: RolloutSelection, *, force: bool = False) -> ExportReport:
    """Write finished episodes to *path*, oldest first. Raises ExportError and CannotWrite.

    Others are left out and counted by reason. No file is created if there is nothing to write.
    """
    sessions = _sessions(selection)
    used = EnvironmentVersion.objects.filter(pk__in=sessions.order_by().values("case__version_id"))
    held_out = [version for version in used.select_related("environment") if is_held_out(version)]
    if selection.environment:
        refuse_held_out(held_out)
    export_format = EpisodeRollouts(frozenset(version.pk for version in held_out), _defective(sessions))
    report = ExportReport()
    with Outputs(force=force) as outputs:
        export_items(export_format, lambda: sessions.iterator(chunk_size=CHUNK), outputs.file(path), report)
    report.files = outputs.written
    return report


def export_run_rollouts(run: Run, path: Path, selection: RolloutSelection, *, force: bool = False) -> ExportReport:
    """Write every scored response of the models under test of *run*. Raises as `export_episodes` does."""
    environments = find_run_environments(run, selection.environment or None)
    refuse_held_out(environment.version for environment in environments)
    model = find_run_model(run, selection.model or None)
    defective = frozenset(pk for environment in environments for pk in defective_cases(environment))

    def read() -> Iterator[Response]:
        for environment in environments:
            responses = Response.objects.filter(run_environment=environment, run_model__role="")
            if model is not None:
                responses = responses.filter(run_model=model)
            responses = responses.select_related("case", "run_model").prefetch_related("scores")
            ordered = responses.order_by("case__position", "run_model__position", "attempt")
            for response in ordered.iterator(chunk_size=CHUNK):
                response.run_environment = environment
                yield response

    report = ExportReport()
    with Outputs(force=force) as outputs:
        export_items(ResponseRollouts(defective), read, outputs.file(path), report)
    report.files = outputs.written
    return report


def _sessions(selection: RolloutSelection) -> QuerySet[EpisodeSession]:
    slug, _, number = selection.environment.partition("@")
    given: dict[str, object] = {
        "user": selection.user,
        "model": selection.model or None,
        "created_at__date__gte": selection.since,
        "case__version__environment__slug": slug or None,
        "case__version__version": number or None,
    }
    sessions = EpisodeSession.objects.filter(**{name: value for name, value in given.items() if value is not None})
    related = sessions.select_related("case__version__environment", "user")
    return related.defer("case__data", "case__version__manifest", "case__version__readme").order_by("created_at", "pk")


def _defective(sessions: QuerySet[EpisodeSession]) -> frozenset[int]:
    accepted = CaseDefect.objects.filter(
        status=CaseDefect.Status.ACCEPTED, case__in=sessions.order_by().values("case_id")
    )
    return frozenset(accepted.values_list("case_id", flat=True))


# ---- rows ------------------------------------------------------------------------------------------------------------


def episode_row(session: EpisodeSession) -> JSONObject:
    """Return the row of an episode. `usage` is null if the trainer did not send the usage of every step."""
    score, steps = session.score or {}, session.usage
    known = [step for step in steps if step]
    complete = bool(steps) and len(known) == len(steps)
    return {
        "rollout": str(session.pk),
        "source": "episode",
        **attempt_provenance(session.case.version, session.case.external_id, session.attempt, session.seed),
        "model": session.model,
        "reward": session.reward,
        "status": score.get("status", ""),
        "stop": session.state.get("stop", ""),
        "messages": [plain_message(message) for message in session.state.get("messages", [])],
        "tools": tools_text(session.state.get("tools", [])),
        "usage": {name: sum(step[name] for step in known) for name in known[0]} if complete else None,
        "step_usage": steps,
        "rules": score.get("rules", []),
        "recordings": session_recordings(session),
        "user": session.user.username,
        "created_at": session.created_at.isoformat(),
    }


def response_row(response: Response) -> JSONObject:
    """Return the row of a response of a run. The tokens of single steps are not stored with a response."""
    version, usage = response.run_environment.version, token_usage(response)
    return {
        "rollout": f"run-{response.run_environment.run_id}-response-{response.pk}",
        "source": "run",
        **attempt_provenance(version, response.case.external_id, response.attempt, response.seed),
        "model": response.run_model.label,
        "reward": response.score,
        "status": response.status,
        "stop": response.stop,
        "messages": [plain_message(message) for message in response.messages],
        "tools": tools_text(get_offered_tools(version, response.case)),
        "usage": usage if any(usage.values()) else None,
        "step_usage": None,
        "rules": [
            {"rule": s.rule, "type": s.type, "value": s.value, "weight": s.weight, "reason": s.reason}
            for s in sorted(response.scores.all(), key=lambda score: score.position)
        ],
        "recordings": None,
        "user": None,
        "created_at": response.created_at.isoformat(),
    }

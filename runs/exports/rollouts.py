"""Rollouts to train on, as JSONL: episodes that trainers drove, or all scored responses of a run. One shape of line."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from django.contrib.auth.models import User
from django.db.models import QuerySet

from hub.common.output_files import Outputs
from hub.models import CaseDefect, EnvironmentVersion
from hub.protocols.messages import JSON, plain_message, tools_text
from hub.selectors import tools_offered
from runs.exports.base import CHUNK, ExportReport, is_held_out, lines, refuse_held_out, run_model, run_parts
from runs.exports.base import usage_of as response_usage
from runs.models import EpisodeSession, Response, Run, RunEnvironment
from runs.results.counting import defective_cases
from runs.rollouts.roles import session_recordings

_UNSCORED = "unscored: a rule could not decide, and 0 would be a reward that nobody gave"
_FORGEABLE = "judged with code and tests in one process (trust: auto), which a hostile answer can bring about"
_DEFECTIVE = "of a case that was found wrong"
Row = dict[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSelection:
    """What to export; what is left out stands for everything. `since` is a day in UTC."""

    user: User | None = None
    environment: str = ""
    model: str = ""
    since: date | None = None


def export_episodes(path: Path, which: RolloutSelection, *, force: bool = False) -> ExportReport:
    """Write the episodes that are over, the oldest first, whole or not at all. Raises ExportError and CannotWrite.

    Nothing is written where there are none; those that are left out are counted by why.
    """
    sessions = _sessions(which)
    versions = EnvironmentVersion.objects.filter(pk__in=sessions.order_by().values("case__version_id"))
    held_out = {version.pk for version in versions.select_related("environment") if is_held_out(version)}
    if which.environment:
        refuse_held_out(version for version in versions.select_related("environment") if version.pk in held_out)
    defective = _defective(sessions)

    def why_not(session: EpisodeSession) -> str:
        if session.case.version_id in held_out:
            return f"{session.case.version} is held out"
        if not session.done:
            return "not over yet"
        if session.case_id in defective:
            return _DEFECTIVE
        return _UNSCORED if (session.score or {}).get("status") == "unscored" else ""

    def write(out: Callable[[str], None], exported: ExportReport) -> None:
        for session in sessions.iterator(chunk_size=CHUNK):
            why = why_not(session)
            if why:
                exported.left_out[why] += 1
            else:
                out(_json(episode_row(session)))

    return _written(path, force, write)


def export_run_rollouts(run: Run, path: Path, which: RolloutSelection, *, force: bool = False) -> ExportReport:
    """Write every scored response of *run*'s answering models. Raises as `export_episodes` does."""
    parts = run_parts(run, which.environment or None)
    refuse_held_out(part.version for part in parts)
    model = run_model(run, which.model or None)

    def write(out: Callable[[str], None], exported: ExportReport) -> None:
        for part in parts:
            wrong = defective_cases(part)
            responses = Response.objects.filter(run_environment=part, run_model__role="")
            if model is not None:
                responses = responses.filter(run_model=model)
            for response in _with_scores(responses):
                why = _why_not(response, wrong)
                if why:
                    exported.left_out[why] += 1
                else:
                    out(_json(response_row(part, response)))

    return _written(path, force, write)


def _written(path: Path, force: bool, write: Callable[[Callable[[str], None], ExportReport], None]) -> ExportReport:
    exported = ExportReport()
    with Outputs(force=force) as outputs, lines(outputs.file(path), exported) as out:
        write(out, exported)
    exported.files = outputs.written
    return exported


# ---- which -----------------------------------------------------------------------------------------------------------


def _sessions(which: RolloutSelection) -> QuerySet[EpisodeSession]:
    given = {
        "user": which.user,
        "model": which.model or None,
        "created_at__date__gte": which.since,
        "case__version__environment__slug": which.environment.partition("@")[0] or None,
        "case__version__version": which.environment.partition("@")[2] or None,
    }
    sessions = EpisodeSession.objects.filter(**{name: value for name, value in given.items() if value is not None})
    related = sessions.select_related("case__version__environment", "user")
    return related.defer("case__data", "case__version__manifest", "case__version__readme").order_by("created_at", "pk")


def _defective(sessions: QuerySet[EpisodeSession]) -> set[int]:
    accepted = CaseDefect.objects.filter(
        status=CaseDefect.Status.ACCEPTED, case__in=sessions.order_by().values("case_id")
    )
    return set(accepted.values_list("case_id", flat=True))


def _with_scores(responses: QuerySet[Response]) -> Iterator[Response]:
    ordered = responses.select_related("case", "run_model").prefetch_related("scores")
    return ordered.order_by("case__position", "run_model__position", "attempt").iterator(chunk_size=CHUNK)


def _why_not(response: Response, wrong: frozenset[int]) -> str:
    if response.case_id in wrong:
        return _DEFECTIVE
    if response.status == Response.Status.UNSCORED:
        return _UNSCORED
    if any((score.execution or {}).get("trust_reason") for score in response.scores.all()):
        return _FORGEABLE
    return "errored: the world failed, not the model" if response.score is None else ""


# ---- lines -----------------------------------------------------------------------------------------------------------


def episode_row(session: EpisodeSession) -> Row:
    """One episode as a line. `usage` is null where the trainer did not send that of each step."""
    score, steps = session.score or {}, session.usage
    known = [step for step in steps if step]
    complete = bool(steps) and len(known) == len(steps)
    return {
        "rollout": str(session.pk),
        "source": "episode",
        **_place(session.case.version, session.case.external_id, session.attempt, session.seed),
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


def response_row(part: RunEnvironment, response: Response) -> Row:
    """One response of a run as a line. The tokens of single steps are not stored with a response."""
    counted = response_usage(response)
    return {
        "rollout": f"run-{part.run_id}-response-{response.pk}",
        "source": "run",
        **_place(part.version, response.case.external_id, response.attempt, response.seed),
        "model": response.run_model.label,
        "reward": response.score,
        "status": response.status,
        "stop": response.stop,
        "messages": [plain_message(message) for message in response.messages],
        "tools": tools_text(tools_offered(part.version, response.case)),
        "usage": counted if any(counted.values()) else None,
        "step_usage": None,
        "rules": [
            {"rule": s.rule, "type": s.type, "value": s.value, "weight": s.weight, "reason": s.reason}
            for s in sorted(response.scores.all(), key=lambda score: score.position)
        ],
        "recordings": None,
        "user": None,
        "created_at": response.created_at.isoformat(),
    }


def _place(version: EnvironmentVersion, case: str, attempt: int, seed: int) -> Row:
    return {"environment": str(version), "digest": version.digest, "case": case, "attempt": attempt, "seed": seed}


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)

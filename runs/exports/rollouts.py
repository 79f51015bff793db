"""Export of rollouts to train on: episodes that trainers drove, or the scored responses of a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from django.contrib.auth.models import User
from django.db.models import QuerySet

from hub.common.digests import digest
from hub.models import CaseDefect, EnvironmentVersion
from hub.protocols.messages import JSON, count_prompt_messages, plain_message_with_reasoning, tools_text
from hub.selectors import get_offered_tools, may_see_content
from runs.exports.protocol import CHUNK, Export, ExportReport, LeftOut
from runs.exports.provenance import UsageCounts, attempt_provenance, token_usage
from runs.exports.rollout_formats.base import RolloutItem, RolloutRecord
from runs.exports.rollout_formats.registry import ROLLOUT_FORMATS
from runs.exports.selection import (
    DEFECTIVE,
    HELD_OUT_SPLIT,
    check_known,
    find_run_environments,
    find_run_model,
    is_held_out,
    refuse_held_out,
)
from runs.models import EpisodeSession, Response, Run, Score
from runs.results.counting import defective_cases
from runs.rollouts.roles import session_recordings
from runs.rollouts.sessions import session_steps
from runs.rollouts.tokens import StepTokens
from runs.selectors import visible_episodes

DEFAULT_FORMAT = "jsonl"

_UNSCORED = "unscored: a rule could not decide, and a reward of 0 would be wrong"
_IN_PROCESS = "judged with code and tests in one process (trust: auto), where a hostile answer can forge the result"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSelection:
    """What to export; fields that are not given do not restrict it. `since` is a day in UTC.

    viewer: reasons of scores that they may not read are left out. None: an operator, who may read all.
    """

    user: User | None = None
    environment: str = ""
    model: str = ""
    since: date | None = None
    viewer: User | None = None


@dataclass(frozen=True, slots=True)
class EpisodeRollout(RolloutItem):
    """Episode. `defective` holds ids of cases that a curator found wrong.

    `held_out` and `without_reasons` hold ids of versions: reasons of the latter are left out.
    """

    session: EpisodeSession
    held_out: frozenset[int]
    without_reasons: frozenset[int]
    defective: frozenset[int]

    def record(self) -> RolloutRecord:
        session = self.session
        if session.case.version_id in self.held_out:
            raise LeftOut(f"{session.case.version} is held out")
        if session.case.held_out:
            raise LeftOut(HELD_OUT_SPLIT)
        if not session.done:
            raise LeftOut("not over yet")
        if session.case_id in self.defective:
            raise LeftOut(DEFECTIVE)
        if (session.score or {}).get("status") == "unscored":
            raise LeftOut(_UNSCORED)
        return episode_record(session, reasons=session.case.version_id not in self.without_reasons)

    def first_answer(self) -> int:
        return count_prompt_messages(self.session.state.get("messages", []), self.session.state.get("prompt"))

    def group(self) -> str | None:
        return self.session.group or None

    def category(self) -> str:
        return self.session.case.version.environment.category


@dataclass(frozen=True, slots=True)
class ResponseRollout(RolloutItem):
    """Response of a run. `defective` is as in EpisodeRollout."""

    response: Response
    defective: frozenset[int]

    def record(self) -> RolloutRecord:
        response = self.response
        if response.case.held_out:
            raise LeftOut(HELD_OUT_SPLIT)
        if response.case_id in self.defective:
            raise LeftOut(DEFECTIVE)
        if response.status == Response.Status.UNSCORED:
            raise LeftOut(_UNSCORED)
        if any((score.execution or {}).get("trust_reason") for score in response.scores.all()):
            raise LeftOut(_IN_PROCESS)
        if response.score is None:
            raise LeftOut("errored: the network, the provider or the sandbox failed, not the model")
        return response_record(response, response.score)

    def first_answer(self) -> int:
        return self.response.first_answer

    def group(self) -> str | None:
        return response_group(self.response)

    def category(self) -> str:
        return self.response.run_environment.version.environment.category


def episodes_export(selection: RolloutSelection, *, format: str = DEFAULT_FORMAT) -> Export[RolloutItem]:
    """Return the export of finished episodes, oldest first. Others are left out and counted.

    Raises UnknownName and ExportError.
    """
    export_format = ROLLOUT_FORMATS.require(format)
    sessions = _sessions(selection)
    if selection.model and not sessions.exists():
        labelled = _sessions(RolloutSelection(user=selection.user)).exclude(model="")
        models = labelled.order_by("model").values_list("model", flat=True).distinct()
        check_known("model", selection.model, models, "model")
    used = EnvironmentVersion.objects.filter(pk__in=sessions.order_by().values("case__version_id"))
    versions, viewer = list(used.select_related("environment")), selection.viewer
    held_out = [version for version in versions if is_held_out(version)]
    if selection.environment:
        refuse_held_out(held_out)
    excluded, defective = frozenset(version.pk for version in held_out), _defective(sessions)
    without_reasons = frozenset(
        version.pk for version in versions if viewer and not may_see_content(viewer, version.environment)
    )

    def read() -> Iterator[RolloutItem]:
        for session in sessions.iterator(chunk_size=CHUNK):
            yield EpisodeRollout(session, excluded, without_reasons, defective)

    return Export(export_format, read)


def export_episodes(
    path: Path, selection: RolloutSelection, *, format: str = DEFAULT_FORMAT, force: bool = False
) -> ExportReport:
    """Write finished episodes to *path*, if there are any. Raises UnknownName, ExportError and CannotWrite."""
    return episodes_export(selection, format=format).write_file(path, force=force)


def run_rollouts_export(run: Run, selection: RolloutSelection, *, format: str = DEFAULT_FORMAT) -> Export[RolloutItem]:
    """Return the export of every scored response of the models under test of *run*. Raises as `episodes_export`."""
    export_format = ROLLOUT_FORMATS.require(format)
    environments = find_run_environments(run, selection.environment)
    refuse_held_out(environment.version for environment in environments)
    model = find_run_model(run, selection.model)
    defective = frozenset(pk for environment in environments for pk in defective_cases(environment))

    def read() -> Iterator[RolloutItem]:
        for environment in environments:
            responses = Response.objects.filter(run_environment=environment, run_model__role="")
            if model is not None:
                responses = responses.filter(run_model=model)
            responses = responses.select_related("case", "run_model").prefetch_related("scores")
            ordered = responses.order_by("case__position", "run_model__position", "attempt")
            for response in ordered.iterator(chunk_size=CHUNK):
                response.run_environment = environment
                yield ResponseRollout(response, defective)

    return Export(export_format, read)


def export_run_rollouts(
    run: Run, path: Path, selection: RolloutSelection, *, format: str = DEFAULT_FORMAT, force: bool = False
) -> ExportReport:
    """Write the scored responses of *run* to *path*, if there are any. Raises as `export_episodes` does."""
    return run_rollouts_export(run, selection, format=format).write_file(path, force=force)


def _sessions(selection: RolloutSelection) -> QuerySet[EpisodeSession]:
    slug, _, number = selection.environment.partition("@")
    given: dict[str, object] = {
        "model": selection.model or None,
        "created_at__date__gte": selection.since,
        "case__version__environment__slug": slug or None,
        "case__version__version": number or None,
    }
    sessions = EpisodeSession.objects.all() if selection.user is None else visible_episodes(selection.user)
    sessions = sessions.filter(**{name: value for name, value in given.items() if value is not None})
    related = sessions.select_related("case__version__environment", "user")
    return related.defer("case__data", "case__version__manifest", "case__version__readme").order_by("created_at", "pk")


def _defective(sessions: QuerySet[EpisodeSession]) -> frozenset[int]:
    accepted = CaseDefect.objects.filter(
        status=CaseDefect.Status.ACCEPTED, case__in=sessions.order_by().values("case_id")
    )
    return frozenset(accepted.values_list("case_id", flat=True))


# ---- records ---------------------------------------------------------------------------------------------------------


def episode_record(session: EpisodeSession, *, reasons: bool) -> RolloutRecord:
    """Return the data of an episode. `usage` is null if the trainer did not send the usage of every step.

    reasons: include the reasons of the rules.
    """
    score, steps = session.score or {}, session.usage
    recordings: list[JSON] = [*session_recordings(session)]
    rules = score.get("rules", [])
    return {
        "rollout": str(session.pk),
        "source": "episode",
        **attempt_provenance(session.case.version, session.case.external_id, session.attempt, session.seed),
        "model": session.model,
        "reward": session.reward,
        "status": score.get("status", ""),
        "stop": session.state.get("stop", ""),
        "messages": [plain_message_with_reasoning(message) for message in session.state.get("messages", [])],
        "tools": tools_text(session.state.get("tools", [])),
        "usage": _total_usage(steps),
        "step_usage": steps,
        "group": session.group or None,
        "tokens": _step_tokens(session),
        "rules": rules if reasons else [{**rule, "reason": ""} for rule in rules],
        "recordings": recordings,
        "user": session.user.username,
        "created_at": session.created_at.isoformat(),
        "steps": session_steps(session),
    }


def _total_usage(steps: list[UsageCounts | None]) -> UsageCounts | None:
    known = [step for step in steps if step]
    if not known or len(known) < len(steps):
        return None
    return {
        "input": sum(step["input"] for step in known),
        "output": sum(step["output"] for step in known),
        "cached_input": sum(step["cached_input"] for step in known),
        "reasoning": sum(step["reasoning"] for step in known),
    }


def _step_tokens(session: EpisodeSession) -> list[StepTokens | None] | None:
    """Return the tokens of each step, null for steps without; null if the trainer sent none at all."""
    if not session.tokens:
        return None
    steps: list[StepTokens | None] = [*session.tokens, *[None] * (len(session.usage) - len(session.tokens))]
    return steps


def response_group(response: Response) -> str:
    """Return the id of the attempts of one model at one case of a run."""
    environment = response.run_environment
    names = [str(environment.version), response.case.external_id, response.run_model.label]
    return f"run-{environment.run_id}-{digest(names)[:16]}"


def response_record(response: Response, reward: float) -> RolloutRecord:
    """Return the data of a response of a run. The tokens of single steps are not stored with a response."""
    version, usage = response.run_environment.version, token_usage(response)
    return {
        "rollout": f"run-{response.run_environment.run_id}-response-{response.pk}",
        "source": "run",
        **attempt_provenance(version, response.case.external_id, response.attempt, response.seed),
        "model": response.run_model.label,
        "reward": reward,
        "status": response.status,
        "stop": response.stop,
        "messages": [plain_message_with_reasoning(message) for message in response.messages],
        "tools": tools_text(get_offered_tools(version, response.case)),
        "usage": usage if any(usage.values()) else None,
        "step_usage": None,
        "group": response_group(response),
        "tokens": None,
        "rules": [_rule(score) for score in sorted(response.scores.all(), key=lambda score: score.position)],
        "recordings": None,
        "user": None,
        "created_at": response.created_at.isoformat(),
        "steps": None if response.step_rewards is None else [{"reward": item} for item in response.step_rewards],
    }


def _rule(score: Score) -> dict[str, object]:
    """Return the score of a rule as episodes have it."""
    kept: dict[str, object] = {
        "rule": score.rule,
        "type": score.type,
        "value": score.value,
        "weight": score.weight,
        "reason": score.reason,
    }
    return {**kept, "trust": "in_process"} if score.detail.get("trust") == "in_process" else kept

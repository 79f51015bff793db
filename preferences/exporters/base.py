"""What every format shares: the pair that survived the linter, and how rows become a file."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hub.common.errors import UserError
from hub.protocols.calls import JSON, Message
from hub.protocols.messages import text_of
from preferences.models import Preference
from runs.models import Response


class ExportError(UserError):
    """This cannot be exported; the text says why."""


class CannotHold(Exception):
    """A format has no place for this preference; the text says why, in the words of a count."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an export, and the preference it came from."""

    preference: Preference
    data: dict[str, JSON]


def prompt_of(response: Response) -> list[Message]:
    """The messages before the first answer."""
    return response.messages[: _first(response)]


def completion_of(response: Response) -> list[Message]:
    """What was played: the assistant's turns, and what tools and users said between."""
    return response.messages[_first(response) :]


def _first(response: Response) -> int:
    return next((i for i, m in enumerate(response.messages) if m.get("role") == "assistant"), len(response.messages))


def prompt_text(response: Response) -> str:
    """The prompt as one text, its messages apart by an empty line."""
    return "\n\n".join(text_of(message) for message in prompt_of(response))


def completion_text(response: Response) -> str:
    """The one answer. Raises CannotHold for conversations and tool calls."""
    played = completion_of(response)
    if len(played) != 1 or played[0].get("tool_calls"):
        raise CannotHold("a conversation or tool calls, which plain text cannot hold: use trl-conversational")
    return text_of(played[0])


class Exporter(ABC):
    """One format. `suffix` is the data file's."""

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str] = ".jsonl"
    decisive_only: ClassVar[bool] = True  # ties and both-bad verdicts have no place in it

    @abstractmethod
    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        """The lines of one preference. Raises CannotHold."""

    def settled(self, rows: Callable[[], Iterator[Row]], dropped: Counter[str]) -> Iterator[Row]:
        """Without those that only all of them together show to be unfit, which are counted into *dropped*.

        *rows* gives them all, anew each time: there may be more than memory holds.
        """
        return rows()

    def write(self, rows: Iterable[Row], path: Path) -> None:
        """Write *rows* as the data file."""
        with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for row in rows:
                file.write(json.dumps(row.data, ensure_ascii=False) + "\n")


def sides(preference: Preference) -> tuple[Response, Response]:
    """(chosen, rejected) of a decisive preference. Raises CannotHold where they do not answer one and the same prompt.

    Trainers give both sides the one prompt and then wait for the assistant, so that it must end with the user's words.
    """
    chosen, rejected = preference.chosen, preference.rejected
    assert chosen is not None and rejected is not None
    prompt = prompt_of(chosen)
    if prompt != prompt_of(rejected):
        raise CannotHold("sides that were asked differently")
    if not prompt or prompt[-1].get("role") != "user":
        raise CannotHold("a prompt that does not end with the user's words")
    return chosen, rejected


def everything(preference: Preference) -> dict[str, Any]:
    """A preference with all that is known of it, as JSON; also the line of provenance without the texts."""
    first, second, defect = preference.first, preference.second, preference.defect
    return {
        "id": preference.pk,
        "verdict": preference.verdict,
        "source": preference.source,
        "reviewer": preference.reviewer.username if preference.reviewer else None,
        "judge": preference.judge or None,
        "judge_fingerprint": preference.judge_fingerprint or None,
        "prompt_version": preference.prompt_version or None,
        "confidence": preference.confidence,
        "order_sensitive": preference.order_sensitive,
        "orders": preference.orders,
        "order_critiques": [preference.tokens_to_phrases(text) for text in preference.order_critiques],
        "saw_evidence": preference.saw_evidence,
        "self_preference": preference.self_preference,
        "suggestion": preference.suggestion_id,
        "suggestion_taken": preference.suggestion_taken,
        "first_verdict": preference.first_verdict or None,
        "check_result": preference.check_result or None,
        "disputes_tests": preference.disputes_tests,
        "defect": {"id": defect.pk, "status": defect.status} if defect else None,
        "tests_found_wrong": preference.tests_found_wrong,
        "supersedes": preference.supersedes_id,
        "critique": preference.tokens_to_phrases(preference.critique),
        "issues": [
            {
                "side": "first" if issue.response_id == first.pk else "second",
                "category": issue.category.slug,
                "severity": issue.severity,
                "note": preference.tokens_to_phrases(issue.note),
                "message": issue.message,
                "call": issue.call,
                "start": issue.start,
                "end": issue.end,
                "quote": issue.quote,
                "prefix": issue.prefix,
                "suffix": issue.suffix,
                "text_hash": issue.text_hash,
            }
            for issue in preference.issues.all()
        ],
        "evidence": preference.evidence,
        "environment": str(preference.version),
        "environment_digest": preference.version.digest,
        "case": preference.case.external_id,
        "input_digest": preference.input_digest,
        "scoring_digest": preference.scoring_digest,
        "run": preference.run_id,
        "config_hash": preference.config_hash,
        "mlflow": preference.run.tracking.get("parent"),
        "first": _played(first),
        "second": _played(second),
        "seconds": preference.seconds,
        "created_at": preference.created_at.isoformat(),
    }


def _played(response: Response) -> dict[str, JSON]:
    """Which response a side is; the fingerprint digests the model's address and parameters."""
    model = response.run_model
    return {
        "response": response.pk,
        "model": model.label,
        "model_fingerprint": model.fingerprint,
        "attempt": response.attempt,
    }

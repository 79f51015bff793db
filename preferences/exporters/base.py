"""Base class and shared functions of the export formats."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hub.common.errors import UserError
from hub.protocols.messages import (
    JSON,
    Message,
    Tool,
    common_length,
    comparable,
    opening,
    plain_message,
    text_of,
    without_thoughts,
)
from hub.selectors import tools_offered
from preferences.models import Preference
from runs.models import Response

_CONVERSATION = "a conversation or tool calls, which plain text cannot hold: use trl-conversational"


class ExportError(UserError):
    """The export is not possible; the message says why."""


class CannotHold(Exception):
    """The format cannot represent a preference; the message completes "left out N: ..."."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of an export with its preference."""

    preference: Preference
    data: dict[str, JSON]


def prompt_text(messages: list[Message]) -> str:
    """Return a prompt as one text, with empty lines between messages. Raises CannotHold for conversations."""
    if any(message.get("role") in ("assistant", "tool") for message in messages):
        raise CannotHold(_CONVERSATION)
    return "\n\n".join(text_of(message) for message in messages)


def completion_text(messages: list[Message]) -> str:
    """Return the single answer without reasoning. Raises CannotHold for conversations and tool calls."""
    if len(messages) != 1 or messages[0].get("tool_calls"):
        raise CannotHold(_CONVERSATION)
    return text_of(trainable(messages)[0])


def trainable(messages: list[Message]) -> list[Message]:
    """Return messages as models are trained on them: without reasoning and keys of providers' own.

    Raises CannotHold if reasoning is all that an answer says.
    """
    found = []
    for message in messages:
        plain = without_thoughts(plain_message(message))
        if text_of(message) and not text_of(plain) and not plain.get("tool_calls"):
            raise CannotHold("an answer that is nothing but reasoning")
        found.append(plain)
    return found


class Exporter(ABC):
    """Export format. `suffix` is the file name suffix of the data file."""

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str] = ".jsonl"
    names_tools: ClassVar[bool] = False  # reads the case and the manifest of each preference
    decisive_only: ClassVar[bool] = True  # ties and both-bad verdicts have no place in it

    @abstractmethod
    def rows(self, preference: Preference) -> Iterator[dict[str, JSON]]:
        """Yield the rows of one preference. Raises CannotHold."""

    def settled(self, rows: Callable[[], Iterator[Row]], dropped: Counter[str]) -> Iterator[Row]:
        """Return the rows without those that are unfit in combination with others, counting these in *dropped*.

        *rows* returns a new iterator each time, because all rows may not fit into memory.
        """
        return rows()

    def write(self, rows: Iterable[Row], path: Path) -> None:
        """Write *rows* to the data file."""
        with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for row in rows:
                file.write(json.dumps(row.data, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class TrainingSides:
    """Shared prompt of a decisive preference, and the completions of both sides."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]


def sides(preference: Preference) -> TrainingSides:
    """Return the sides of a decisive preference. Raises CannotHold if they do not answer one and the same prompt.

    The prompt reaches to the first difference: of two conversations, what they have in common is not compared. Trainers
    give both sides the one prompt and then wait for the assistant, so it ends with a user's words or a tool's result.
    """
    chosen, rejected = preference.chosen, preference.rejected
    assert chosen is not None and rejected is not None
    ours, theirs = chosen.messages, rejected.messages
    if [comparable(m) for m in opening(ours)] != [comparable(m) for m in opening(theirs)]:
        raise CannotHold("sides that were asked differently")
    length = common_length(ours, theirs)
    if not length or ours[length - 1].get("role") not in ("user", "tool"):
        raise CannotHold("a prompt that does not end with the user's words")
    return TrainingSides(trainable(ours[:length]), trainable(ours[length:]), trainable(theirs[length:]))


def tools_of(preference: Preference) -> list[Tool]:
    """Return the tools offered to both sides; empty if only the code of the environment defines them."""
    return tools_offered(preference.version, preference.case) or []


def everything(preference: Preference) -> dict[str, Any]:
    """Return a preference with all its provenance as JSON, without the texts of the responses."""
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
    """Return the identity of a response; the fingerprint is a digest of the model's address and parameters."""
    model = response.run_model
    return {
        "response": response.pk,
        "model": model.label,
        "model_fingerprint": model.fingerprint,
        "attempt": response.attempt,
    }

"""Prompts of the pair judge."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hub.protocols.messages import Message, call_text, calls_of, text_of
from hub.protocols.structured_replies import DATA_RULE, enclose_data
from preferences.evidence import SideEvidence
from preferences.sides import Side

PROMPT_VERSION = "pair-1"
_PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseForJudge:
    """Response shown to the judge: its `label#attempt`, prompt and answer, and the scoring results as text."""

    label: str
    prompt: list[Message]
    answer: list[Message]
    evidence: str

    @property
    def messages(self) -> list[Message]:
        """Return the complete transcript."""
        return [*self.prompt, *self.answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairForJudge:
    """Pair shown to the judge. `blind`: exactly one side passes, so the prompt leaves out the scoring results."""

    environment: str
    case: str
    first: ResponseForJudge
    second: ResponseForJudge
    blind: bool
    categories: Sequence[tuple[str, str]]  # slug and description

    def response(self, side: Side) -> ResponseForJudge:
        """Return the response on *side*."""
        return self.first if side == "first" else self.second


@cache
def system_prompt(version: str) -> str:
    """Return the text of review/judge/prompts/<version>.txt. Prompts are never edited; changes get a new version."""
    return (_PROMPTS / f"{version}.txt").read_text("utf-8").strip() + "\n\n" + DATA_RULE


def prompt(pair: PairForJudge, a: ResponseForJudge, b: ResponseForJudge) -> list[Message]:
    """Return the messages: task, both responses, and the scoring results of each unless the judge is blind."""
    parts = [f"The task:\n{enclose_data('task', written(a.prompt))}"]
    for name, side in (("A", a), ("B", b)):
        parts.append(f"Response {name}:\n{enclose_data('response', written(side.answer))}")
        if not pair.blind:
            parts.append(f"What scoring found of {name}:\n{enclose_data('evidence', side.evidence)}")
    listed = "\n".join(f"- {slug}: {description}" for slug, description in pair.categories)
    parts.append(f"The categories:\n{listed}")
    return [
        {"role": "system", "content": system_prompt(PROMPT_VERSION)},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def written(messages: Sequence[Message]) -> str:
    """Return messages as text. If there are several, each is headed by its role. Tool calls are names and arguments."""
    blocks = []
    for message in messages:
        lines = [text_of(message)] if text_of(message) else []
        for call in calls_of(message):
            lines.append(f"calls {call_text(call)}")
        blocks.append((message.get("role", ""), "\n".join(lines)))
    if len(blocks) == 1:
        return blocks[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in blocks)


def render_evidence(side: SideEvidence) -> str:
    """Return the scoring results of one response as text."""
    lines = [f"{side['status']}, score {side['score']}"]
    for rule in side["rules"]:
        lines.append(f"{rule['rule']}: {rule['value']}. {rule['reason']}".strip())
        ran = rule["execution"]
        if ran:
            lines.append(f"  ran: {ran['status']}, {ran['passed']} of {ran['total']} tests held")
            if ran["failure"]:
                lines.append("  " + json.dumps(ran["failure"], ensure_ascii=False))
    return "\n".join(lines)

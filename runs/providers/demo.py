"""Provider `demo`: recorded answers to the environments that ship with the product. Needs no key and no network."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from django.conf import settings

from hub.bundles.cases import prepared_cases
from hub.bundles.loader import Bundle, open_bundle
from hub.bundles.reference_answers import RecordedCalls, ReferenceAnswers, assistant_messages
from hub.common import digests
from hub.common.problems import Problem
from hub.manifest.problems import BundleError
from hub.protocols.calls import CallKey, ModelError, Reply
from hub.protocols.messages import JSON, Message, text_of
from runs.providers.base import ModelRequest, ModelSpec, Provider, ProviderContext, ProviderOptions

_CATALOG = settings.BASE_DIR / "hub" / "catalog"
_RESPONSES = settings.BASE_DIR / "configs" / "responses"
Manner = Literal["careful", "hasty"]
# Answers written in the manner of a model. Cases without one get the bundle's own gold and wrong answers.
_WRITTEN: Mapping[str, Path] = {"careful": _RESPONSES / "recorded-a.jsonl", "hasty": _RESPONSES / "recorded-b.jsonl"}
# Share of the other cases that get a wrong answer of the bundle instead of a gold answer.
_WRONG_SHARE: Mapping[str, float] = {"careful": 0.2, "hasty": 0.45}
_NOTHING_TO_ADD: Message = {"role": "assistant", "content": "I have nothing to add."}


class DemoOptions(ProviderOptions):
    """Options of the provider. model: `careful` or `hasty`; a hasty model gives more wrong answers."""

    model: Manner = "careful"


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers to the cases of an environment: case id -> the messages of each answer, in order."""

    gold: dict[str, list[list[Message]]]
    wrong: dict[str, list[list[Message]]]
    recordings: RecordedCalls


@cache
def demo_environments() -> frozenset[str]:
    """Return the slugs of the environments that have recorded answers: in a file, or scripts for workspaces."""
    return frozenset(path.parent.name for name in ("gold.jsonl", "solution") for path in _CATALOG.glob(f"*/{name}"))


@cache
def _load_answers(slug: str) -> _Answers | None:
    if slug not in demo_environments():
        return None
    try:
        with open_bundle(_CATALOG / slug) as bundle:
            manifest = bundle.manifest
            recordings = RecordedCalls.read(manifest.recordings, bundle.file) if manifest.recordings else None
            gold, wrong = _read_answers(bundle, "gold"), _read_answers(bundle, "wrong")
            return _Answers(gold, wrong, recordings or RecordedCalls())
    except BundleError:
        return None


def _read_answers(bundle: Bundle, key: Literal["gold", "wrong"]) -> dict[str, list[list[Message]]]:
    """Return the answers of *bundle* by case. A script is a call of the tool `bash`. Raises BundleError."""
    found: dict[str, list[list[Message]]] = {}
    source = bundle.manifest.gold if key == "gold" else bundle.manifest.wrong
    with ReferenceAnswers(source, key, bundle.file) as answers:
        for prepared in prepared_cases(bundle.manifest, None, bundle.file):
            if isinstance(prepared, Problem):
                raise BundleError(prepared)
            found[prepared.case.id] = [answer.messages for answer in answers.of(prepared.case)]
    return found


@cache
def _written_answers(manner: str) -> dict[tuple[str, str], list[Message]]:
    rows = _rows(_WRITTEN[manner])
    return {(str(row["environment"]), str(row["case"])): assistant_messages(row["content"]) for row in rows}


def _rows(path: Path) -> list[dict[str, JSON]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@cache
def _files_digest() -> str:
    """Return a digest of all files with recorded answers, so that no stored reply outlives a change of them."""
    found = hashlib.sha256()
    scripts = (path for name in ("solution", "wrong") for path in _CATALOG.glob(f"*/{name}/*"))
    for path in sorted([*_CATALOG.glob("*/*.jsonl"), *scripts, *_WRITTEN.values()]):
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


class Demo(Provider[DemoOptions]):
    type = "demo"
    summary = "Recorded answers to the environments that ship with the product, to try it without a key."
    Options = DemoOptions
    live = False

    def __init__(self, spec: ModelSpec, options: DemoOptions, context: ProviderContext) -> None:
        super().__init__(spec, options, context)
        self._written = _written_answers(options.model)

    @classmethod
    def unanswered(cls, slug: str) -> str:
        if slug in demo_environments():
            return ""
        return f"has recorded answers only for environments that ship with the product, and none for {slug}"

    @classmethod
    def identity(cls, options: DemoOptions) -> dict[str, JSON]:
        return {"model": options.model, "sha256": _files_digest()}

    async def complete(self, request: ModelRequest) -> Reply:
        key = request.key
        answers = await asyncio.to_thread(_load_answers, key.environment)
        if answers is None:
            raise ModelError("no_recording", f"The demo model {self.unanswered(key.environment)}.", fatal=True)
        if key.purpose == "user":
            return await answers.recordings(key, ())
        if key.purpose == "rubric":
            return await self._judge(answers, request)
        if key.purpose != "answer":
            raise ModelError("no_recording", "The demo model does not compare pairs of responses.", fatal=True)
        messages = self._choose_answer(answers, key)
        message = messages[key.turn] if key.turn < len(messages) else _NOTHING_TO_ADD
        return Reply(message=message, finish_reason="tool_calls" if message.get("tool_calls") else "stop")

    def _choose_answer(self, answers: _Answers, key: CallKey) -> list[Message]:
        """Return the messages of the answer to this case and attempt; it is the same at each turn and in each run."""
        written = self._written.get((key.environment, key.case))
        if written is not None and key.attempt == 1:
            return written
        number = int(digests.digest([self.options.model, key.environment, key.case, key.attempt])[:12], 16)
        gold, wrong = answers.gold.get(key.case, []), answers.wrong.get(key.case, [])
        mistaken = number % 1000 < _WRONG_SHARE[self.options.model] * 1000
        found = (wrong or gold) if mistaken else (gold or wrong)
        if not found:
            raise ModelError("no_recording", f"The demo model has no answer to case {key.case!r} of {key.environment}.")
        return found[number // 1000 % len(found)]

    async def _judge(self, answers: _Answers, request: ModelRequest) -> Reply:
        """Return the recorded marks for the answer that the request shows."""
        key = request.key
        shown = "\n".join(text_of(message) for message in request.messages)
        for model, found in (("gold", answers.gold), ("wrong", answers.wrong)):
            for attempt, messages in enumerate(found.get(key.case, []), 1):
                if text_of(messages[-1]) in shown:
                    return await answers.recordings(replace(key, model=model, attempt=attempt), ())
        raise ModelError("no_recording", "As a judge, the demo model has marks only for answers of demo models.")

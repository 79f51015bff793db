"""Failing cases as training data, as text, as an environment to play again. A new format is an entry of FORMATS."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hub.bundles.answers import ReferenceAnswers
from hub.common.output_files import Outputs
from hub.common.registry import Registry
from hub.manifest.problems import BundleError
from hub.models import EnvironmentVersion
from hub.protocols.calls import total_cost
from hub.protocols.cases import CaseData
from hub.protocols.messages import JSON, Message, Tool, opening, plain_message, tools_text, with_parsed_arguments
from hub.selectors import tools_offered
from runs.exports.base import (
    CHUNK,
    ExportError,
    ExportReport,
    Failures,
    lines,
    opened,
    refuse_held_out,
    run_model,
    run_parts,
    usage_of,
)
from runs.exports.bundle import write_bundle
from runs.models import Response, Run, RunEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A way to write failing cases. Held-out environments are kept out of what is made for *training*."""

    summary: str
    training: bool
    write: Callable[[Failures, Path], ExportReport]


def export_failures(
    run: Run,
    path: Path,
    *,
    format: str,
    model: str | None = None,
    environment: str | None = None,
    q: str = "",
    flag: str = "",
    force: bool = False,
) -> ExportReport:
    """Write the failing cases of *run* to *path*, whole or not at all. Raises ExportError and CannotWrite.

    *model*, *environment*, *q* and *flag* narrow them as they narrow the list of responses. Nothing is written if
    nothing failed, or if everything was left out; over a file only with *force*.
    """
    chosen = FORMATS.require(format)
    failures = Failures(run=run, model=run_model(run, model), parts=run_parts(run, environment), q=q, flag=flag)
    if chosen.training:
        refuse_held_out((part.version for part in failures.parts), "or choose jsonl, which is not training data")
    with Outputs(force=force) as outputs:
        try:
            exported = chosen.write(failures, outputs.file(path))
        except BundleError as error:
            raise ExportError(f"The stored environment cannot be read: {error}") from None
    exported.files = outputs.written
    return exported


# ---- formats ---------------------------------------------------------------------------------------------------------


def _write_sft(failures: Failures, path: Path) -> ExportReport:
    def row(response: Response, messages: list[Message], tools: list[Tool]) -> dict[str, JSON]:
        return {
            "messages": [with_parsed_arguments(message) for message in messages],
            "tools": tools_text(tools) if tools else None,
            "environment": str(response.run_environment.version),
            "case": response.case.external_id,
            "model": response.run_model.label,
            "failed_response": response.text,
            "reason": response.reason,
        }

    return _write_gold(failures, path, row)


def _write_openai(failures: Failures, path: Path) -> ExportReport:
    def row(response: Response, messages: list[Message], tools: list[Tool]) -> dict[str, JSON]:
        return {"messages": messages, **({"tools": tools} if tools else {})}

    return _write_gold(failures, path, row)


def _write_gold(
    failures: Failures, path: Path, row: Callable[[Response, list[Message], list[Tool]], dict[str, JSON]]
) -> ExportReport:
    """Write a line for each case whose gold answer is one message, a text or calls of tools.

    If several models or attempts failed a case, the line is of the first failure.
    """
    exported = ExportReport()
    with lines(path, exported) as write:
        for part in failures.parts:
            with _gold(part.version) as gold:
                seen: set[int] = set()
                for response in failures.of(part).iterator(chunk_size=CHUNK):
                    if response.case_id in seen:
                        continue
                    seen.add(response.case_id)
                    response.run_environment = part
                    try:
                        write(_json(row(response, *_gold_messages(gold, response))))
                    except _LeftOut as why:
                        exported.left_out[str(why)] += 1
    return exported


@contextmanager
def _gold(version: EnvironmentVersion) -> Iterator[ReferenceAnswers]:
    with opened(version) as bundle, ReferenceAnswers(bundle.manifest.gold, "gold", bundle.file) as gold:
        yield gold


class _LeftOut(Exception):
    """A case is not exported; the text says why, in the words of a count."""


def _gold_messages(gold: ReferenceAnswers, response: Response) -> tuple[list[Message], list[Tool]]:
    """Return prompt and gold answer of the response's case, and the tools on offer. Raises _LeftOut."""
    prompt = opening(response.messages)
    if not prompt:
        raise _LeftOut("the transcript has no prompt")
    try:
        answers = gold.of(CaseData.from_json(response.case.data))
    except BundleError:
        raise _LeftOut("the template of the gold answers makes no text of the case") from None
    if not answers:
        raise _LeftOut("no gold answer")
    if len(answers[0].messages) > 1:
        raise _LeftOut(
            "the gold answer takes several turns, and what the environment would say between them is not stored"
        )
    tools = tools_offered(response.run_environment.version, response.case)
    answer = plain_message(answers[0].messages[0])
    if answer.get("tool_calls") and not tools:
        raise _LeftOut("the gold answer calls tools that are not stored with the environment")
    return [*(plain_message(message) for message in prompt), answer], tools or []


def _write_jsonl(failures: Failures, path: Path) -> ExportReport:
    """One line a failed response: the case, the transcript and every rule's verdict."""
    exported = ExportReport()
    with lines(path, exported) as write:
        for part in failures.parts:
            for response in failures.of(part).iterator(chunk_size=CHUNK):
                write(_json(_whole(failures.run, part, response)))
    return exported


def _json(row: dict[str, JSON]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _whole(run: Run, part: RunEnvironment, response: Response) -> dict[str, JSON]:
    return {
        "run": run.pk,
        "response": response.pk,
        "environment": str(part.version),
        "digest": part.version.digest,
        "case": response.case.external_id,
        "input_digest": response.case.input_digest,
        "scoring_digest": response.case.scoring_digest,
        "case_data": response.case.data,
        "model": response.run_model.label,
        "attempt": response.attempt,
        "seed": response.seed,
        "status": response.status,
        "score": response.score,
        "reason": response.reason,
        "finish_reason": response.finish_reason,
        "stop": response.stop,
        "truncated": response.truncated,
        "refused": response.refused,
        "messages": response.messages,
        "text": response.text,
        "usage": usage_of(response),
        "latency_ms": response.latency_ms,
        "cost_usd": total_cost([response.cost_usd, response.role_cost_usd]),
        "scores": [
            {
                "rule": score.rule,
                "type": score.type,
                "value": score.value,
                "weight": score.weight,
                "required": score.required,
                "reason": score.reason,
                "detail": score.detail,
                "execution": score.execution,
            }
            for score in response.scores.all()
        ],
    }


FORMATS: Registry[Format] = Registry("failure export format")
for _name, _format in {
    "sft": Format(
        summary='{"messages": prompt and gold answer, ...}, one line a case: supervised fine-tuning (TRL)',
        training=True,
        write=_write_sft,
    ),
    "openai": Format(
        summary='{"messages": prompt and gold answer}, one line a case: fine-tuning at OpenAI',
        training=True,
        write=_write_openai,
    ),
    "jsonl": Format(
        summary="everything known of each failed response, one line each", training=False, write=_write_jsonl
    ),
    "bundle": Format(summary="a new environment (.zip) of the failing cases alone", training=False, write=write_bundle),
}.items():
    FORMATS.register(_name, _format)

"""The rule `instructions`: the answer follows instructions that a program can verify."""

import json
from typing import Literal, cast

from pydantic import Field, ValidationError, field_validator, model_validator

from hub import extraction
from hub.common.documents.validation import describe_error
from hub.harnesses.base import Services
from hub.protocols.messages import JSON
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.constraints.base import Constraint
from hub.scorers.constraints.ifeval import AS_IN_IFEVAL
from hub.scorers.constraints.registry import CONSTRAINTS


class InstructionsOptions(ScorerOptions):
    """`ids`: kinds of instructions. `kwargs`: the keyword arguments of each, in the same order; nulls are ignored.

    `mode: loose` also accepts the answer without its first line, its last line, its asterisks, or a combination of
    these, as IFEval does. `checks: ifeval` counts sentences, words in capitals, paragraphs and placeholders and
    detects languages as IFEval's own checker does, for scores comparable with published ones. `partial`: score the
    share of instructions followed, rather than all or nothing.
    """

    ids: list[str] = Field(min_length=1)
    kwargs: list[dict[str, object]] = Field(default_factory=list)
    mode: Literal["strict", "loose"] = "strict"
    checks: Literal["standard", "ifeval"] = "standard"
    partial: bool = False

    @field_validator("ids", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("kwargs", mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        """Accept rows of tables: JSON text, and mappings that have null for keys that do not apply."""
        items = value if isinstance(value, list) else [value]
        read = [_from_json(item, number) if isinstance(item, str) else item or {} for number, item in enumerate(items)]
        return [{k: v for k, v in item.items() if v is not None} if isinstance(item, dict) else item for item in read]

    @model_validator(mode="after")
    def _known(self) -> "InstructionsOptions":
        if self.kwargs and len(self.kwargs) != len(self.ids):
            raise ValueError(f"{len(self.ids)} ids have {len(self.kwargs)} kwargs; give one mapping for each id")
        self.constraints()
        return self

    def constraints(self) -> list[Constraint]:
        """Return the constraints. Raises ValueError for an unknown kind and for wrong arguments."""
        arguments = self.kwargs or [{}] * len(self.ids)
        return [
            _constraint(name, kwargs, as_in_ifeval=self.checks == "ifeval")
            for name, kwargs in zip(self.ids, arguments, strict=True)
        ]


def _from_json(text: str, number: int) -> object:
    try:
        return cast(object, json.loads(text))
    except ValueError as error:
        raise ValueError(f"item {number} is text that is not JSON ({error}); write a mapping") from None
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None


def _constraint(name: str, arguments: dict[str, object], *, as_in_ifeval: bool) -> Constraint:
    if name not in CONSTRAINTS:
        raise ValueError(CONSTRAINTS.describe_unknown(name))
    kind = AS_IN_IFEVAL.get(name, CONSTRAINTS[name]) if as_in_ifeval else CONSTRAINTS[name]
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        # A misspelt key is also missing, and of the two problems it is the one to fix.
        first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
        place = ".".join([name, *(str(part) for part in first["loc"])])
        raise ValueError(f"{place}: {describe_error(first, kind)}") from None


class Instructions(Scorer[InstructionsOptions]):
    type = "instructions"
    summary = "The answer follows instructions that a program can verify."
    Options = InstructionsOptions

    async def score(self, options: InstructionsOptions, submission: Submission, services: Services) -> Verdict:
        text = extraction.without_reasoning(extraction.clean(submission.text))
        outcomes: list[JSON] = []
        broken: list[str] = []
        for name, constraint in zip(options.ids, options.constraints(), strict=True):
            strict = problem_of(constraint, text, loose=False)
            loose = strict and problem_of(constraint, text, loose=True)
            problem = loose if options.mode == "loose" else strict
            outcomes.append(
                {"id": name, "followed": not problem, "problem": problem, "strict": not strict, "loose": not loose}
            )
            if problem:
                broken.append(f"{name}: {problem}")
        followed, total = len(outcomes) - len(broken), len(outcomes)
        detail: dict[str, JSON] = {"instructions": outcomes, "followed": followed, "total": total}
        if not broken:
            return Verdict(value=1.0, reason=_describe_success(total), detail=detail)
        reason = f"{len(broken)} of {total} instructions not followed. {'; '.join(broken)[:600]}."
        return Verdict(value=followed / total if options.partial else 0.0, reason=reason, detail=detail)


def problem_of(constraint: Constraint, text: str, *, loose: bool) -> str:
    """Return the problem of *text*; "" if it, or with *loose* one of its variants, follows *constraint*."""
    if not text.strip():
        return "the answer is empty"
    problem = constraint.problem(text)
    if not problem or not loose:
        return problem
    held = any(variant.strip() and not constraint.problem(variant) for variant in variants(text))
    return "" if held else problem


def variants(text: str) -> list[str]:
    """Return the variants of IFEval's loose mode, which tolerates an introduction, a closing remark and emphasis.

    Eight texts, the first unchanged: with and without first line, last line, asterisks.
    """
    lines = text.split("\n")
    cuts = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    kept = [text, *cuts]
    return kept + [variant.replace("*", "") for variant in kept]


def _describe_success(total: int) -> str:
    return "The instruction is followed." if total == 1 else f"All {total} instructions are followed."

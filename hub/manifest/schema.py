"""Schema of environment.yaml as pydantic models. Unknown keys are errors; no file is read here."""

import re
from math import isfinite
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from hub.common.documents.validation import StrictNumbers
from sandbox.packages import get_versions

Category = Literal["instruction-following", "code-generation", "reasoning", "tool-use", "domain-knowledge"]
CATEGORIES: tuple[str, ...] = (
    "instruction-following",
    "code-generation",
    "reasoning",
    "tool-use",
    "domain-knowledge",
)
RESERVED_SLUGS = frozenset({"upload"})  # the site has a page at the address that its environment would have
SLUG = r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?"
# Semantic Versioning 2.0.0, without build metadata: two builds of one version would share a name.
_NUMBER = r"(?:0|[1-9][0-9]*)"  # not \d, which includes the digits of other scripts
_MARK = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
VERSION = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_MARK}(?:\.{_MARK})*)?"
MAX_VERSION = 64  # characters; the column's width
DATA_SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
CASE_FIELDS = ("id", "input", "target", "choices", "files", "metadata")


class Strict(StrictNumbers):
    model_config = ConfigDict(extra="forbid")


def is_data_path(path: str) -> bool:
    """Return whether the name has the suffix of a dataset, optionally followed by `.gz`."""
    return path.removesuffix(".gz").endswith(DATA_SUFFIXES)


def check_relative(path: str) -> str:
    """Return *path* if it is inside the bundle: relative, forward slashes, no `..`. Raises ValueError."""
    if path.startswith("/") or "\\" in path or ":" in path or any(p in ("", ".", "..") for p in path.split("/")):
        raise ValueError(f"{path!r} must be a relative path inside the bundle, such as data/cases.jsonl")
    return path


# Only owner/name: with a path, an address or the name of a loader, `datasets` would read files of this machine.
_HF_NAME = re.compile(
    r"(?=[^/]{1,96}/[^/]{1,96}\Z)(?!.*(?:\.\.|--))[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?/[A-Za-z0-9_](?:[\w.-]*\w)?", re.A
)


class Join(Strict):
    """A second data file whose columns are added to the rows of the first with the same value in column `on`."""

    path: str
    on: str


class Dataset(Strict):
    """Source of rows, a file of the bundle or the Hugging Face hub, and the mapping of columns to case fields.

    `where` is a template over the row; rows for which it is false are excluded. `columns` names the columns of a .csv
    that has no header.
    """

    path: str | None = None
    hf: str | None = None
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    join: Join | None = None
    columns: list[str] | None = None
    where: str | None = None
    fields: dict[str, object] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> "Dataset":
        if (self.path is None) == (self.hf is None):
            raise ValueError("give either `path` (a data file of the bundle) or `hf` (owner/name), not both")
        if self.hf is not None and not _HF_NAME.fullmatch(self.hf):
            raise ValueError(
                "`hf` must be the name of a dataset as its page has it, owner/name: letters, digits, `-`, `_` and `.`"
            )
        if self.hf is not None and not re.fullmatch(r"[0-9a-f]{40}", self.revision or ""):
            raise ValueError(
                "a dataset of the Hugging Face hub needs `revision`, the 40 hexadecimal digits of a commit "
                "(its page lists them under Files, History): branches and tags can change under the same name"
            )
        for path in (self.path, self.join.path if self.join else None):
            if path is not None and not is_data_path(check_relative(path)):
                raise ValueError(f"{path!r} must end in {', '.join(DATA_SUFFIXES)}, or one of these with .gz")
        if self.columns is not None and not (self.path or "").removesuffix(".gz").endswith(".csv"):
            raise ValueError("`columns` names the columns of a .csv without a header; other formats name their own")
        unknown = sorted(set(self.fields) - set(CASE_FIELDS))
        if unknown:
            raise ValueError(
                f"unknown case field {', '.join(unknown)}; the fields are {', '.join(CASE_FIELDS)}, "
                "and templates can use every column of the row"
            )
        return self


class HarnessSpec(BaseModel):
    """Harness: `type`, and keys that the harness itself validates."""

    model_config = ConfigDict(extra="allow")
    type: str = "single_turn"

    @property
    def options(self) -> dict[str, object]:
        return dict(self.__pydantic_extra__ or {})


class RuleSpec(StrictNumbers):
    """Scoring rule: the keys common to all rules, and keys that the scorer itself validates."""

    model_config = ConfigDict(extra="allow")
    type: str
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = ""
    weight: Annotated[float, Field(gt=0)] = 1.0
    when: bool | str = True
    required: bool = False

    @property
    def options(self) -> dict[str, object]:
        return dict(self.__pydantic_extra__ or {})


class Scoring(Strict):
    """Scoring: a response passes if sum(weight x score) / sum(weight) reaches `pass` and no `required` rule fails."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    pass_mark: Annotated[float, Field(alias="pass", ge=0, le=1)] = 1.0
    rules: list[RuleSpec] = Field(default_factory=lambda: [RuleSpec(type="reward", name="reward")])

    @model_validator(mode="after")
    def _names(self) -> "Scoring":
        if not self.rules:
            raise ValueError("`rules` is empty; leave it out to score by the harness's own reward")
        for rule in self.rules:
            rule.name = rule.name or rule.type
        if not isfinite(sum(rule.weight for rule in self.rules)):
            raise ValueError("the sum of the weights of the rules is not a finite number; give smaller weights")
        names = [rule.name for rule in self.rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two rules are named {', '.join(twice)}; give each a `name` of its own")
        return self


class Answers(Strict):
    """Gold or wrong answers made from each row.

    `content` for one turn, `messages` for several, `script` for a file of the bundle that the tool `bash` runs.
    """

    content: str | None = None
    messages: str | list[object] | None = None
    script: str | None = None

    @model_validator(mode="after")
    def _one(self) -> "Answers":
        if [self.content, self.messages, self.script].count(None) != 2:
            raise ValueError(
                "give one of `content` (one turn), `messages` (the assistant's turns) and `script` (a file to run)"
            )
        return self


def _answer_kind(value: object) -> str:
    return "template" if isinstance(value, dict | Answers) else "file"


# The type of the value selects the form, so that a mistake in one form is not also reported for the other.
AnswerSource = Annotated[Annotated[str, Tag("file")] | Annotated[Answers, Tag("template")], Discriminator(_answer_kind)]


class Manifest(Strict):
    """Contents of environment.yaml."""

    spec: Literal[1]
    slug: Annotated[str, Field(pattern=rf"^{SLUG}$")]
    version: Annotated[str, Field(pattern=rf"^{VERSION}$", max_length=MAX_VERSION)]
    title: Annotated[str, Field(min_length=1, max_length=120)]
    summary: Annotated[str, Field(min_length=1, max_length=400)]
    category: Category
    license: Annotated[str, Field(max_length=120)] = ""
    tags: list[Annotated[str, Field(pattern=rf"^{SLUG}$")]] = Field(default_factory=list, max_length=20)
    held_out: bool = False
    held_out_splits: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        default_factory=list, max_length=20
    )
    dataset: Dataset
    harness: HarnessSpec = Field(default_factory=HarnessSpec)
    scoring: Scoring = Field(default_factory=Scoring)
    packages: list[str] = Field(default_factory=list)  # what code and tests may import besides the standard library
    gold: AnswerSource | None = None
    wrong: AnswerSource | None = None
    recordings: str | None = None  # answers of role models (judges, simulated users), for the gates

    @field_validator("slug")
    @classmethod
    def _free_slug(cls, value: str) -> str:
        if value in RESERVED_SLUGS:
            raise ValueError(f"{value!r} is the name of a page of the site; choose another slug")
        return value

    @field_validator("packages")
    @classmethod
    def _known_packages(cls, value: list[str]) -> list[str]:
        unknown = [name for name in value if name not in get_versions()]
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)}: the sandbox has no such package; it can have {', '.join(get_versions())}"
            )
        return sorted(set(value))

    @field_validator("gold", "wrong", "recordings")
    @classmethod
    def _answer_files(cls, value: str | Answers | None) -> str | Answers | None:
        if isinstance(value, str) and not check_relative(value).removesuffix(".gz").endswith(".jsonl"):
            raise ValueError(f"{value!r} must be a .jsonl file of the bundle")
        return value


def version_key(version: str) -> tuple[object, ...]:
    """Return a sort key in the order of Semantic Versioning: numbers by value, a pre-release before its release."""
    core, _, pre = version.partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    marks = tuple((0, int(p), "") if re.fullmatch(r"\d+", p) else (1, 0, p) for p in pre.split(".")) if pre else ()
    return (*numbers, not pre, marks)

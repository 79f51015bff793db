"""Replies of the pair judge: their schema, and the variants that are accepted."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from hub.common.documents.validation import StrictNumbers


def _normalize_name(value: object) -> object:
    """Normalize a side or a winner that a model wrote in lower case, with emphasis or as "Response A"."""
    if not isinstance(value, str):
        return value
    word = re.sub(r"[^a-z]+", "_", value.lower()).strip("_")
    word = re.sub(r"^(?:the_)?(?:response|assistant|answer|side|model|candidate)_(?=[ab]$)", "", word)
    return word.upper() if word in ("a", "b") else word


def _parse_percentage(value: object) -> object:
    """Convert a confidence written as a percentage to a fraction."""
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
    return float(written[1]) / 100 if written else value


def _none_to_empty(value: object) -> object:
    return "" if value is None else value


_SideName = Annotated[Literal["A", "B"], BeforeValidator(_normalize_name)]


_Text = Annotated[str, BeforeValidator(_none_to_empty)]


class ReplyIssue(BaseModel):
    """Issue in a judge's reply."""

    model_config = ConfigDict(extra="ignore")
    side: _SideName
    category: _Text = ""
    severity: Literal["minor", "major", "critical"] = "major"
    quote: _Text = ""
    note: _Text = ""

    @field_validator("severity", mode="before")
    @classmethod
    def _normalize_severity(cls, value: object) -> object:
        written = value.strip().lower() if isinstance(value, str) else ""
        return written if written in ("minor", "major", "critical") else "major"


class PairVerdict(StrictNumbers):
    """Parsed reply of the judge for one order."""

    model_config = ConfigDict(extra="ignore")
    critique: _Text = ""
    issues: Annotated[list[ReplyIssue], BeforeValidator(lambda value: [] if value is None else value)] = Field(
        default_factory=list
    )
    winner: Annotated[Literal["A", "B", "tie", "both_bad"], BeforeValidator(_normalize_name)]
    confidence: Annotated[float, Field(ge=0, le=1), BeforeValidator(_parse_percentage)]

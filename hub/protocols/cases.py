"""Case of a dataset as harnesses and scorers read it, with the variables of its templates."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hub.protocols.messages import JSON, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseData:
    """Row of a dataset, mapped to the fields of a case.

    `input` is text or a list of chat messages; `files` maps a path to text or `{"b64": ...}`; `row` is the row itself.
    """

    id: str
    input: str | list[Message] = ""
    target: JSON = None
    choices: list[str] = field(default_factory=list)
    files: dict[str, JSON] = field(default_factory=dict)
    metadata: dict[str, JSON] = field(default_factory=dict)
    row: dict[str, JSON] = field(default_factory=dict)

    def variables(self) -> dict[str, object]:
        """Return the variables of templates: the columns of the row, overridden by the mapped fields, and `row`."""
        return {**self.row, **self.metadata, **self._fields()}

    def to_json(self) -> dict[str, JSON]:
        """Return the fields that are not empty, as stored and as passed to a bundle's code."""
        return {key: value for key, value in self._fields().items() if key == "id" or value not in (None, "", [], {})}

    def _fields(self) -> dict[str, JSON]:
        return {
            "id": self.id,
            "input": self.input,
            "target": self.target,
            "choices": self.choices,
            "files": self.files,
            "metadata": self.metadata,
            "row": self.row,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "CaseData":
        return cls(**data)


def file_bytes(content: JSON) -> bytes:
    """Return a file of a case as bytes: text as UTF-8, `{"b64": ...}` decoded."""
    if isinstance(content, dict):
        return base64.b64decode(content["b64"])
    return str(content).encode("utf-8", "surrogatepass")


def case_split(data: Mapping[str, object]) -> str:
    """Return the split of a stored case: the column `split` of its metadata or row; empty without one."""
    for part in ("metadata", "row"):
        columns = data.get(part)
        if isinstance(columns, dict) and "split" in columns:
            return str(columns["split"])
    return ""

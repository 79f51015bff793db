"""Pydantic's validation errors of environment.yaml as problems with a remedy. No side effects."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from hub.common import wording
from hub.common.documents.validation import describe_error, format_value
from hub.manifest.schema import Answers, Dataset, Join, Manifest, Scoring

_REMEDIES = {
    "spec": "Write `spec: 1`, the version of this format.",
    "slug": "Use lower-case letters, digits and hyphens, at most 64, such as order-desk.",
    "version": "Write three numbers such as 1.0.0.",
    "title": "Give a title of 1 to 120 characters.",
    "summary": "Describe in 1 to 400 characters what the environment measures.",
    "tags": "Give up to 20 words of lower-case letters, digits and hyphens.",
    "dataset": "Name a data file: `dataset: {path: cases.jsonl}`.",
    "weight": "Give a number above 0.",
    "pass": "Give a number from 0 to 1.",
    "type": "Name the rule's type, such as `type: exact_match`.",
    "name": "Use letters, digits, hyphens and underscores, at most 64.",
    "when": "Write true, false, or a template in quotes.",
}
_ANSWERS = 'Name a .jsonl file, or make the answers from the rows: `{content: "{{ target }}"}`.'
_FORMS = {"gold": _ANSWERS, "wrong": _ANSWERS}
_KNOWN: Mapping[str, type[BaseModel]] = {
    "": Manifest,
    "dataset": Dataset,
    "dataset.join": Join,
    "scoring": Scoring,
    "gold": Answers,
    "wrong": Answers,
}


def explain(item: ErrorDetails, path: Sequence[str | int]) -> tuple[str, str]:
    """Return (problem, remedy) for an entry of `ValidationError.errors()` at *path*."""
    last = str(path[-1]) if path else ""
    remedy = _REMEDIES.get(next((str(p) for p in reversed(path) if isinstance(p, str)), ""), "")
    if item["type"] == "missing":
        return "this key is missing", remedy
    if item["type"] == "extra_forbidden":
        return "unknown key", _known(last, ".".join(str(part) for part in path[:-1]))
    if item["type"] == "value_error":
        return item["msg"].removeprefix("Value error, "), _FORMS.get(last, "")
    if not path:
        return "the file must be a mapping of keys such as `slug: order-desk`", ""
    if item["type"] == "string_pattern_mismatch":
        return f"{format_value(item['input'])} does not have the required form", remedy
    return describe_error(item, Manifest), remedy


def _known(key: str, parent: str) -> str:
    model = _KNOWN.get(parent)
    if model is None:
        return ""
    names = [field.alias or name for name, field in model.model_fields.items()]
    similar = wording.find_similar(key, names)
    return f"Did you mean `{similar}`?" if similar else f"Known keys: {', '.join(names)}."

"""Registry of the formats of failing cases. To add one: a module here, a line below, a section in docs/exports.md."""

from hub.common.registry import Registry
from runs.exports.failure_formats.base import FailureFormat

FORMATS: Registry[FailureFormat] = Registry(
    "failure export format",
    {
        "sft": "runs.exports.failure_formats.sft:Sft",
        "openai": "runs.exports.failure_formats.openai:OpenAi",
        "jsonl": "runs.exports.failure_formats.jsonl:FailureJsonl",
        "bundle": "runs.exports.failure_formats.bundle:FailureBundle",
    },
    create=True,
)

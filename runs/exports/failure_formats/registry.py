"""Registry of the formats of failing cases. To add one: a module in this folder and a row in docs/exports.md."""

from hub.common.registry import Registry
from runs.exports.failure_formats.base import FailureFormat

FORMATS: Registry[FailureFormat] = Registry(
    "failure export format",
    FailureFormat,
    package="runs.exports.failure_formats",
    attribute="name",
    create=True,
    hyphens=True,
)

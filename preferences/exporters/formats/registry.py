"""Registry of export formats. To add one: a module in this folder and a row in docs/exports.md."""

from hub.common.registry import Registry
from preferences.exporters.formats.base import PreferenceFormat

FORMATS: Registry[PreferenceFormat] = Registry(
    "export format",
    PreferenceFormat,
    package="preferences.exporters.formats",
    attribute="name",
    create=True,
    hyphens=True,
)

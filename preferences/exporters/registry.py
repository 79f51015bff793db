"""Registry of export formats. To add one: a module in this folder, a line here and a section in docs/exports.md."""

from hub.common.registry import Registry
from preferences.exporters.base import PreferenceFormat

FORMATS: Registry[PreferenceFormat] = Registry(
    "export format",
    {
        "trl": "preferences.exporters.trl:Trl",
        "trl-conversational": "preferences.exporters.trl_conversational:TrlConversational",
        "kto": "preferences.exporters.kto:Kto",
        "openai-dpo": "preferences.exporters.openai_dpo:OpenAiDpo",
        "jsonl": "preferences.exporters.jsonl:PreferenceJsonl",
        "parquet": "preferences.exporters.parquet:Parquet",
    },
    create=True,
)

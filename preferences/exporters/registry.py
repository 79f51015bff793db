"""The formats by name; a new one is a file and a line here."""

from preferences.exporters.base import Exporter
from preferences.exporters.jsonl import Jsonl
from preferences.exporters.kto import Kto
from preferences.exporters.openai_dpo import OpenAiDpo
from preferences.exporters.parquet import Parquet
from preferences.exporters.trl import Trl
from preferences.exporters.trl_conversational import TrlConversational

FORMATS: dict[str, Exporter] = {
    exporter.name: exporter for exporter in (Trl(), TrlConversational(), Kto(), OpenAiDpo(), Jsonl(), Parquet())
}

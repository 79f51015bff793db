"""Extraction of answers from a model's text: code, numbers, choices, JSON and final answers. No side effects."""

from hub.extraction.choices import choice
from hub.extraction.fencing import Fence, fences
from hub.extraction.final import final_answer
from hub.extraction.jsontext import NoJSON, complete_json, json_value, json_values
from hub.extraction.numbers import NumberReading, number, quantity, read_number
from hub.extraction.programs import Code, code, continue_prefix
from hub.extraction.python import defines, undefined_names
from hub.extraction.quantities import Quantity, numbers, quantities
from hub.extraction.reading import answer_text, clean, without_reasoning

__all__ = [
    "Code",
    "Fence",
    "NoJSON",
    "NumberReading",
    "Quantity",
    "answer_text",
    "choice",
    "clean",
    "code",
    "complete_json",
    "continue_prefix",
    "defines",
    "fences",
    "final_answer",
    "json_value",
    "json_values",
    "number",
    "numbers",
    "quantities",
    "quantity",
    "read_number",
    "undefined_names",
    "without_reasoning",
]

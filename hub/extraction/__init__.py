"""Extraction of answers from a model's text: code, numbers, choices, JSON and final answers. No side effects."""

from hub.extraction.choices.answers import choice
from hub.extraction.corrections import announces_correction, is_refused
from hub.extraction.counterexamples import is_about_another_answer, is_counterexample
from hub.extraction.fences import Fence, fences
from hub.extraction.final_answers import final_answer, final_answer_as_written
from hub.extraction.json_values import LocatedValue, NoJSON, complete_json, json_value, json_values, locate_json
from hub.extraction.markup import strip_markup
from hub.extraction.normalization import answer_text, clean, without_reasoning
from hub.extraction.numeric.answers import number, quantity, read_number
from hub.extraction.numeric.quantities import Quantity, numbers, quantities
from hub.extraction.numeric.values import NumberReading
from hub.extraction.python_code.prefixes import continue_prefix
from hub.extraction.python_code.programs import Code, code
from hub.extraction.python_code.syntax import defines, undefined_names

__all__ = [
    "Code",
    "Fence",
    "LocatedValue",
    "NoJSON",
    "NumberReading",
    "Quantity",
    "announces_correction",
    "answer_text",
    "choice",
    "clean",
    "code",
    "complete_json",
    "continue_prefix",
    "defines",
    "fences",
    "final_answer",
    "final_answer_as_written",
    "is_about_another_answer",
    "is_counterexample",
    "is_refused",
    "json_value",
    "json_values",
    "locate_json",
    "number",
    "numbers",
    "quantities",
    "quantity",
    "read_number",
    "strip_markup",
    "undefined_names",
    "without_reasoning",
]

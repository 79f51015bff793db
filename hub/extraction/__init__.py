"""What a model meant as its answer: code, numbers, letters, JSON and text out of prose. Pure."""

from hub.extraction.answers import choice, final_answer, number, numbers
from hub.extraction.fencing import Fence, fences
from hub.extraction.jsontext import NoJSON, completed_json, json_value, json_values
from hub.extraction.programs import Code, code, continued
from hub.extraction.python import defines
from hub.extraction.reading import clean, spoken, without_reasoning

__all__ = [
    "Code",
    "Fence",
    "NoJSON",
    "choice",
    "clean",
    "code",
    "completed_json",
    "continued",
    "defines",
    "fences",
    "final_answer",
    "json_value",
    "json_values",
    "number",
    "numbers",
    "spoken",
    "without_reasoning",
]

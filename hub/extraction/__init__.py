"""What a model meant as its answer: code, numbers, letters, JSON and text out of prose. Pure."""

from hub.extraction.choices import choice
from hub.extraction.fencing import Fence, fences
from hub.extraction.final import final_answer
from hub.extraction.jsontext import NoJSON, completed_json, json_value, json_values
from hub.extraction.numbers import NumberReading, number, quantity, read_number
from hub.extraction.programs import Code, code, continued
from hub.extraction.python import defines, lacking
from hub.extraction.quantities import Quantity, numbers, quantities
from hub.extraction.reading import clean, spoken, without_reasoning

__all__ = [
    "Code",
    "Fence",
    "NoJSON",
    "NumberReading",
    "Quantity",
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
    "lacking",
    "number",
    "numbers",
    "quantities",
    "quantity",
    "read_number",
    "spoken",
    "without_reasoning",
]

"""Search, open and calculate over the handbook of Skerry Line, a ferry company that does not exist."""

import ast
import math
import operator
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "documents"
DOCUMENTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
MAX_HITS = 5


def search(query: str) -> list:
    """Find sections of the company's documents by words. Gives document, section and the beginning of the text.

    Args:
        query: A few words, for example "dog on board".
    """
    wanted = _words(query)
    scored = []
    for document, heading, text in _sections():
        have = _words(f"{document} {heading} {text}")
        titled = set(_words(f"{document} {heading}"))
        score = sum(_rarity(word) * (math.log1p(have.count(word)) + (word in titled)) for word in set(wanted))
        if score > 0:
            scored.append((-score, document, heading, text))
    scored.sort()
    return [
        {"document": document, "section": heading, "text": " ".join(text.split())[:160]}
        for _, document, heading, text in scored[:MAX_HITS]
    ]


def open_document(document: str) -> str:
    """Read a document whole.

    Args:
        document: Its name, as search gives it, for example glossary.
    """
    if document not in DOCUMENTS:
        raise ValueError(f"There is no document {document!r}. Use search to find one.")
    return DOCUMENTS[document]


def calculate(expression: str) -> float:
    """Calculate with + - * / ** // % ( ) and ceil, floor, round, min, max, sum over a list.

    Args:
        expression: For example "ceil(41 / 18 * 60)".
    """
    if len(expression) > 500:
        raise ValueError("The expression is too long.")
    return _value(ast.parse(expression.strip(), mode="eval").body)


# ---- sections and words ----------------------------------------------------------------------------------------------


def _sections():
    for document, text in DOCUMENTS.items():
        title = text.partition("\n")[0].removeprefix("# ")
        for part in re.split(r"^## ", text, flags=re.M):
            heading, _, body = part.partition("\n")
            if body.strip():
                yield document, heading.removeprefix("# ") or title, body


def _words(text):
    return [word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", text.lower())]


@cache
def _vocabularies():
    return [set(_words(f"{name} {text}")) for name, text in DOCUMENTS.items()]


def _rarity(word):
    found = sum(word in vocabulary for vocabulary in _vocabularies())
    return math.log(1 + len(DOCUMENTS) / found) if found else 0.0


# ---- arithmetic ------------------------------------------------------------------------------------------------------

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS = {
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "min": min,
    "max": max,
    "sum": sum,
    "abs": abs,
    "sqrt": math.sqrt,
}


def _value(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return -_value(node.operand) if isinstance(node.op, ast.USub) else _value(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = _value(node.left), _value(node.right)
        if abs(exponent) > 64:
            raise ValueError("The exponent is too large.")
        return base**exponent
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_value(argument) for argument in node.args))
    raise ValueError(f"{ast.unparse(node)} cannot be calculated.")

"""Tool schemas from type hints and docstrings of a file, and declared schemas of a dataset."""

import pytest

from hub.harnesses.steps.declared_tools import declared_tools
from hub.harnesses.steps.tool_schemas import ToolSourceError, parse_docstring, read_tools


def parameters(signature, before=""):
    source = f'{before}\ndef f({signature}):\n    """Do it."""\n'
    return read_tools(source.encode()).functions["f"].parameters


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        ("str", {"type": "string"}),
        ("float", {"type": "number"}),
        ("'int'", {"type": "integer"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("typing.List[str]", {"type": "array", "items": {"type": "string"}}),
        ("dict[str, bool]", {"type": "object", "additionalProperties": {"type": "boolean"}}),
        ("dict[str, Any]", {"type": "object", "additionalProperties": True}),
        ("dict", {"type": "object"}),
        ("Any", {}),
        ("str | None", {"type": ["string", "null"]}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("int | str | None", {"type": ["integer", "string", "null"]}),
        ("str | Any", {}),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Literal[1, 'b']", {"enum": [1, "b"]}),
        ("list[str] | None", {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}),
        ("Annotated[int, 'how many']", {"type": "integer", "description": "how many"}),
    ],
)
def test_type_hint_becomes_a_json_schema(hint, schema):
    assert parameters(f"x: {hint}")["properties"]["x"] == schema


def test_typed_dict_becomes_an_object_with_its_required_keys():
    before = "class Line(TypedDict):\n    sku: str\n    count: int\n    note: NotRequired[str]\n"
    assert parameters("line: Line", before)["properties"]["line"] == {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["sku", "count"],
        "additionalProperties": False,
    }


def test_type_aliases_of_the_module_are_resolved():
    before = "Kind = Literal['a', 'b']\nKinds = list[Kind]\n"
    assert parameters("k: Kinds", before)["properties"]["k"]["items"] == {"type": "string", "enum": ["a", "b"]}
    with pytest.raises(ToolSourceError, match="type hint A has no JSON form"):
        parameters("k: A", "A = B\nB = A\n")


def test_recursive_type_is_rejected():
    with pytest.raises(ToolSourceError, match="type hint Node has no JSON form"):
        parameters("n: Node", "class Node(TypedDict):\n    below: list['Node']\n")


def test_state_parameter_is_hidden_and_defaults_are_optional():
    schema = parameters("state, a: str, b: int = 3, *, c: str | None = None, d: str")
    assert list(schema["properties"]) == ["a", "b", "c", "d"]
    assert schema["required"] == ["a", "d"]
    assert schema["properties"]["b"]["default"] == 3
    assert "default" not in schema["properties"]["c"]


def test_descriptions_are_read_from_both_docstring_styles():
    summary = "Refund an order.\n\nIn full.\n\n"
    google = f"{summary}Args:\n    order: Which\n        one.\n    why (str): Reason.\n\nReturns:\n    x"
    sphinx = f"{summary}:param order: Which\n    one.\n:param str why: Reason.\n:returns: x"
    for text in (google, sphinx):
        parsed = parse_docstring(text)
        assert parsed.summary == "Refund an order.\n\nIn full."
        assert parsed.parameters == {"order": "Which one.", "why": "Reason."}


def test_private_functions_and_reset_are_not_tools():
    source = b'def reset(case, seed):\n    return {}\ndef _help(x): ...\ndef f(x: int):\n    """F."""\n'
    module = read_tools(source)
    assert (list(module.functions), module.has_reset) == (["f"], True)


def test_every_problem_of_a_file_is_reported_with_its_line():
    source = (
        b'async def a(): ...\ndef b(x: int): ...\ndef c(x, *y: int):\n    """C."""\ndef d(x: set[int]):\n    """D."""\n'
    )
    with pytest.raises(ToolSourceError) as caught:
        read_tools(source, "t.py")
    found = caught.value.problems
    assert [problem.split(": ")[0] for problem in found] == ["t.py:1", "t.py:2", "t.py:3", "t.py:3", "t.py:5"]
    words = ("async", "no docstring", "*args", "no type hint", "set[int]")
    assert all(word in problem for word, problem in zip(words, found, strict=True))


@pytest.mark.parametrize("source", [b"def f(:\n", b"x = 1\n", b"\0"])
def test_file_without_tools_is_rejected(source):
    with pytest.raises(ToolSourceError):
        read_tools(source)


def test_tools_file_is_parsed_without_execution():
    assert read_tools(b'raise SystemExit\ndef f():\n    """F."""\n').tools[0]["function"]["name"] == "f"


def test_declared_schemas_are_converted_to_json_schema_types():
    function = {
        "name": "math.hypot",
        "description": "Hypotenuse.",
        "parameters": {
            "type": "dict",
            "properties": {
                "type": {"type": "float", "description": "A parameter that is called type."},
                "sides": {"type": "tuple", "items": {"type": "any"}, "default": {"type": "dict"}},
            },
            "required": ["sides"],
        },
    }
    tools, declared = declared_tools([function])
    assert declared == {"math_hypot": "math.hypot"}
    assert tools == [
        {
            "type": "function",
            "function": {
                "name": "math_hypot",
                "description": "Hypotenuse.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "type": {"type": "number", "description": "A parameter that is called type."},
                        "sides": {"type": "array", "items": {}, "default": {"type": "dict"}},
                    },
                    "required": ["sides"],
                },
            },
        }
    ]


@pytest.mark.parametrize("functions", [["f"], [{"description": "x"}], [{"name": "a.b"}, {"name": "a_b"}]])
def test_invalid_tool_schemas_are_rejected(functions):
    with pytest.raises(ValueError, match="tool"):
        declared_tools(functions)


@pytest.mark.parametrize("hint", ["str", "int | None", "Literal['NY', 'TX']", "bool"])
def test_scalar_parameter_state_is_a_problem(hint):
    source = f'def ship(order: str, state: {hint}) -> str:\n    """Ship an order."""\n'.encode()
    with pytest.raises(ToolSourceError, match=r"tools.py:1: ship: parameter state has a scalar type"):
        read_tools(source)


@pytest.mark.parametrize("hint", ["", ": dict", ": Any", ": dict[str, int]", ": list"])
def test_parameter_state_of_the_episode_is_no_problem(hint):
    source = f'def ship(state{hint}, order: str) -> str:\n    """Ship an order."""\n'.encode()
    assert read_tools(source).functions["ship"].takes_state


def test_parameter_state_with_a_default_is_a_problem_that_names_the_tool_and_the_fix():
    source = b'def ship(order: str, state: dict = {}) -> str:\n    """Ship an order."""\n'
    with pytest.raises(
        ToolSourceError, match=r"tools.py:1: ship: parameter state has a default.*state_parameter: world"
    ):
        read_tools(source)


def test_state_parameter_makes_state_an_ordinary_parameter():
    source = (
        b'def ship(world, state: str) -> str:\n    """Ship to a state."""\n\n\ndef look() -> str:\n    """Look."""\n'
    )
    functions = read_tools(source, "tools.py", "world").functions
    assert (functions["ship"].takes_state, functions["look"].takes_state) == (True, False)
    assert functions["ship"].parameters["properties"] == {"state": {"type": "string"}}
    with pytest.raises(ToolSourceError, match="ship: parameter world has no type hint"):
        read_tools(source.replace(b"state: str", b"state"), "tools.py")

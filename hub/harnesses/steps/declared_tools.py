"""Tools that a bundle declares as function schemas, for example those of a published data set."""

import re
from typing import cast

from hub.protocols.messages import JSON, FunctionSchema, Tool

_WIRE_NAME = re.compile(r"[^a-zA-Z0-9_-]")
# Published function-calling data sets use type names of Python and Java; models get those of JSON Schema.
_TYPE_WORDS = {
    "dict": "object",
    "HashMap": "object",
    "hashmap": "object",
    "float": "number",
    "double": "number",
    "long": "integer",
    "int": "integer",
    "tuple": "array",
    "list": "array",
    "ArrayList": "array",
    "Array": "array",
    "char": "string",
    "String": "string",
    "str": "string",
    "bool": "boolean",
    "Boolean": "boolean",
}


def declared_tools(functions: list[dict[str, object]]) -> tuple[list[Tool], dict[str, str]]:
    """Return schemas of a data set as API tools, and the declared name of each tool that had to be renamed.

    Accepts API tools and plain `{name, description, parameters}`. In names, characters that endpoints reject
    (`math.sqrt`) are replaced by underscores. Raises ValueError.
    """
    tools: list[Tool] = []
    declared: dict[str, str] = {}
    for number, item in enumerate(functions):
        function = item.get("function", item) if isinstance(item, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
            raise ValueError(f"tool {number} is not a function schema; it needs a name, a description and parameters")
        name = _WIRE_NAME.sub("_", function["name"])[:64]
        if any(tool["function"]["name"] == name for tool in tools):
            raise ValueError(f"two tools are offered as {name!r}")
        if name != function["name"]:
            declared[name] = function["name"]
        parameters = json_schema(function.get("parameters") or {"type": "object", "properties": {}})
        schema = cast(
            FunctionSchema,
            {"name": name, "description": str(function.get("description", "")), "parameters": parameters},
        )
        tools.append({"type": "function", "function": schema})
    return tools, declared


def json_schema(schema: JSON) -> JSON:
    """Return *schema* with type names of Python and Java replaced by those of JSON Schema; `any` is removed."""
    if isinstance(schema, list):
        return [json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    clean = {key: value if key in ("enum", "default", "const") else json_schema(value) for key, value in schema.items()}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        # A property may itself be called "type" or "enum"; its name is not a keyword.
        clean["properties"] = {name: json_schema(value) for name, value in properties.items()}
    word = schema.get("type")
    if word in ("any", "Any"):
        del clean["type"]
    elif isinstance(word, str):
        clean["type"] = _TYPE_WORDS.get(word, word)
    return clean

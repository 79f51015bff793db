"""Jinja2 environment for templates of bundles: its filters, and the compilation of one template.

Both the site, which only parses templates, and the worker process that renders them use this environment.
"""

import json
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import regex
from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hub.common.wording import suggest

MAX_RENDERED = 4 * 1024 * 1024  # characters of one text

# The marks that control white space belong to the braces: in `{{ -x }}` the minus is the expression's own.
_LONE = re.compile(r"^\s*\{\{[-+]?(.*?)[-+]?\}\}\s*$", re.DOTALL)


class TooLong(ValueError):
    """Text of more than MAX_RENDERED characters."""

    def __init__(self) -> None:
        super().__init__(f"the result has more than {MAX_RENDERED:,} characters")


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Jinja2's sandboxed environment with the filters of bundles."""

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        self.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "sort_keys": True}
        self.filters["fromjson"] = json.loads
        self.filters["regex_search"] = _regex_search
        self.filters["first_alternatives"] = _first_alternatives
        self.globals.pop("lipsum")  # random text, so that a case would have another digest each time

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """Return a dict, since copying the chained mapping of Jinja2 took longer than a rendering."""
        return {**self.globals, **(d or {})}

    def parse_checked(self, source: str) -> nodes.Template:
        """Return the syntax tree of *source* without computing constants. Raises TemplateError."""
        tree = self.parse(source)
        for loading in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
            statement = "import" if isinstance(loading, nodes.FromImport) else type(loading).__name__.lower()
            raise TemplateSyntaxError(
                f"`{statement}` loads another template, and there is none to load; write its text here", loading.lineno
            )
        for node in tree.find_all((nodes.Filter, nodes.Test)):
            kind, known = ("filter", self.filters) if isinstance(node, nodes.Filter) else ("test", self.tests)
            if node.name not in known:
                raise TemplateSyntaxError(f"No {kind} named {node.name!r}; {suggest(node.name, known)}", node.lineno)
        return tree


class CompiledTemplate:
    """Compiled template. Only for the worker process, since compiling computes constants."""

    def __init__(self, env: TemplateEnvironment, source: str) -> None:
        expression = lone_expression(source, env.parse(source))
        self._expression = env.compile_expression(expression, undefined_to_none=False) if expression else None
        self._template = None if expression else env.from_string(source)

    def render(self, variables: Mapping[str, object]) -> object:
        """Return the text, or the value of a lone expression. Filters may raise any error."""
        if self._expression is not None:
            value = self._expression(variables)
            if isinstance(value, StrictUndefined):
                str(value)  # raises with the name that is missing
            return value
        assert self._template is not None
        pieces, size = [], 0
        for piece in self._template.generate(variables):
            size += len(piece)
            if size > MAX_RENDERED:
                raise TooLong
            pieces.append(piece)
        return "".join(pieces)


def lone_expression(source: str, tree: nodes.Template) -> str | None:
    """Return the expression of a template that consists of one `{{ expression }}` and white space."""
    if lone_node(tree) is None:
        return None
    match = _LONE.match(source)
    return match[1] if match else None


def lone_node(tree: nodes.Template) -> nodes.Expr | None:
    """Return the syntax tree of a lone expression."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = [n for n in tree.body[0].nodes if not (isinstance(n, nodes.TemplateData) and not n.data.strip())]
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


# ---- filters ---------------------------------------------------------------------------------------------------------


def _regex_search(text: str, pattern: str, group: int | str = 0) -> str:
    """Return the first match of *pattern* in *text*; the empty string if it, or its *group*, matches nothing."""
    match = regex.search(pattern, text)
    return "" if match is None else match[group] or ""


def _first_alternatives(parameters: dict[str, list[object]]) -> dict[str, object]:
    """Return one answer for {parameter: [accepted values]}. The value "" marks a parameter that may be left out.

    Mappings inside are of the same form, alone or in a list, as function-calling benchmarks write them.
    """
    chosen = {name: next((v for v in values if v != ""), None) for name, values in parameters.items()}
    return {name: _settle(value) for name, value in chosen.items() if value is not None}


def _settle(value: object) -> object:
    if isinstance(value, list):
        return [_settle(item) for item in value]
    if isinstance(value, dict) and all(isinstance(item, list) for item in value.values()):
        return _first_alternatives(value)
    return value

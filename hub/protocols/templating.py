"""Templates of a bundle: Jinja2, sandboxed, undefined names an error; one lone `{{ expression }}` keeps its type."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.nodes import Output, TemplateData

from hub.common.wording import meant
from hub.protocols.template_guard import check_syntax, guarded_environment, rendering_begins

# The marks that control white space belong to the braces: in `{{ -x }}` the minus is the expression's own.
_LONE = re.compile(r"^\s*\{\{[-+]?(.*?)[-+]?\}\}\s*$", re.DOTALL)
MAX_RENDERED = 4 * 1024 * 1024  # characters; a template that loops is stopped before it fills the memory


class RenderError(ValueError):
    """A template that does not compile or does not render for a case."""


_ENV = guarded_environment()


class Rendered:
    """A compiled template of one text: `render(variables)` gives a string, or the value of a lone expression."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            parsed = _ENV.parse(source)
            check_syntax(parsed)
            lone = _LONE.match(source) if _is_lone(parsed.body) else None
            self._expression = _ENV.compile_expression(lone[1], undefined_to_none=False) if lone else None
            self._template: Template | None = None if self._expression else _ENV.from_string(source)
        except TemplateError as error:
            raise RenderError(f"template {_short(source)} does not compile: {error}") from None

    def render(self, variables: Mapping[str, Any]) -> Any:
        """Raises RenderError, naming the template, where a name is undefined or a filter fails."""
        rendering_begins()
        try:
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
                    raise RenderError(f"template {_short(self.source)} renders more than {MAX_RENDERED:,} characters")
                pieces.append(piece)
            return "".join(pieces)
        except RenderError:
            raise
        except UndefinedError as error:
            missing = re.fullmatch(r"'(\w+)' is undefined", str(error))
            advice = f"; {meant(missing[1], variables)}" if missing else ""
            raise RenderError(f"template {_short(self.source)} does not render: {error}{advice}") from None
        except Exception as error:
            # Filters raise whatever they like (KeyError, ValueError, OverflowError); all of it is the bundle's mistake.
            raise RenderError(f"template {_short(self.source)} does not render: {error}") from None


def _is_lone(body: list[Any]) -> bool:
    """Whether the text is one `{{ expression }}` and nothing but white space around it."""
    nodes = [n for output in body if isinstance(output, Output) for n in output.nodes]
    if len(body) != 1 or not nodes:
        return False
    spoken = [n for n in nodes if not (isinstance(n, TemplateData) and not n.data.strip())]
    return len(spoken) == 1 and not isinstance(spoken[0], TemplateData)


def _short(source: str) -> str:
    flat = " ".join(source.split())
    return repr(flat if len(flat) <= 60 else flat[:57] + "...")


def is_template(text: str) -> bool:
    """Whether *text* has anything to render; all other text stands for itself."""
    return "{{" in text or "{%" in text


@lru_cache(maxsize=4096)
def compiled(source: str) -> Rendered:
    """The compiled template of *source*. Raises RenderError where it does not compile."""
    return Rendered(source)


def render(value: Any, variables: Mapping[str, Any]) -> Any:
    """*value* with every string in it, at any depth, rendered. Keys are left as they are."""
    if isinstance(value, str):
        return compiled(value).render(variables) if is_template(value) else value
    if isinstance(value, list):
        return [render(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: render(item, variables) for key, item in value.items()}
    return value


def truth(value: Any) -> bool:
    """Whether a rendered condition holds: text such as "False", "no" and "0" is taken by its meaning."""
    return value.strip().lower() not in ("", "false", "no", "0", "none") if isinstance(value, str) else bool(value)


def check(value: Any) -> list[str]:
    """The templates within *value* that do not compile, as sentences."""
    if isinstance(value, str) and is_template(value):
        try:
            compiled(value)
        except RenderError as error:
            return [str(error)]
        return []
    if isinstance(value, list):
        return [problem for item in value for problem in check(item)]
    if isinstance(value, dict):
        return [problem for item in value.values() for problem in check(item)]
    return []

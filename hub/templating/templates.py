"""Templates of bundles in Jinja2 syntax. Undefined names are errors; a lone `{{ expression }}` keeps its type.

Templates that only look up, compare and repeat data are interpreted in this process. All others are compiled and
rendered by a contained process with limits of memory and processor time (`renderers`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from jinja2 import TemplateError, UndefinedError, nodes

from hub.common.wording import suggest
from hub.templating.environment import TemplateEnvironment
from hub.templating.interpreter import NotPlain, PlainTemplate, size_of
from hub.templating.renderers import RENDERERS, ItemError

MAX_SOURCE = 256 * 1024  # characters of one template
MAX_TOTAL = 16 * 1024 * 1024  # characters, roughly, of everything rendered for one value

Job = tuple[object, Mapping[str, object]]  # a value with templates in it, and their variables


class RenderError(ValueError):
    """Template that does not compile or does not render for a case."""


_ENV = TemplateEnvironment()


class _Template:
    """Parsed template with the names of its variables; `plain` is None if it needs a renderer."""

    __slots__ = ("names", "plain", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        if len(source) > MAX_SOURCE:
            raise RenderError(
                f"template {_short(source)} has {len(source):,} characters; a template has at most {MAX_SOURCE:,}"
            )
        try:
            tree = _ENV.parse_checked(source)
            # Not `jinja2.meta`: it compiles, and compiling computes constants such as `"x" * 10 ** 9`.
            self.names = frozenset(node.name for node in tree.find_all(nodes.Name))
            try:
                self.plain: PlainTemplate | None = PlainTemplate(_ENV, source, tree)
            except NotPlain:
                self.plain = None
        except TemplateError as error:  # its text also has a line of the template
            raise RenderError(f"template {_short(source)} does not compile: {error.message}") from None
        except RecursionError:
            raise RenderError(f"template {_short(source)} does not compile: it is nested too deeply") from None
        except ValueError as error:  # such as a number of thousands of digits
            raise RenderError(f"template {_short(source)} does not compile: {error}") from None

    def failure(self, message: str) -> RenderError:
        return RenderError(f"template {_short(self.source)} does not render: {message}")

    def undefined(self, message: str, variables: Mapping[str, object]) -> RenderError:
        missing = re.fullmatch(r"'(\w+)' is undefined", message)
        return self.failure(f"{message}; {suggest(missing[1], variables)}" if missing else message)

    def interpret(self, variables: Mapping[str, object]) -> object:
        """Return the value. Raises NotPlain if the template needs a renderer, and RenderError."""
        if self.plain is None:
            raise NotPlain
        try:
            return self.plain.render(variables)
        except NotPlain:
            raise
        except UndefinedError as error:
            raise self.undefined(str(error), variables) from None
        except Exception as error:  # from comparisons and look-ups: TypeError, SecurityError, TooLong
            raise self.failure(str(error)) from None


def _short(source: str) -> str:
    flat = " ".join(source[:1000].split())
    return repr(flat if len(flat) <= 60 else flat[:57] + "...")


def is_template(text: str) -> bool:
    """Return whether *text* contains an expression or a statement to render."""
    return "{{" in text or "{%" in text


def has_template(value: object) -> bool:
    """Return whether a text in *value*, at any depth, is a template."""
    return any(True for _ in _sources(value))


@lru_cache(maxsize=1024)
def _parsed(source: str) -> _Template:
    return _Template(source)


# ---- rendering -------------------------------------------------------------------------------------------------------


def render(value: object, variables: Mapping[str, object]) -> object:
    """Return *value* with every string in it, at any depth, rendered. Keys are not rendered.

    Raises RenderError, naming the template, or TemplatesUnavailable if the templates need a renderer and none starts.
    """
    if isinstance(value, str) and not is_template(value):
        return value
    result = render_many([(value, variables)])[0]
    if isinstance(result, RenderError):
        raise result
    return result


def render_many(jobs: Sequence[Job]) -> list[object | RenderError]:
    """Render each job; a failed one gives its RenderError. Faster than rendering one at a time."""
    drafts = [_Rendering(value, variables) for value, variables in jobs]
    waiting = [draft for draft in drafts if draft.error is None and draft.waiting]
    if waiting:
        found = RENDERERS.render([draft.item() for draft in waiting])
        for draft, values in zip(waiting, found, strict=True):
            draft.fill(values)
    return [draft.result() for draft in drafts]


class _Rendering:
    """Rendering of one job: the values of its templates in order, some of which may still wait for a renderer."""

    def __init__(self, value: object, variables: Mapping[str, object]) -> None:
        self._value, self._variables = value, variables
        self._values: list[object] = []
        self.waiting: list[tuple[int, _Template]] = []
        self.error: RenderError | None = None
        self._left = MAX_TOTAL
        try:
            for source in _sources(value):
                template = _parsed(source)
                try:
                    self._values.append(self._counted(template, template.interpret(variables)))
                except NotPlain:
                    self.waiting.append((len(self._values), template))
                    self._values.append(None)
        except RenderError as error:
            self.error = error

    def _counted(self, template: _Template, value: object) -> object:
        self._left -= size_of(value, self._left)
        if self._left < 0:
            raise template.failure(f"with the others beside it, it has more than {MAX_TOTAL:,} characters")
        return value

    def item(self) -> tuple[tuple[str, ...], dict[str, object]]:
        """Return the templates for a renderer and the variables that they use."""
        names = {name for _, template in self.waiting for name in template.names}
        variables = {name: self._variables[name] for name in sorted(names) if name in self._variables}
        return tuple(template.source for _, template in self.waiting), variables

    def fill(self, found: list[object] | ItemError) -> None:
        if isinstance(found, ItemError):
            template = self.waiting[found.pick][1]
            undefined = found.kind == "undefined"
            self.error = template.undefined(str(found), self._variables) if undefined else template.failure(str(found))
            return
        try:
            for (place, template), value in zip(self.waiting, found, strict=True):
                self._values[place] = self._counted(template, value)
        except RenderError as error:
            self.error = error

    def result(self) -> object | RenderError:
        return self.error or _assembled(self._value, iter(self._values))


def _sources(value: object) -> Iterator[str]:
    """Yield the templates in *value*, in the order of `_assembled`."""
    if isinstance(value, str):
        if is_template(value):
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _sources(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _sources(item)


def _assembled(value: object, values: Iterator[object]) -> object:
    if isinstance(value, str):
        return next(values) if is_template(value) else value
    if isinstance(value, list):
        return [_assembled(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _assembled(item, values) for key, item in value.items()}
    return value


def truth(value: object) -> bool:
    """Return whether a rendered condition is true. Texts such as "False", "no" and "0" are false."""
    return value.strip().lower() not in ("", "false", "no", "0", "none") if isinstance(value, str) else bool(value)


def check(value: object) -> list[str]:
    """Return a message for each template within *value* that does not compile."""
    problems = []
    for source in _sources(value):
        try:
            _parsed(source)
        except RenderError as error:
            problems.append(str(error))
    return problems

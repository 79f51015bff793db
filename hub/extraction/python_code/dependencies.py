"""Removal of top-level statements that only use a program's definitions: examples, tests, input prompts, exits."""

import ast
import builtins
import symtable
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hub.extraction.fences import split_lines
from hub.extraction.python_code.syntax import parsed

_MAX_STATEMENTS = 1000  # a longer program is not analysed
_SHOWN = 80  # characters of a dropped statement that are reported
# Functions of the standard library that end, test or print something and change no state that code depends on.
_USES = frozenset(
    (
        *("exit", "_exit", "abort", "breakpoint", "set_trace", "sleep", "system"),
        *("main", "testmod", "testfile", "run_docstring_examples", "timeit", "repeat", "time", "perf_counter"),
        *("write", "writelines", "flush", "print", "pprint", "input", "read", "readline", "readlines"),
    )
)
_TEST_LIBRARIES = frozenset(("hypothesis", "nose", "parameterized", "pytest"))
_READING_METHODS = frozenset(("get", "items", "keys", "values", "copy", "index", "count", "join", "format", "split"))
_CHANGING_BUILTINS = frozenset(("setattr", "delattr", "exec", "eval", "next", "__import__"))
_BUILTINS = frozenset(dir(builtins))
_BY_NAME = frozenset(("globals", "eval", "exec", "vars", "locals"))  # code that reads these may read any name
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def without_usage(source: str, names: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return *source* without top-level statements that *names* do not depend on, and those statements, shortened.

    Definitions, imports, and every statement that binds or may change an object that *names* depend on are kept, for
    instance `cache = {}`, `fill(table)` or `sys.setrecursionlimit(...)`. The lines of a dropped statement are left
    empty, so that line numbers are those of the answer.
    """
    tree = parsed(source)
    if tree is None or not names or len(tree.body) > _MAX_STATEMENTS:
        return source, ()
    if all(
        isinstance(node, _DEFINITIONS)
        or (isinstance(node, _IMPORTS) and not _is_test_library(node))
        or _is_harmless(node)
        for node in tree.body
    ):
        return source, ()  # as most answers, whose names need not be looked up then
    program = _Program(source, tree, names)
    dropped = program.unneeded()
    if not dropped:
        return source, ()
    return _blanked(source, [statement.node for statement in dropped]), tuple(map(str, dropped))


def describe_line(number: int, line: str) -> str:
    """Return the description of a dropped line."""
    return f"line {number}: {line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}"


@dataclass(frozen=True, eq=False)
class _Statement:
    """One top-level statement: the names it binds, and the global names it reads, now or when it is called."""

    node: ast.stmt
    source: str
    binds: frozenset[str] = field(init=False)
    reads: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        table = symtable.symtable(self.source, "<answer>", "exec")
        top = table.get_symbols()
        bound = {s.get_name() for s in top if s.is_assigned() or s.is_imported() or s.is_namespace()}
        read = {s.get_name() for s in top if s.is_referenced()}
        pending = table.get_children()
        while pending:
            inner = pending.pop()
            pending += inner.get_children()
            read |= {s.get_name() for s in inner.get_symbols() if s.is_referenced() and s.is_global()}
        object.__setattr__(self, "binds", frozenset(bound))
        object.__setattr__(self, "reads", frozenset(read))

    def __str__(self) -> str:
        return describe_line(_first_line(self.node), self.source.strip().partition("\n")[0])

    @cached_property
    def is_definition(self) -> bool:
        return isinstance(self.node, _DEFINITIONS)

    @cached_property
    def is_import(self) -> bool:
        return isinstance(self.node, _IMPORTS)

    @cached_property
    def is_harmless(self) -> bool:
        return _is_harmless(self.node)

    @cached_property
    def read_at_definition(self) -> frozenset[str]:
        """Names that a definition reads when it is executed: decorators, defaults, annotations, bases, class bodies."""
        return frozenset(
            name.id for part in _evaluated(self.node) for name in ast.walk(part) if isinstance(name, ast.Name)
        )


class _Program:
    """The statements of a program and their effects on each other's names."""

    def __init__(self, source: str, tree: ast.Module, wanted: Collection[str]) -> None:
        lines = split_lines(source)
        self._wanted = frozenset(wanted)
        self.statements = [_Statement(node, _segment(source, lines, node)) for node in tree.body]
        self._callables = {s.node.name: s for s in self.statements if isinstance(s.node, _DEFINITIONS)}
        self._modules: dict[str, str] = {}  # names that imports bind, and the top-level module of each
        for statement in self.statements:
            self._modules |= _imported(statement.node)
        plain = [s for s in self.statements if not (isinstance(s.node, _FUNCTIONS) or s.is_import)]
        self._objects = {name for s in plain for name in s.binds}  # objects that a call could change
        self._made_with: dict[str, set[str]] = {}  # by name: the functions and classes that its value may come from
        for statement in self.statements:
            if not statement.is_definition:
                for name in statement.binds:
                    self._made_with.setdefault(name, set()).update(statement.reads & self._callables.keys())
        self._bound = frozenset(name for statement in self.statements for name in statement.binds)
        self._known_effects: dict[_Statement, tuple[frozenset[str], frozenset[str]]] = {}

    def unneeded(self) -> list[_Statement]:
        """Return the statements to drop, in order; none if no wanted name is bound."""
        if self._wanted.isdisjoint(self._bound):
            return []
        needed, kept = self._reached()
        for statement in self.statements:
            if statement.is_definition or statement.is_harmless:
                kept.add(statement)
        # The answer's own tests, with the libraries that only they need.
        libraries = {s for s in self.statements if s not in kept and s.is_import and _is_test_library(s.node)}
        of_tests = {name for s in libraries for name in s.binds}
        kept = {s for s in kept if not s.is_definition or s.binds & needed or s.reads.isdisjoint(of_tests)}
        # A definition that reads a dropped name while it is executed would fail.
        while True:
            have = {name for s in kept for name in s.binds}
            lost = {name for s in self.statements if s not in kept and not s.is_import for name in s.binds} - have
            broken = [
                s
                for s in kept
                if s.is_definition and not s.binds & needed and not s.read_at_definition.isdisjoint(lost)
            ]
            if not broken:
                break
            kept.difference_update(broken)
        read = {name for s in kept for name in s.reads}
        used = {name for s in self.statements if s not in kept and not s.is_import for name in s.reads}
        for statement in self.statements:
            only_used = statement.binds and statement.binds <= used - read
            unneeded = statement in libraries or (only_used and _may_be_missing(statement.node))
            if statement.is_import and not unneeded:
                kept.add(statement)
        return [s for s in self.statements if s not in kept]

    def _reached(self) -> tuple[set[str], set[_Statement]]:
        """Return the names that the wanted ones depend on, and the statements that bind or change them."""
        needed, kept = set(self._wanted), set[_Statement]()
        while True:
            if needed & _BY_NAME:
                needed |= {name for s in self.statements for name in s.binds}
            found = [s for s in self.statements if s not in kept and (s.binds & needed or self._changes(s, needed))]
            if not found:
                return needed, kept
            kept.update(found)
            needed.update(*(s.reads for s in found))

    def _changes(self, statement: _Statement, needed: set[str]) -> bool:
        """Return whether executing *statement* may change a needed object, or a setting of the standard library."""
        if statement.is_definition or statement.is_import or statement.is_harmless:
            return False
        if statement.reads & _BY_NAME and not needed <= self._bound | _BUILTINS:
            return True  # it may bind a name that nothing else binds
        sets_library = self._sets_library(statement.node) and not self._reads_wanted(statement)
        return sets_library or not self._touched(statement).isdisjoint(needed)

    def _reads_wanted(self, statement: _Statement) -> bool:
        """Return whether the statement uses a wanted name, directly or through functions of the program."""
        reached, pending = set[str](), set(statement.reads)
        while pending:
            reached |= pending
            found = {read for name in pending & self._callables.keys() for read in self._callables[name].reads}
            pending = found - reached
        return not reached.isdisjoint(self._wanted)

    def _sets_library(self, node: ast.stmt) -> bool:
        """Return whether the statement calls functions such as `sys.setrecursionlimit` or sets a library attribute."""
        for part in ast.walk(node):
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
                function = part.value.func
            elif isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
                function = part
            else:
                continue
            base, last = _base(function), _last_name(function)
            if isinstance(function, ast.Name) and function.id in self._callables:
                continue
            is_use = isinstance(part, ast.Expr) and last in _USES
            if self._modules.get(base or "", "") in sys.stdlib_module_names and not is_use:
                return True
            if base is None and isinstance(part, ast.Attribute | ast.Subscript):
                return True  # getcontext().prec = 50, globals()["x"] = 1
        return False

    def _touched(self, statement: _Statement) -> set[str]:
        """Return the names whose objects *statement* may change, directly or through functions of the program."""
        touched, pending = self._effects(statement)
        seen = set(self._wanted)  # calls of these are ignored, because the tests call them as well
        while pending := pending - seen:
            seen |= pending
            found = [self._effects(self._callables[name]) for name in pending]
            touched = touched.union(*(effects for effects, _ in found))
            pending = frozenset[str]().union(*(called for _, called in found))
        return set(touched)

    def _effects(self, statement: _Statement) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names whose objects *statement* itself may change, and the functions and classes that it calls."""
        if statement in self._known_effects:
            return self._known_effects[statement]
        touched: set[str] = set()
        called: set[str] = set()
        for part in ast.walk(statement.node):
            if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store | ast.Del):
                touched.add(_base(part) or "")
            elif isinstance(part, ast.Global):
                touched.update(part.names)
            elif isinstance(part, ast.Call):
                touched |= self._changed_by_call(part)
                called |= self._called(part)
        if statement.is_definition:  # local names of a function are not visible outside
            touched &= statement.reads | statement.binds | _declared(statement.node)
        effects = frozenset(touched), frozenset(called)
        self._known_effects[statement] = effects
        return effects

    def _called(self, call: ast.Call) -> set[str]:
        """Return the functions and classes of the program whose code *call* may run."""
        base = _base(call.func) or ""
        called = {base} & self._callables.keys()
        if isinstance(call.func, ast.Attribute):
            called |= self._made_with.get(base, set())
        return called

    def _changed_by_call(self, call: ast.Call) -> set[str]:
        """Return the objects that *call* may change: the owner of the method, and the arguments."""
        changed: set[str] = set()
        if isinstance(call.func, ast.Attribute) and call.func.attr not in _READING_METHODS:
            changed.add(_base(call.func) or "")
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if not hasattr(builtins, name) or name in _CHANGING_BUILTINS:
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            changed |= {part.id for arg in given if isinstance(part := _unstarred(arg), ast.Name)}
        return changed & self._objects


# ---- syntax ----------------------------------------------------------------------------------------------------------


def _first_line(node: ast.stmt) -> int:
    return int(min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]))


def _segment(source: str, lines: Sequence[str], node: ast.stmt) -> str:
    """Return the text of *node*, decorators included."""
    if getattr(node, "decorator_list", None):
        return "\n".join(lines[_first_line(node) - 1 : node.end_lineno])
    return ast.get_source_segment(source, node) or ast.unparse(node)


def _blanked(source: str, nodes: Sequence[ast.stmt]) -> str:
    """Return *source* with the text of *nodes* removed and their lines left empty."""
    lines = [line.encode() for line in source.split("\n")]
    for node in reversed(nodes):
        first, last = _first_line(node) - 1, (node.end_lineno or node.lineno) - 1
        start = node.col_offset if first == node.lineno - 1 else 0
        before, after = lines[first][:start], lines[last][node.end_col_offset or 0 :]
        rest = after.strip()
        after = b"" if not rest or rest.startswith(b"#") else after.lstrip(b" \t;")
        lines[first : last + 1] = [before.rstrip(b" \t") if not after else before + after] + [b""] * (last - first)
    return "\n".join(line.decode() for line in lines).rstrip("; \n") + "\n"


def _imported(node: ast.stmt) -> dict[str, str]:
    """Return the names that an import binds, and the top-level module of each."""
    if isinstance(node, ast.Import):
        return {(alias.asname or alias.name).split(".")[0]: alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: (node.module or "").split(".")[0] for alias in node.names}
    return {}


def _may_be_missing(node: ast.stmt) -> bool:
    """Return whether an import can fail, because it is not only from the standard library."""
    modules = set(_imported(node).values())
    return "*" not in _imported(node) and not modules <= sys.stdlib_module_names


def _is_test_library(node: ast.stmt) -> bool:
    modules = set(_imported(node).values())
    return bool(modules) and modules <= _TEST_LIBRARIES and "*" not in _imported(node)


def _base(node: ast.expr) -> str | None:
    """Return the name at the left end of `a.b[c].d`, None for another expression."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _declared(node: ast.stmt) -> set[str]:
    return {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}


def _is_harmless(node: ast.stmt) -> bool:
    """Return whether executing *node* can neither fail nor block: literals, docstrings, `pass`, a `__main__` guard."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) for target in node.targets) and _is_literal(node.value)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and _is_literal(node.value) and _is_simple(node.annotation)
    if isinstance(node, ast.If):
        return _is_main_guard(node.test) and not node.orelse
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_literal(node: ast.expr | None) -> bool:
    """Return whether *node* consists of literals, without names and calls."""
    if node is None:
        return True
    allowed = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.unaryop, ast.Load)
    return all(isinstance(part, allowed) for part in ast.walk(node))


def _is_simple(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Constant) or (
        isinstance(annotation, ast.Name) and hasattr(builtins, annotation.id)
    )


def _is_main_guard(test: ast.expr) -> bool:
    """Return whether *test* is `__name__ == "__main__"`, which is false while a function is tested."""
    return isinstance(test, ast.Compare) and "__name__" in ast.unparse(test) and "__main__" in ast.unparse(test)


def _evaluated(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a definition that are evaluated when it is executed."""
    if isinstance(node, _FUNCTIONS):
        arguments = node.args
        yield from node.decorator_list
        yield from [default for default in [*arguments.defaults, *arguments.kw_defaults] if default]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        yield from [argument.annotation for argument in every if argument and argument.annotation]
        if node.returns:
            yield node.returns
    elif isinstance(node, ast.ClassDef):
        yield from [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
        for inner in node.body:
            yield from _evaluated(inner)
    else:
        yield node

"""Names that tests use without defining them: where each is taken from."""

import ast
import builtins
import importlib
import sys
import types
from collections.abc import Collection
from typing import TypeGuard

from ..proxies.errors import Missing
from ..proxies.peer import Peer
from ..proxies.proxy import Proxy, state_of
from ..testing.recorder import BadTests
from .imports import missing_package

_NAMES_OF_SITE = frozenset("exit quit help copyright credits license".split())  # functions of the code have such names
_ENDS = frozenset(("exit", "quit"))
_ALIASES = {"np": "numpy", "pd": "pandas"}


class NeedsSharedProcess(Exception):
    """The tests can only run in the process of the code."""


def bind_names(
    tree: ast.Module,
    namespace: dict[str, object],
    peer: Peer,
    entry_point: str | None,
    modules: Collection[str],
    stubs: set[str],
) -> object:
    """Define the names that the tests need from the code, and return the entry point.

    modules  the modules of the code's project
    stubs    names of functions and classes without a body in the prompt: the tests mean those of the code

    Raises BadTests or NeedsSharedProcess.

    A name that this process can define is never taken from the code. If there is an entry point, no other name is
    either, except an exception class and a class that the entry point extends. `exit` and `quit` end the tests, unless
    the tests use them as other functions (see `names_that_end`). What the code defines does not matter, because it
    could otherwise keep tests from ending.
    """
    candidate = peer.find(entry_point) if entry_point else None
    free = free_names(tree)
    if entry_point:
        name, place = root_of(entry_point)
        if place == entry_point:
            namespace[name] = candidate
        elif name in free:  # the tests name the class whose method is the entry point
            namespace[name] = peer.find(place)
        namespace.setdefault("candidate", candidate)
    ends = names_that_end(tree)
    modules_named = library_modules(tree, free)
    for name in free:
        is_built_in = hasattr(builtins, name) and name not in _NAMES_OF_SITE
        if name not in stubs and (name in namespace or is_built_in or name in modules):
            continue
        if name in _ENDS and name not in stubs and (entry_point or name in ends):
            namespace[name] = sys.exit
            continue
        if name in modules_named:
            namespace[name] = import_library(name)
            continue
        namespace[name] = _related_class(name, candidate, peer) if entry_point else peer.find(name)
    return candidate


def root_of(entry_point: str) -> tuple[str, str]:
    """Return the first name of an entry point and its place: "Sums" and "calc:Sums" for "calc:Sums.add"."""
    module, colon, path = entry_point.rpartition(":")
    name = path.partition(".")[0]
    return name, f"{module}{colon}{name}"


def names_entry_point(tree: ast.Module, entry_point: str) -> bool:
    """Return whether the tests name the entry point: by its name, as `candidate`, or as the argument of `check`.

    A function or class of that name in the tests themselves is another one.
    """
    names = {root_of(entry_point)[0], "candidate"}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.discard(statement.name)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "check":
            names.update(arg.arg for arg in statement.args.args[:1])
    return not names.isdisjoint(_used_and_bound(tree)[0])


def library_modules(tree: ast.Module, free: Collection[str]) -> set[str]:
    """Return the free names of tests that are modules of libraries; in `copy(x)` a function of the code is meant."""
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return {name for name in free if name in _ALIASES or (name in sys.stdlib_module_names and name not in called)}


def import_library(name: str) -> types.ModuleType:
    """Import the module that tests mean by a name that they do not define, such as `np`. Raises BadTests."""
    module = _ALIASES.get(name, name)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_package(module) from error


def free_names(tree: ast.Module) -> list[str]:
    """Return the names that the text uses and defines nowhere, in order, also in programs for `eval` and `exec`."""
    used, bound = _used_and_bound(tree)
    return [name for name in used if name not in bound]


def _used_and_bound(tree: ast.Module) -> tuple[dict[str, None], set[str]]:
    """Return the names that the text reads, in order, and those that it binds anywhere."""
    used: dict[str, None] = {}
    bound: set[str] = set()
    nodes = list(ast.walk(tree))
    nodes += [node for call in nodes for node in ast.walk(_program_of(call))]
    for node in nodes:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used[node.id] = None
            else:
                bound.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
    return used, bound


def _program_of(node: ast.AST) -> ast.AST:
    """Return the parsed program of a call such as `eval("f(1)")`; an empty one for any other node."""
    match node:
        case ast.Call(func=ast.Name(id="eval" | "exec"), args=[ast.Constant(value=str(text))], keywords=[]):
            try:
                return ast.parse(text.strip())
            except (SyntaxError, ValueError):
                pass
    return ast.Module([], [])


def names_that_end(tree: ast.Module) -> set[str]:
    """Return those of `exit` and `quit` that end the tests.

    The others are functions of the code: the tests call them with several arguments, or compare, assign, assert or pass
    on the result of the call itself. In `return exit(1)` or `x = f(1) == 2 or exit(1)` they end the tests.
    """
    functions: set[str] = set()
    for node in ast.walk(tree):
        used: list[ast.expr | None] = []
        match node:
            case ast.Compare(left=left, comparators=comparators):
                used = [left, *comparators]
            case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.Assert(test=value):
                used = [value]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if len(args) + len(keywords) > 1:
                functions.add(name)
                used = [*args]
            case ast.Call(func=function, args=args):
                used = [*args]
                if isinstance(function, ast.Name) and function.id == "check":
                    functions.update(arg.id for arg in args if isinstance(arg, ast.Name))
        functions.update(
            call.func.id for call in used if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        )
    return set(_ENDS - functions)


def _related_class(name: str, candidate: object, peer: Peer) -> object:
    """Return an exception class of the code, or a class that the entry point extends.

    Raises NeedsSharedProcess for another class of the code, BadTests for every other name.
    """
    found: object = None
    if name[:1].isupper():
        on_lost, peer.on_lost = peer.on_lost, lambda signal: None
        try:
            found = peer.find(name)
        except Missing:
            pass  # reported below as a mistake of the tests
        finally:
            peer.on_lost = on_lost
    if isinstance(found, type):
        return found
    if _is_class_of_code(found) and _is_class_of_code(candidate):
        if state_of(found).class_name in state_of(candidate).names:
            return found
        raise NeedsSharedProcess(f"they use {name} of the code beside its entry point")
    raise BadTests(f"The tests use {name}, which neither they nor their setup define.")


def _is_class_of_code(value: object) -> TypeGuard[Proxy]:
    return isinstance(value, Proxy) and state_of(value).kind == "class"


# Names by which tests change or read the state of their process. Such tests must share it with the code.
_SHARED_STATE = frozenset(
    "patch monkeypatch capsys capfd caplog tmp_path redirect_stdout redirect_stderr redirect_stdin stdout stderr stdin "
    "assertLogs assertWarns catch_warnings warns chdir environ tempfile NamedTemporaryFile TemporaryDirectory seed "
    "setrecursionlimit getrecursionlimit setattr delattr open modules gc weakref getsource signature settrace "
    "iscoroutinefunction isgeneratorfunction isasyncgenfunction "
    "create_autospec autospec spy tracemalloc active_count enumerate_threads current_thread getsizeof".split()
)


def use_of_shared_state(tree: ast.Module) -> str:
    """Return why the tests need the process of the code, by the first name that acts on a process; else ""."""
    printing = {node for call in ast.walk(tree) for node in _streams_written(call)}
    for node in ast.walk(tree):
        if node in printing:
            continue
        name = ""
        if isinstance(node, ast.Name):
            name = node.id
        elif isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        if name in _SHARED_STATE:
            return f"they use `{name}`, which acts on its own process"
    return ""


def _streams_written(node: ast.AST) -> list[ast.AST]:
    """Return the streams to which a call prints, which changes nothing: `print(x, file=sys.stderr)`."""
    match node:
        case ast.Call(func=ast.Name(id="print"), keywords=keywords):
            return [keyword.value for keyword in keywords if keyword.arg == "file"]
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as stream, attr="write" | "flush")):
            return [stream]
    return []

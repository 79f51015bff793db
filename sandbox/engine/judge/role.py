"""The role that executes tests: it never runs the code under test, only asks the candidate's process about it."""

import ast
import builtins
import importlib
import importlib.machinery
import importlib.util
import random
import sys
import types
from collections.abc import Sequence
from typing import Any, TypeGuard

from ..candidate import program
from ..protocol import codec, frames
from ..protocol.channel import LINK, Channel
from ..protocol.error_reports import describe
from ..proxies.remote import Missing, Peer, Remote
from ..testing import pytest_api
from ..testing.units import BadTests, Recorder, asserts_nothing, units
from .verdict import Tally

LIBRARIES = frozenset(("numpy", "pandas", "pytest", "hypothesis", "scipy"))  # never a module of the code under test
_ALIASES = {"np": "numpy", "pd": "pandas"}


class NeedsProcess(Exception):
    """The tests can only be run in the process of the code."""


def run(job: dict[str, Any], channel: Channel) -> None:
    """Run `tests` against the candidate. Reports a verdict (see `Tally`) or {"bad_tests": sentence}."""
    random.seed()  # the candidate has the zygote's numbers, and must not know those of the tests
    try:
        report = _judge(job, channel)
    except BadTests as error:
        report = {"bad_tests": str(error)}
    except NeedsProcess as error:
        report = {"passed": 0, "total": 0, "failure": {"kind": "unsupported", "message": str(error)}}
    channel.send(frames.REPORT, codec.dumps(report))


def _judge(job: dict[str, Any], channel: Channel) -> dict[str, Any]:
    check_imports(job)
    recorder = Recorder()
    offer_pytest(job, recorder)
    namespace: dict[str, Any] = {"__name__": "tests", **recorder.hooks()}
    prompt, tree = _completed(job["prompt"])
    classes = frozenset(s.name for s in tree.body if isinstance(s, ast.ClassDef))
    functions = frozenset(s.name for s in tree.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef))
    stubs = set() if job["entry_point"] else stubs_of(tree)
    peer = Peer(Channel(LINK) if job["linked"] else channel, namespace, job["shared"], classes, functions)
    tally = Tally(recorder, peer)

    def end(signal: BaseException) -> None:
        """Report at once and end this process: an exception could be caught by the tests."""
        channel.send(frames.REPORT, codec.dumps(tally.lost(signal)))
        program.leave(0)

    peer.on_lost = end
    sys.meta_path.append(_ProjectFinder(peer, job["modules"]))  # last: what is installed here has the name
    define(namespace, recorder, prompt, "prompt", tree)
    define(namespace, recorder, job["setup"], "setup")
    text = job["tests"] if isinstance(job["tests"], str) else "\n".join(job["tests"])
    try:
        tree = ast.parse(text, "<tests>")
        if asserts_nothing(tree):
            raise BadTests("The tests assert nothing.")
        _import_first(tree, namespace)
        needs = shared_state(tree)
        peer.raise_lines = frozenset(
            statement.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.With)
            for statement in node.body
            if isinstance(statement, ast.Raise)
        )
    except SyntaxError as error:
        raise BadTests(f"The tests do not compile: {error.msg} (line {error.lineno}).") from None
    candidate = _bind(tree, namespace, peer, job, stubs)
    try:
        tally.reason = needs
        return tally.run(units(job["tests"], namespace, recorder, candidate, tree))
    except SyntaxError as error:  # one of a list of tests
        raise BadTests(f"A test does not compile: {error.msg}: {error.text}") from None


def check_imports(job: dict[str, Any]) -> None:
    """Raise BadTests if the tests or their setup import a package that is not installed here.

    That is the environment's mistake. Left to the run, it would look as if the code had failed.
    """
    tests = job["tests"] if isinstance(job["tests"], str) else "\n".join(job["tests"])
    text = f"{job['setup']}\n{tests}"
    mentioned = {
        name for name in LIBRARIES if name in text and name != "pytest"
    }  # most tests mention none, and need not be parsed here
    for name in sorted(mentioned & (_imported(tests) | _imported(job["setup"])) if mentioned else ()):
        if importlib.util.find_spec(name) is None:
            raise _absent(name)


def offer_pytest(job: dict[str, Any], recorder: Recorder) -> None:
    """Make `import pytest` work for tests that mention it, see `pytest_names`."""
    if pytest_api.uses_pytest(job["setup"], job["tests"]):
        pytest_api.install(recorder.count_raises)


def _absent(package: str) -> BadTests:
    return BadTests(
        f"The tests need {package}, which the sandbox does not offer them. Name it under `packages:` in "
        "environment.yaml; `manage.py sandbox_packages install` installs it."
    )


def _imported(source: str) -> set[str]:
    """The top-level modules that *source* imports, wherever in it, except where it handles their absence."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()  # reported when they are compiled
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
        elif not isinstance(node, ast.Try):
            waiting += ast.iter_child_nodes(node)
    return found


def define(
    namespace: dict[str, Any], recorder: Recorder, source: str, what: str, tree: ast.Module | None = None
) -> None:
    """Execute what the tests stand on, by the name that it is told by. Raises BadTests."""
    try:
        exec(recorder.compile(source, f"<{what}>", tree), namespace)
    except BaseException as error:
        told = describe(error, f"<{what}>")
        raise BadTests(f"The {what} of the tests failed: {told['type']}: {told['message']}") from None


def _completed(prompt: str) -> tuple[str, ast.Module]:
    """The prompt as a program: one that ends in a bare signature gets a body, one that is prose defines nothing."""
    for text in (prompt, prompt.rstrip() + "\n    pass\n"):
        try:
            return text, ast.parse(text, "<prompt>")
        except (SyntaxError, ValueError):
            continue
    return "", ast.Module([], [])


def _import_first(tree: ast.Module, namespace: dict[str, Any]) -> None:
    """Make star imports of the tests now, so that the names they bring are known. Raises BadTests."""
    stars: list[ast.stmt] = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"]
    try:
        exec(compile(ast.Module(stars, []), "<tests>", "exec"), namespace)
    except Exception as error:
        raise BadTests(f"An import of the tests failed: {error}") from None


# What tests use to change or read the state of the code's process. Asserts of such tests mean something there only.
_SHARED_STATE = frozenset(
    "patch monkeypatch capsys capfd caplog tmp_path redirect_stdout redirect_stderr redirect_stdin stdout stderr stdin "
    "assertLogs assertWarns catch_warnings warns chdir environ tempfile NamedTemporaryFile TemporaryDirectory seed "
    "setrecursionlimit getrecursionlimit setattr delattr open modules gc weakref getsource signature settrace "
    "create_autospec autospec spy tracemalloc active_count enumerate_threads current_thread getsizeof".split()
)


def shared_state(tree: ast.Module) -> str:
    """The first thing in the tests that needs the process of the code, as the reason why they are not isolated."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name):
            name = node.id
        elif isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        if name in _SHARED_STATE:
            return f"they use `{name}`, which works on the process that it is called in"
    return ""


def free_names(tree: ast.Module) -> list[str]:
    """Names that the text uses and nowhere defines, in order."""
    used: dict[str, None] = {}
    bound: set[str] = set()
    for node in ast.walk(tree):
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
    return [name for name in used if name not in bound]


def _bind(tree: ast.Module, namespace: dict[str, Any], peer: Peer, job: dict[str, Any], stubs: set[str]) -> Any:
    """Give the tests the names they need from the code, and return the entry point. Raises BadTests.

    stubs  what the prompt only announces, so that the code's is meant

    A name that this process can give is never taken from the code; nor, where there is an entry point, any other name
    than that of an exception class, or of a class that the entry point extends.
    """
    entry_point = job["entry_point"]
    candidate = peer.find(entry_point) if entry_point else None
    if entry_point:
        namespace[entry_point.rpartition(":")[2].split(".")[0]] = candidate
        namespace.setdefault("candidate", candidate)
    for name in free_names(tree):
        if name not in stubs and (name in namespace or hasattr(builtins, name) or name in job["modules"]):
            continue
        module = _ALIASES.get(name, name)
        if module in sys.stdlib_module_names or name in _ALIASES:
            try:
                namespace[name] = importlib.import_module(module)
                continue
            except ImportError as error:
                raise _absent(module) from error
        found = peer.find(name) if entry_point is None else _class_beside(name, candidate, peer)
        namespace[name] = found
    return candidate


def _class_beside(name: str, candidate: Any, peer: Peer) -> Any:
    """An exception class of the code, or a class that the entry point extends.

    Raises NeedsProcess for another class of the code, BadTests for every other name.
    """
    found: Any = None
    if name[:1].isupper():
        on_lost, peer.on_lost = peer.on_lost, lambda signal: None
        try:
            found = peer.find(name)
        except Missing:
            pass  # the tests' own fault
        finally:
            peer.on_lost = on_lost
    classes = [isinstance(value, Remote) and value._llm_kind == "class" for value in (found, candidate)]
    if isinstance(found, type) or (all(classes) and found._llm_names[0] in candidate._llm_names):
        return found
    if classes == [True, True]:
        raise NeedsProcess(f"they use {name} of the code beside its entry point")
    raise BadTests(f"The tests use {name}, which neither they nor their setup define.")


def stubs_of(prompt: ast.Module) -> set[str]:
    """Functions and classes that a prompt only announces: nothing in them but a docstring, `pass` or `...`."""
    return {s.name for s in prompt.body if is_stub(s)}


def is_stub(statement: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Whether a definition has nothing in it yet."""
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Raise) and "NotImplemented" in ast.unparse(s))
        or is_stub(s)
        for s in statement.body
    )


class _ProjectFinder:
    """Imports of the project's modules give proxies of what the candidate's process imports."""

    def __init__(self, peer: Peer, modules: Sequence[str]) -> None:
        self._peer, self._modules = peer, modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] not in self._modules:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> types.ModuleType:
        return _ProjectModule(spec.name, self._peer)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing runs here."""


class _ProjectModule(types.ModuleType):
    def __init__(self, name: str, peer: Peer) -> None:
        super().__init__(name)
        self.__dict__["_llm_peer"] = peer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._llm_peer.find(f"{self.__name__}:{name}")

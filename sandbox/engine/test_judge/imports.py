"""Imports of the tests: packages that must be installed, star imports, and the modules of the code's project."""

import ast
import importlib.machinery
import importlib.util
import types
from collections.abc import Collection, Sequence

from ..proxies.peer import Peer
from ..testing.recorder import BadTests
from ..testing.units import text_of

LIBRARIES = frozenset(("numpy", "pandas", "pytest", "hypothesis", "scipy"))  # never modules of the code under test


def check_imports(setup: str, tests: str | list[str]) -> None:
    """Raise BadTests if the tests or their setup import a package that is not installed.

    That is a mistake of the environment. A failed import during the run would look like a failure of the code.
    """
    text = text_of(tests)
    # Most tests mention no package, and need not be parsed here.
    mentioned = {name for name in LIBRARIES if name in f"{setup}\n{text}" and name != "pytest"}
    for name in sorted(mentioned & (_imported(text) | _imported(setup)) if mentioned else ()):
        if importlib.util.find_spec(name) is None:
            raise missing_package(name)


def missing_package(package: str) -> BadTests:
    """Return the error for a package that the tests need and that is not installed."""
    return BadTests(
        f"The tests need {package}, which the sandbox does not offer them. Name it under `packages:` in "
        "environment.yaml; `manage.py sandbox_packages install` installs it."
    )


def _imported(source: str) -> set[str]:
    """Return the top-level modules that the source imports, except in `try` statements."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()  # reported when the source is compiled
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


def names_imported(tree: ast.Module, modules: Collection[str]) -> set[str]:
    """Return the names that the text imports from these top-level modules, or by which it imports the modules."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                roots = [(alias, alias.name.partition(".")[0]) for alias in aliases]
                found |= {alias.asname or root for alias, root in roots if root in modules}
            case ast.ImportFrom(module=str(module), names=aliases, level=0) if module.partition(".")[0] in modules:
                found |= {alias.asname or alias.name for alias in aliases}
    return found


def execute_star_imports(tree: ast.Module, namespace: dict[str, object]) -> None:
    """Execute the star imports of the tests, so that the names that they define are known. Raises BadTests."""
    stars: list[ast.stmt] = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"]
    try:
        exec(compile(ast.Module(stars, []), "<tests>", "exec"), namespace)
    except Exception as error:
        raise BadTests(f"An import of the tests failed: {error}") from None


class ProjectFinder:
    """Import hook that gives the tests proxies for the modules of the code's project."""

    def __init__(self, peer: Peer, modules: Sequence[str]) -> None:
        self._peer, self._modules = peer, modules

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] not in self._modules:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _ProjectModule(spec.name, self._peer)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module's code runs in the candidate's process."""


class _ProjectModule(types.ModuleType):
    def __init__(self, name: str, peer: Peer) -> None:
        super().__init__(name)
        self.__dict__["_llm_peer"] = peer

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        peer: Peer = self.__dict__["_llm_peer"]
        return peer.find(f"{self.__name__}:{name}")

"""Standards of the code base that a linter does not check: see CONTRIBUTING.md."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import Model, UniqueConstraint

ROOT: Path = settings.BASE_DIR
APPS = ["llmeval_site", "review", "preferences", "runs", "hub", "sandbox"]
FIRST_PARTY = {*APPS, "tests", "benchmarks"}
# Programs that run elsewhere: code of bundles, and code that the sandbox's tests run inside the isolation.
NOT_CHECKED = ("hub/catalog/", "hub/starters/", "tests/sandbox/conformance/", "tests/sandbox/correct_solutions/")

# ---- limits ----------------------------------------------------------------------------------------------------------

MAX_MODULES = 15
LARGER_FOLDERS = {
    "hub/scorers": "one module per scorer",
    "tests/sandbox/conformance": "one module per group of attacks, and the programs that run them",
}
MAX_TEMPLATE_LINE = 160
# Uses of `Any` in annotations. Lower the number whenever you remove some; `object` is the type of unknown values.
MAX_ANY = 15

# Names with a leading underscore that the documentation of their package describes as public.
DOCUMENTED = {
    "_meta",  # django.db.models.Model
    "_state",
    "_default_manager",
    "_base_manager",
    "_asdict",  # namedtuple
    "_fields",
    "_replace",
}


# ---- files -----------------------------------------------------------------------------------------------------------


@cache
def python_files() -> list[str]:
    """Return the tracked Python files, relative to the root."""
    names = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.splitlines() if (ROOT / name).is_file()]


def template_files() -> list[str]:
    """Return the tracked Django templates, relative to the root."""
    names = subprocess.run(["git", "ls-files", "*.html"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.splitlines() if "templates" in Path(name).parts and (ROOT / name).is_file()]


@cache
def source(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(source(name), name)


def product_files() -> list[str]:
    return [
        name
        for name in python_files()
        if name.split("/")[0] in APPS and "/migrations/" not in name and not name.startswith(NOT_CHECKED)
    ]


# ---- private names of dependencies -----------------------------------------------------------------------------------


PRIVATE = re.compile(r"[.\s]_[a-zA-Z]")  # a quick test, which most files do not pass


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED


def is_third_party(module: str) -> bool:
    package = module.split(".")[0]
    if package.startswith("_"):  # an extension module of the standard library, perhaps of another version of Python
        return False
    return package not in FIRST_PARTY and package not in sys.stdlib_module_names


def root_name(node: ast.expr) -> str | None:
    """Return `a` for `a`, `a.b.c`, `a.b(...)`, `a[b]`, `a | None` and `"a"` (as in annotations)."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value) | ast.Call(func=value) | ast.Subscript(value=value) | ast.Await(value=value):
            return root_name(value)
        case ast.BinOp(left=left):
            return root_name(left)
        case ast.Constant(value=str(text)) if text.isidentifier():
            return text
    return None


def private_uses(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each private name of a third-party package that *module* imports or accesses.

    An object belongs to a third-party package if its name was imported from there, annotated with such a name, or
    assigned from a call of one.
    """
    third_party: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_third_party(alias.name):
                    third_party.add(alias.asname or alias.name.split(".")[0])
                    yield from ((node.lineno, alias.name) for part in alias.name.split(".") if is_private(part))
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0 and is_third_party(node.module):
            third_party |= {alias.asname or alias.name for alias in node.names}
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            yield from ((node.lineno, f"{node.module}: {name}") for name in names if is_private(name))
    yield from uses_in_scope(module, third_party)


def uses_in_scope(scope: ast.AST, known: set[str]) -> Iterator[tuple[int, str]]:
    """Yield private accesses in *scope*. *known*: names of third-party objects that are visible in it."""
    known = set(known)
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = scope.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            known.discard(argument.arg)
            if argument.annotation is not None and root_name(argument.annotation) in known:
                known.add(argument.arg)
    nodes = list(nodes_of_scope(scope))
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() | ast.Await() as value):
                known |= {name} if root_name(value) in known else set()
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                known |= {name} if root_name(annotation) in known else set()
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    if isinstance(item.optional_vars, ast.Name) and root_name(item.context_expr) in known:
                        known.add(item.optional_vars.id)
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and root_name(node.value) in known:
            yield node.lineno, ast.unparse(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from uses_in_scope(node, known)


def nodes_of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below *scope*, including nested functions and classes but not what is inside them."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from nodes_of_scope(child)


def test_private_uses_are_recognised() -> None:
    code = """
import openai
from openai._client import Client
from rest_framework.request import Request
def view(request: Request, own: "Own"):
    client = openai.AsyncOpenAI()
    return request._request, client._client, openai._base, own._value, request.user._meta
"""
    found = [name for _, name in private_uses(ast.parse(code))]
    assert found == ["openai._client: _client", "request._request", "client._client", "openai._base"]


def test_no_private_name_of_a_dependency_is_used() -> None:
    found = [
        f"{name}:{line}: {use}"
        for name in python_files()
        if not name.startswith(NOT_CHECKED) and PRIVATE.search(source(name))
        for line, use in private_uses(tree(name))
    ]
    assert not found


def test_no_private_method_of_a_dependency_is_overridden() -> None:
    found = []
    for module in modules():
        # Not inspect.getmembers, which looks up the Celery tasks of the module in the current app.
        for name, cls in vars(module).items():
            if not issubclass(type(cls), type) or cls.__module__ != module.__name__:
                continue
            bases = [base for base in cls.__mro__[1:] if is_third_party(base.__module__)]
            for attribute, value in vars(cls).items():
                written_here = inspect.isfunction(value) and value.__module__ == module.__name__
                if written_here and is_private(attribute) and any(attribute in vars(base) for base in bases):
                    found.append(f"{module.__name__}.{name}.{attribute}")
    assert not found


def modules() -> Iterator[ModuleType]:
    """Import and yield the modules of the apps. The engine is left out: it is started as a program."""
    for app in APPS:
        for info in pkgutil.walk_packages(importlib.import_module(app).__path__, f"{app}."):
            parts = info.name.split(".")
            if not {"migrations", "catalog", "engine", "__main__"} & set(parts):
                yield importlib.import_module(info.name)


# ---- layout, classes, types ------------------------------------------------------------------------------------------


def test_no_folder_has_many_modules_without_a_reason() -> None:
    sizes = Counter(
        str(Path(name).parent)
        for name in python_files()
        if not name.endswith("__init__.py") and "/migrations/" not in name and not name.startswith("hub/catalog/")
    )
    too_large = {folder: size for folder, size in sizes.items() if size > MAX_MODULES and folder not in LARGER_FOLDERS}
    assert not too_large, "Divide these folders by responsibility, or list them in LARGER_FOLDERS with a reason."
    assert all(sizes[folder] > MAX_MODULES for folder in LARGER_FOLDERS), "A folder in LARGER_FOLDERS is small now."


@pytest.mark.parametrize("app", APPS)
def test_class_names_are_unique_within_an_app(app: str) -> None:
    found = defaultdict(list)
    for name in product_files():
        if name.startswith(f"{app}/") and "/management/commands/" not in name:
            for node in tree(name).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(name)
    assert not {cls: names for cls, names in found.items() if len(names) > 1}


def test_annotations_with_any_stay_within_the_budget() -> None:
    counts = Counter(
        name
        for name in product_files()
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Name) and node.id == "Any"
    )
    total = sum(counts.values())
    assert total <= MAX_ANY, f"{total} uses of Any, {MAX_ANY} are allowed. Most are in: {counts.most_common(10)}"


# ---- templates -------------------------------------------------------------------------------------------------------


def test_no_line_of_a_template_is_too_long() -> None:
    names = template_files()
    assert len(names) > 50
    found = [
        f"{name}:{number}: {len(line)} characters"
        for name in names
        for number, line in enumerate(source(name).splitlines(), start=1)
        if len(line) > MAX_TEMPLATE_LINE
    ]
    assert not found, f"Break these lines, so that none is longer than {MAX_TEMPLATE_LINE} characters."


# ---- database --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [model for app in APPS for model in apps.get_app_config(app).get_models()])
def test_no_foreign_key_has_an_index_that_begins_another_one(model: type[Model]) -> None:
    leading = {index.fields[0] for index in model._meta.indexes if index.fields and index.condition is None}
    leading |= {
        constraint.fields[0]
        for constraint in model._meta.constraints
        if isinstance(constraint, UniqueConstraint) and constraint.fields and constraint.condition is None
    }
    # PostgreSQL prefers the shorter one of two while it has no statistics, and then sorts all rows of the key.
    redundant = [field.name for field in model._meta.local_fields if field.db_index and field.name in leading]
    assert not redundant, "Set db_index=False: an index of the model begins with these columns."

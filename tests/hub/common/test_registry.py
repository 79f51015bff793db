"""The registry class: files of a package, lazy imports, suggestions, double registration."""

import json
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest

import hub.common.registry
from hub.common.registry import InvalidMember, Registry, UnknownName
from hub.scorers.base import Scorer, ScorerOptions


class ReaderOptions:
    pass


class Reader(ABC):
    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    Options: ClassVar[type[ReaderOptions]] = ReaderOptions

    @abstractmethod
    def read(self) -> str: ...

    async def close(self) -> None:
        return


READER = """
from tests.hub.common.test_registry import Reader

class {title}(Reader):
    name = "{name}"

    def read(self):
        return "{title}"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "readers_of_a_test"
    folder.mkdir()
    for name in ("__init__", "base", "registry"):
        (folder / f"{name}.py").touch()
    (folder / "shared").mkdir()
    (folder / "shared" / "__init__.py").touch()
    (folder / "plain_text.py").write_text(READER.format(title="PlainText", name="plain-text"))
    (folder / "wave.py").write_text(READER.format(title="Wave", name="wave"))
    monkeypatch.syspath_prepend(tmp_path)
    for module in [module for module in sys.modules if module.startswith(folder.name)]:
        monkeypatch.delitem(sys.modules, module)
    return folder


def registry_of(package: Path, **options: bool) -> Registry[Reader]:
    return Registry("reader", Reader, package=package.name, attribute="name", create=True, hyphens=True, **options)


def test_modules_of_a_package_are_listed_without_importing_them(package: Path) -> None:
    registry = registry_of(package)
    assert list(registry) == ["plain-text", "wave"] and len(registry) == 2 and "wave" in registry
    assert f"{package.name}.wave" not in sys.modules


def test_only_the_requested_module_is_imported_and_one_instance_kept(package: Path) -> None:
    (package / "wave.py").write_text("raise RuntimeError('imported')")
    registry = registry_of(package)
    assert registry["plain-text"].read() == "PlainText"
    assert registry["plain-text"] is registry["plain-text"]
    with pytest.raises(RuntimeError, match="imported"):
        registry["wave"]


def test_threads_that_read_the_package_at_once_all_know_its_names(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_read = threading.Barrier(2)
    read = hub.common.registry.module_names

    def read_together(name: str) -> list[str]:
        both_read.wait(timeout=20)
        return read(name)

    monkeypatch.setattr(hub.common.registry, "module_names", read_together)
    registry = registry_of(package)
    with ThreadPoolExecutor(2) as threads:
        readers = list(threads.map(registry.require, ["wave", "wave"]))
    assert readers[0] is readers[1]
    assert list(registry) == ["plain-text", "wave"]


def test_second_package_adds_its_modules(package: Path) -> None:
    registry: Registry[Reader] = Registry("reader", Reader, create=True, hyphens=True)
    assert list(registry) == []
    registry.register_package(package.name)
    assert list(registry) == ["plain-text", "wave"]


def test_module_without_an_implementation_is_reported_with_its_file(package: Path) -> None:
    (package / "helpers.py").write_text("from tests.hub.common.test_registry import Reader\n")
    message = "readers_of_a_test/helpers.py must define one subclass of Reader, the reader 'helpers'; it defines none"
    with pytest.raises(InvalidMember, match=message):
        registry_of(package).require("helpers")


def test_module_with_two_implementations_is_reported(package: Path) -> None:
    (package / "wave.py").write_text(READER.format(title="A", name="wave") + READER.format(title="B", name="wave"))
    with pytest.raises(InvalidMember, match="it defines A, B"):
        registry_of(package).require("wave")


def test_class_whose_name_differs_from_its_module_is_reported(package: Path) -> None:
    (package / "wave.py").write_text(READER.format(title="Wave", name="waves"))
    with pytest.raises(InvalidMember, match=r"wave.py: Wave.name must be 'wave', like the module, not 'waves'"):
        registry_of(package).require("wave")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("Options = dict", "Wave.Options must be a subclass of ReaderOptions."),
        ("Options = {'key': 1}", "Wave.Options must be a subclass of ReaderOptions."),
        ("title = 3", "Wave.title must be text, not 3."),
        ("async def read(self): ...", "Wave.read must be `def read(...)`, not `async def`."),
        ("def close(self): ...", "Wave.close must be `async def close(...)`, not `def`."),
    ],
)
def test_mistake_in_a_class_is_reported_with_its_file(package: Path, body: str, message: str) -> None:
    (package / "wave.py").write_text(READER.format(title="Wave", name="wave") + f"\n    {body}\n")
    with pytest.raises(InvalidMember) as raised:
        registry_of(package).require("wave")
    assert str(raised.value) == f"readers_of_a_test/wave.py: {message}"


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        ("class Wave(Reader):\n    name = 'wave'\n", "it defines Wave without read."),
        ("class Wave:\n    name = 'wave'\n", "it defines none, only Wave."),
    ],
)
def test_class_that_cannot_be_the_implementation_is_named(package: Path, text: str, defined: str) -> None:
    (package / "wave.py").write_text(f"from tests.hub.common.test_registry import Reader\n\n{text}")
    with pytest.raises(InvalidMember, match=defined):
        registry_of(package).require("wave")


def test_scorer_without_its_class_variables_is_reported(package: Path) -> None:
    (package / "wave.py").write_text(
        "from hub.scorers.base import Scorer\n\nclass Wave(Scorer):\n    type = 'wave'\n    summary = ''\n\n"
        "    async def score(self, options, submission, services): ...\n"
    )
    scorers: Registry[Scorer[ScorerOptions]] = Registry("rule", Scorer, package=package.name, attribute="type")
    with pytest.raises(InvalidMember, match=r"wave\.py: Wave must define Options\."):
        scorers.require("wave")


@pytest.mark.parametrize(
    ("registry", "names"),
    [
        ("hub.scorers.registry:SCORERS", "choice custom exact_match includes instructions json_schema judge number "
         "python_tests regex reward state stdin_stdout tool_calls"),
        ("hub.harnesses.registry:HARNESSES", "code_repair custom multi_turn single_turn tools"),
        ("runs.providers.registry:PROVIDERS", "openai replay"),
        ("runs.exports.failure_formats.registry:FORMATS", "bundle jsonl openai sft"),
        ("runs.exports.rollout_formats.registry:ROLLOUT_FORMATS", "atif grpo grpo-objects jsonl sft sft-objects verl"),
        ("preferences.exporters.formats.registry:FORMATS", "jsonl kto openai-dpo parquet trl trl-conversational"),
        ("runs.stages:STAGES", "judge review tracking"),
    ],
)  # fmt: skip
def test_names_used_in_bundles_configs_and_commands_stay_registered(registry: str, names: str) -> None:
    module, _, attribute = registry.partition(":")
    found = getattr(__import__(module, fromlist=[attribute]), attribute)
    assert set(names.split()) <= set(found)
    assert all(found.values())


def test_listing_implementations_imports_none_of_them() -> None:
    """In a new process, because this one has imported many."""
    program = """
import django, json, sys
django.setup()
from hub.scorers.registry import SCORERS
from hub.harnesses.registry import HARNESSES
from runs.providers.registry import PROVIDERS
from runs.stages import STAGES
before = set(sys.modules)
names = [*SCORERS, *HARNESSES, *PROVIDERS, *STAGES]
heavy = [module for module in ("openai", "mlflow", "jsonschema") if module in sys.modules]
print(json.dumps([names, sorted(set(sys.modules) - before), heavy]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names, imported, heavy = json.loads(done.stdout)
    assert {"choice", "tools", "openai", "judge"} <= set(names)
    assert set(imported) <= {"review.stages"} and heavy == []  # a package, but none of its modules


def test_unknown_name_suggests_the_closest_or_lists_all() -> None:
    registry: Registry[int] = Registry("scorer")
    registry.register("choice", 1)
    registry.register("number", 2)
    with pytest.raises(UnknownName, match=r"^Unknown scorer 'chioce'; did you mean 'choice'\?$"):
        registry.require("chioce")
    with pytest.raises(UnknownName, match=r"^Unknown scorer 'xyz'; known are choice, number\.$"):
        registry.require("xyz")


def test_name_can_be_registered_once() -> None:
    registry: Registry[int] = Registry("scorer")
    registry.register("choice", 1)
    with pytest.raises(ValueError, match="registered twice"):
        registry.register("choice", 2)

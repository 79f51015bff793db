"""The jobs of the sandbox: test a function, run a program, call a function of a bundle."""

import json
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal, get_args

from sandbox.limits import MAX_FILES, MAX_FILES_BYTES, MAX_TEXT_LENGTH, Limits

Trust = Literal["isolated", "auto", "in_process"]


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise ValueError(f"{name} must be text, not {type(text).__name__}.")
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"{name} is longer than {MAX_TEXT_LENGTH} characters.")


def _check_files(files: Mapping[str, bytes]) -> None:
    if len(files) > MAX_FILES:
        raise ValueError(f"A job may have {MAX_FILES} files, not {len(files)}.")
    for path, content in files.items():
        parts = PurePosixPath(path).parts
        if not path or path.startswith("/") or ".." in parts or "\0" in path or "\\" in path or path != "/".join(parts):
            raise ValueError(f"File path {path!r} must be relative, with no '..', as in 'package/module.py'.")
        if not isinstance(content, bytes):
            raise ValueError(f"File {path} must be bytes, not {type(content).__name__}.")
    if sum(map(len, files.values())) > MAX_FILES_BYTES:
        raise ValueError(f"The files of a job may have {MAX_FILES_BYTES} bytes in all.")


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


@dataclass(frozen=True, slots=True)
class FunctionJob:
    """Test one or more functions that untrusted code defines.

    code         the candidate program, already extracted from the response
    entry_point  "name", "module:name" with `files`, or None if the tests name the functions themselves
    tests        a text that defines `check(candidate)`, or tests as unittest, `test_*` functions or bare asserts;
                 a list of assert lines; or a list of {"args": [], "kwargs": {}, "expect": value}
    setup        imports and helpers of the tests; the candidate never gets them
    prompt       definitions in the prompt of the case; the tests may use its helpers
    files        a project around the code, by relative path
    trust        "in_process": tests and code share a process, so that the code can forge the verdict; the outcome is
                 labelled. "auto": only if isolated judging ended with `unsupported`
    """

    code: str
    entry_point: str | None
    tests: str | list[str] | list[dict[str, object]]
    setup: str = ""
    prompt: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    trust: Trust = "isolated"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for name in ("code", "setup", "prompt"):
            _check_text(name, getattr(self, name))
        _check_files(self.files)
        self._check_entry_point()
        self._check_tests()
        if self.trust not in get_args(Trust):
            raise ValueError(f"trust must be one of {', '.join(get_args(Trust))}, not {self.trust!r}.")

    def _check_entry_point(self) -> None:
        if self.entry_point is None:
            return
        module, colon, name = self.entry_point.rpartition(":")
        if not _is_dotted_name(name) or (colon and not _is_dotted_name(module)):
            raise ValueError(f"entry_point must be 'function' or 'module:function', not {self.entry_point!r}.")

    def _check_tests(self) -> None:
        if isinstance(self.tests, str):
            _check_text("tests", self.tests)
            if not self.tests.strip():
                raise ValueError("tests must not be empty.")
            return
        if not isinstance(self.tests, list) or not self.tests:
            raise ValueError("tests must be a text, or a list of assert lines or of {args, kwargs, expect}, not empty.")
        if all(isinstance(test, str) for test in self.tests):
            _check_text("tests", "\n".join(map(str, self.tests)))
            return
        if self.entry_point is None:
            raise ValueError("Tests given as {args, kwargs, expect} need an entry_point to call.")
        for number, test in enumerate(self.tests, start=1):
            if not isinstance(test, dict) or "expect" not in test or not test.keys() <= {"args", "kwargs", "expect"}:
                raise ValueError(f"Test {number} must be a mapping with 'expect' and optionally 'args' and 'kwargs'.")
            if not isinstance(test.get("args", []), list) or not isinstance(test.get("kwargs", {}), dict):
                raise ValueError(f"Test {number}: 'args' must be a list and 'kwargs' a mapping.")


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """Run a program as `__main__`; the caller compares its output."""

    code: str
    stdin: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        _check_text("code", self.code)
        _check_text("stdin", self.stdin)
        _check_files(self.files)
        if not all(isinstance(word, str) for word in self.argv):
            raise ValueError("argv must contain texts only.")


@dataclass(frozen=True, slots=True)
class CallJob:
    """Call a function of a bundle (tools, harness, check, scoring). Arguments and result are JSON."""

    files: Mapping[str, bytes]
    module: str
    function: str
    args: Sequence[object] = field(default_factory=list)
    kwargs: Mapping[str, object] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    max_result_bytes: int = 1_048_576

    def __post_init__(self) -> None:
        _check_files(self.files)
        if self.module not in self.files:
            raise ValueError(f"module {self.module!r} is not among the files: {', '.join(self.files) or 'none'}.")
        if not self.module.endswith(".py"):
            raise ValueError(f"module must be the path of a .py file, not {self.module!r}.")
        if not self.function.isidentifier():
            raise ValueError(f"function must be a name, not {self.function!r}.")
        try:
            json.dumps([list(self.args), dict(self.kwargs)], allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"The arguments of {self.function} must be JSON: {error}.") from error


Job = FunctionJob | ProgramJob | CallJob

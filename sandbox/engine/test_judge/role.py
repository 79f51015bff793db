"""The role that runs tests in a process of their own: the code under test runs in the candidate's process."""

import ast
import random
import sys
from typing import TypedDict

from ..candidate import program
from ..candidate.definitions import MODULE
from ..protocol import codec, frames
from ..protocol.channel import LINK, Channel
from ..protocol.error_reports import describe
from ..proxies.peer import Peer
from ..proxies.proxy import Proxy, class_of
from ..testing import pytest_api
from ..testing.recorder import BadTests, Recorder
from ..testing.skips import may_depend_on_code
from ..testing.units import asserts_nothing, check_conditions, check_decorators, text_of, units
from .imports import ProjectFinder, check_imports, execute_star_imports, names_imported
from .names import NeedsSharedProcess, bind_names, names_entry_point, use_of_shared_state
from .prompt import parse_prompt, stubs_of
from .verdict import BadTestsReport, JudgeReport, VerdictBuilder


class JudgeInput(TypedDict):
    """The job of a judge.

    shared   names of classes of the prompt whose instances are encoded by their attributes
    modules  top-level modules of the code's project
    linked   whether there is a pipe to the candidate
    """

    prompt: str
    setup: str
    tests: str | list[str]
    entry_point: str | None
    shared: list[str]
    modules: list[str]
    linked: bool


def run(job: JudgeInput, channel: Channel) -> None:
    """Run the tests against the candidate. Reports a verdict (see `verdict`) or {"bad_tests": sentence}."""
    random.seed()  # the candidate has the zygote's random numbers, and must not know those of the tests
    report: JudgeReport | BadTestsReport
    try:
        report = _judge(job, channel)
    except BadTests as error:
        report = {"bad_tests": str(error)}
    except NeedsSharedProcess as error:
        report = {"passed": 0, "total": 0, "failure": {"kind": "unsupported", "message": str(error)}}
    channel.send(frames.REPORT, codec.dumps(report))


def _judge(job: JudgeInput, channel: Channel) -> JudgeReport:
    check_imports(job["setup"], job["tests"])
    recorder = Recorder(class_of=class_of)
    provide_pytest(job["setup"], job["tests"], recorder)
    namespace: dict[str, object] = {"__name__": "tests", "__file__": "tests.py", **recorder.hooks()}
    prompt, tree = parse_prompt(job["prompt"])
    classes = frozenset(s.name for s in tree.body if isinstance(s, ast.ClassDef))
    functions = frozenset(s.name for s in tree.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef))
    stubs = set() if job["entry_point"] else stubs_of(tree)
    peer = Peer(Channel(LINK) if job["linked"] else channel, namespace, job["shared"], classes, functions)
    builder = VerdictBuilder(recorder, peer)

    def end(signal: BaseException) -> None:
        """Report at once and end this process: tests could catch an exception."""
        channel.send(frames.REPORT, codec.dumps(builder.lost(signal)))
        program.exit_process(0)

    peer.on_lost = end
    modules = [*job["modules"], MODULE]
    sys.meta_path.append(ProjectFinder(peer, modules))  # last, so that installed modules take precedence
    execute_support(namespace, recorder, prompt, "prompt", tree)
    execute_support(namespace, recorder, job["setup"], "setup")
    text = text_of(job["tests"])
    try:
        tree = ast.parse(text, "<tests>")
    except SyntaxError as error:
        raise BadTests(f"The tests do not compile: {error.msg} (line {error.lineno}).") from None
    if asserts_nothing(tree):
        raise BadTests("The tests assert nothing.")
    check_conditions(tree)
    execute_star_imports(tree, namespace)
    builder.skips_may_depend_on_code = may_depend_on_code(job["setup"], text, tree)
    builder.reason = use_of_shared_state(tree)
    peer.raise_lines = _lines_that_raise(tree)
    candidate = bind_names(tree, namespace, peer, job["entry_point"], job["modules"], stubs)
    if job["entry_point"] and not names_entry_point(tree, job["entry_point"]):
        builder.own_requests = 1  # that for the entry point
    of_code = {name for name, value in namespace.items() if isinstance(value, Proxy)}
    check_decorators(tree, of_code | names_imported(tree, modules))
    try:
        return builder.run(units(job["tests"], namespace, recorder, candidate, tree))
    except SyntaxError as error:  # one of a list of tests
        raise BadTests(f"A test does not compile: {error.msg}: {error.text}") from None


def _lines_that_raise(tree: ast.Module) -> frozenset[int]:
    """Return the lines of `raise` statements directly in `with` blocks."""
    return frozenset(
        statement.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.With | ast.AsyncWith)
        for statement in node.body
        if isinstance(statement, ast.Raise)
    )


def provide_pytest(setup: str, tests: str | list[str], recorder: Recorder) -> None:
    """Make `import pytest` work for tests that mention it, see `pytest_api`."""
    if pytest_api.uses_pytest(setup, tests):
        pytest_api.install(recorder.count_raises)


def execute_support(
    namespace: dict[str, object], recorder: Recorder, source: str, kind: str, tree: ast.Module | None = None
) -> None:
    """Execute the prompt or the setup that tests rely on; `kind` names it in messages. Raises BadTests."""
    try:
        exec(recorder.compile(source, f"<{kind}>", tree), namespace)
    except BaseException as error:
        report = describe(error, f"<{kind}>")
        raise BadTests(f"The {kind} of the tests failed: {report['type']}: {report['message']}") from None

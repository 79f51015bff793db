"""`packages` of an environment with the harness `workspace`: in the box of the agent and in that for scoring."""

from collections.abc import Iterator
from typing import Any

import pytest

from hub.environments.compiled import CompileError
from hub.harnesses.base import HarnessError
from hub.protocols.cases import CaseData
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces import shared
from sandbox.workspaces.base import PackagesUnsuitable, WorkspaceEngine
from tests.hub.playing import calls, environment, episode
from tests.sandbox import containers
from tests.sandbox.workspaces.engines import make_engine

RULE = {"name": "tests", "type": "workspace_script", "path": "tests/test.py", "timeout_s": 60}
CHECK = """#!/usr/bin/env python3
import numpy, pandas
values = numpy.array(pandas.read_csv("answer.csv")["value"])
assert numpy.__file__ == "/opt/packages/numpy/__init__.py"
assert list(values) == [1, 4, 9], values
"""
ANSWER = "import numpy, pandas; pandas.DataFrame({'value': numpy.arange(1, 4) ** 2}).to_csv('answer.csv')"
DONE: Any = {"role": "assistant", "content": "Done."}
LIMITS = {"memory_mb": 512, "disk_mb": 16, "pids": 64}


@pytest.fixture(params=containers.ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkspaceEngine]:
    made = make_engine(request.param, packages_image=containers.image("packages"))
    monkeypatch.setattr(shared, "_engine", made)
    yield made


def harness(**options: Any) -> dict[str, Any]:
    return {"type": "workspace", "image": containers.image(), "limits": LIMITS, "call_seconds": 60, **options}


def play(packages: list[str], **options: Any) -> Any:
    files = {"tests/test.py": CHECK, **options.pop("files", {})}
    case = CaseData(id="c", input="Write squares.")
    return episode(harness(**options), files=files, rules=[RULE], case=case, pool=object(), packages=packages)


@pytest.mark.docker
async def test_agent_setup_and_tests_import_packages(engine: WorkspaceEngine) -> None:
    setup = {"setup": "setup.sh", "files": {"setup.sh": "python3 -c 'import pytest'\n"}}
    playing = play(["numpy", "pandas", "pytest"], **setup)
    playing.environment.check_available()
    await playing.reset()
    step = await playing.step(calls(("bash", {"command": f'python3 -c "{ANSWER}"'})))
    assert "[exit code 0" in step.observation.messages[0]["content"]
    step = await playing.step(DONE)
    assert step.reward == 1.0, step.score
    await playing.close()


@pytest.mark.exhaustive
@pytest.mark.docker
async def test_tests_use_their_packages_whatever_the_agent_leaves(engine: WorkspaceEngine) -> None:
    playing = play(["numpy", "pandas"])
    await playing.reset()
    evil = "mkdir numpy; echo 'raise SystemExit(0)' | tee numpy/__init__.py pandas.py sitecustomize.py"
    await playing.step(calls(("bash", {"command": evil})))
    step = await playing.step(DONE)
    assert step.reward == 0.0
    assert "answer.csv" in step.score.rules[0].reason
    await playing.close()


@pytest.mark.exhaustive
@pytest.mark.docker
async def test_lost_box_is_opened_again_with_its_packages(engine: WorkspaceEngine) -> None:
    playing = play(["numpy", "pandas"])
    await playing.reset()
    await playing.step(calls(("bash", {"command": "true"})))
    await playing.close()  # the box is lost
    await playing.step(calls(("bash", {"command": f'python3 -c "{ANSWER}"'})))
    assert (await playing.step(DONE)).reward == 1.0
    await playing.close()


@pytest.mark.exhaustive
@pytest.mark.docker
async def test_agent_program_imports_packages(engine: WorkspaceEngine) -> None:
    program = f"{ANSWER}\nimport json, os, urllib.request as u\n" + (
        "body = json.dumps({'messages': [{'role': 'user', 'content': str(numpy.arange(3))}]}).encode()\n"
        "u.urlopen(u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body, "
        "{'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY'], 'Content-Type': 'application/json'}))\n"
    )
    playing = play(["numpy", "pandas"], policy="program", program="agent/main.py", files={"agent/main.py": program})
    observation = await playing.reset()
    assert observation.messages[-1]["content"] == "[0 1 2]"
    step = await playing.step(DONE)
    assert (step.done, step.reward) == (True, 1.0), step
    await playing.close()


@pytest.mark.docker
async def test_unsuitable_image_is_refused_before_a_run_and_an_error_of_the_environment(
    engine: WorkspaceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise PackagesUnsuitable("The image has another Python.")

    for module in ("sandbox.workspaces.packages", "hub.harnesses.boxes.preparation"):
        monkeypatch.setattr(f"{module}.check_packages", refuse)
    with pytest.raises(SandboxUnavailable, match="another Python"):
        environment(harness(), files={"tests/test.py": CHECK}, rules=[RULE], packages=["numpy"]).check_available()
    with pytest.raises(HarnessError, match="another Python"):
        await play(["numpy"]).reset()


@pytest.mark.docker
@pytest.mark.parametrize("image", ["", "{{ id }}"])
def test_missing_packages_are_reported_before_a_run(monkeypatch: pytest.MonkeyPatch, image: str) -> None:
    monkeypatch.setattr(shared, "_engine", make_engine("docker", packages_image="no-such-packages:1"))
    given = harness(image=image or containers.image())
    compiled = environment(given, files={"tests/test.py": CHECK}, rules=[RULE], packages=["numpy"])
    with pytest.raises(SandboxUnavailable, match="no-such-packages:1"):
        compiled.check_available()


@pytest.mark.parametrize("workdir", ["/opt", "/opt/packages", "/opt/packages/mine"])
def test_work_folder_cannot_hide_packages(workdir: str) -> None:
    with pytest.raises((CompileError, ValueError), match=f"'{workdir}' cannot be the work folder"):
        environment(
            {"type": "workspace", "image": "x", "workdir": workdir},
            files={"tests/test.py": CHECK},
            rules=[RULE],
            packages=["numpy"],
        ).rendered(CaseData(id="c", input="x")).check()

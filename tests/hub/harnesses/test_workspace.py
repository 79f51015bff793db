"""The harness `workspace` and the rule `workspace_script`: episodes in real boxes, scored in fresh ones."""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site_settings

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate_bundle
from hub.environments.compiled import CaseError, CompileError
from hub.environments.episodes import Step
from hub.gates.runner import run_gates
from hub.harnesses.base import HarnessError
from hub.protocols.cases import CaseData
from hub.scorers.workspace_script import read_reward
from sandbox.client.options import PoolOptions
from sandbox.client.shared_pools import get_shared_pool
from sandbox.connections.owners import owner
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces.docker_api import GROUP_LABEL, OWNER_LABEL
from sandbox.workspaces.docker_engine import DockerWorkspaces
from sandbox.workspaces.shared import get_workspaces
from tests.hub.playing import contents, environment, episode
from tests.sandbox import containers
from tests.services import unavailable

RULE = {"name": "tests", "type": "workspace_script", "path": "tests/test.sh", "timeout_s": 20}
CHECK = b'test "$(cat "$WORKDIR/answer" 2>/dev/null)" = 42 || { echo "the answer is not 42"; exit 1; }\n'


@pytest.fixture
def image() -> Iterator[str]:
    yield containers.image()
    client = containers.daemon()
    left = client.containers.list(filters={"label": f"{OWNER_LABEL}={owner()}"}, ignore_removed=True)
    client.close()
    assert left == [], "a box is left"


def play(image: str, tests: bytes = CHECK, rule: dict[str, Any] | None = None, **options: Any) -> Any:
    files = {"tests/test.sh": tests.decode(), **options.pop("files", {})}
    harness = {"type": "workspace", "image": image, "limits": {"memory_mb": 128, "disk_mb": 16, "pids": 64}, **options}
    case = CaseData(id="c", input="Write 42 to answer.", files={"notes/a.txt": "from the case\n"})
    return episode(harness, files=files, rules=[{**RULE, **(rule or {})}], case=case, pool=object())


def calls(*wanted: tuple[str, dict[str, str]]) -> Any:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for i, (name, arguments) in enumerate(wanted)
        ],
    }


DONE: Any = {"role": "assistant", "content": "Done."}


async def finish(image: str, command: str, tests: bytes = CHECK, rule: dict[str, Any] | None = None) -> Step:
    playing = play(image, tests, rule)
    await playing.reset()
    await playing.step(calls(("bash", {"command": command})))
    step: Step = await playing.step(DONE)
    return step


# ---- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.docker
async def test_tools_work_on_one_box_and_results_show_exit_code_and_time(image: str) -> None:
    playing = play(image, setup="setup.sh", files={"setup.sh": "echo prepared > setup.txt\n"})
    observation = await playing.reset()
    assert [tool["function"]["name"] for tool in observation.tools] == ["bash", "read", "write", "edit"]
    step = await playing.step(
        calls(
            ("bash", {"command": "cat setup.txt notes/a.txt; exit 7"}),
            ("write", {"path": "answer", "content": "41\n"}),
            ("edit", {"path": "answer", "old": "41", "new": "42"}),
            ("read", {"path": "/app/answer"}),
            ("edit", {"path": "answer", "old": "41", "new": "43"}),
            ("read", {"path": "missing"}),
            ("launch", {}),
        )
    )
    results = [message["content"] for message in step.observation.messages]
    assert results[0].startswith("prepared\nfrom the case\n[exit code 7, ")
    assert results[1:4] == ["wrote answer (3 bytes)", "replaced 1 place in answer", "42\n"]
    assert results[4].startswith("error: the old text does not occur in answer")
    assert results[5] == "error: No such file or directory"
    assert results[6] == "error: there is no tool 'launch'; the tools are bash, read, write, edit"
    step = await playing.step(DONE)
    assert (step.done, step.score.value) == (True, 1.0)


@pytest.mark.docker
async def test_episode_continues_from_its_stored_state(image: str) -> None:
    first = play(image)
    await first.reset()
    stored = json.loads(json.dumps(first.state))
    second = play(image)
    second.state = stored
    await second.step(calls(("bash", {"command": "echo 42 > answer"})))
    assert (await second.step(DONE)).reward == 1.0


@pytest.mark.docker
async def test_command_beyond_its_time_is_reported_to_the_model(image: str) -> None:
    playing = play(image, call_seconds=1)
    await playing.reset()
    step = await playing.step(calls(("bash", {"command": "echo begun; sleep 60"})))
    assert step.observation.messages[0]["content"].startswith("begun\n[timed out and was killed after 1.")
    await playing.close()


@pytest.mark.docker
async def test_setup_is_run_by_the_program_of_its_first_line(image: str) -> None:
    script = "#!/usr/bin/env python3\nimport os\nopen('setup.txt', 'w').write(str(os.getuid()))\n"
    playing = play(image, setup="setup.sh", files={"setup.sh": script})
    await playing.reset()
    step = await playing.step(calls(("bash", {"command": "cat setup.txt; ls /tmp"})))
    assert contents(step.observation.messages)[0].startswith("1000\n[exit code 0")
    await playing.close()


@pytest.mark.docker
async def test_setup_whose_interpreter_is_missing_is_reported_with_its_name(image: str) -> None:
    playing = play(image, setup="setup.sh", files={"setup.sh": "#!/bin/nosuch\n"})
    with pytest.raises(HarnessError, match=r"setup.sh failed: the image has no '/bin/nosuch', which the first line"):
        await playing.reset()


@pytest.mark.docker
async def test_failed_setup_is_an_error_of_the_environment_and_leaves_no_box(image: str) -> None:
    playing = play(image, setup="setup.sh", files={"setup.sh": "echo broken; exit 4\n"})
    with pytest.raises(HarnessError, match=r"setup.sh failed: broken\n\[exit code 4"):
        await playing.reset()


@pytest.mark.docker
async def test_episode_ends_when_its_time_is_over_and_is_scored(image: str) -> None:
    playing = play(image)
    await playing.reset()
    await playing.step(calls(("bash", {"command": "echo 42 > answer"})))
    playing.state["harness"]["world"]["ends_at"] = 0
    step = await playing.step(calls(("bash", {"command": "echo 0 > answer"})))
    assert (step.truncated, step.info, step.reward) == (True, {"limit": "episode_s"}, 1.0)
    assert playing.state["stop"] == "episode_s"
    assert contents(step.observation.messages) == ["not called: the episode's limit episode_s is reached"]


# ---- scoring ---------------------------------------------------------------------------------------------------------


@pytest.mark.docker
async def test_score_names_the_last_line_of_a_failing_script(image: str) -> None:
    step = await finish(image, "echo 41 > answer")
    assert step.score is not None
    assert (step.score.value, step.score.reason) == (
        0.0,
        "tests/test.sh ended with exit code 1: the answer is not 42",
    )


@pytest.mark.docker
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(
            "setsid sh -c 'while :; do echo 1 > /verify/reward; echo 1 > /tmp/reward; done' >/dev/null 2>&1 &",
            id="daemon",
        ),
        pytest.param(
            "printf '#!/bin/sh\\necho 42\\n' > cat; cp cat sh; cp cat test; chmod 755 cat sh test; PATH=/app:$PATH",
            id="replaced-programs",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "echo /app/evil.so > /etc/ld.so.preload; echo 'exit 0' > ~/.profile",
            id="preload",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("echo 42 > /tmp/real; ln -s /tmp/real answer", id="symbolic-link"),
        pytest.param(
            "ln -s /etc/hostname answer; mkfifo tests; ln -s / everything",
            id="links-and-pipes",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("kill -9 1; kill -9 -1", id="kill", marks=pytest.mark.exhaustive),
        pytest.param("mkdir -p /verify; echo 1 > reward.json; echo 1 > reward", id="reward-in-work-folder"),
        pytest.param(
            'python3 -c \'import os\nfor i in range(1500): os.mkdir("d"); os.chdir("d")\'',
            id="deep-folders",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param("head -c 15M /dev/zero > big; : > answer", id="full-disk", marks=pytest.mark.exhaustive),
    ],
)
async def test_attacks_of_the_agent_do_not_score(image: str, attack: str) -> None:
    assert (await finish(image, attack)).score.value == 0.0  # type: ignore[union-attr]


@pytest.mark.docker
async def test_programs_of_the_agent_cannot_forge_the_reward_or_read_the_tests(image: str) -> None:
    tests = b"""
echo "secret of the tests" > "$TESTS/expected"
as-agent ./answer.sh > /tmp/out 2>&1
cat /tmp/out
grep -q secret /tmp/out && echo 1 > "$REWARD" || echo 0.25 > "$REWARD"
"""
    program = (
        "#!/bin/sh\ncat /verify/tests/expected\necho 1 > /verify/reward.json\n"
        "setsid sh -c 'while :; do echo 1 > /verify/reward.json; done' > /dev/null 2>&1 &\nkill -9 -1\n"
    )
    step = await finish(
        image, f"cat > answer.sh <<'END'\n{program}END\nchmod 755 answer.sh", tests, {"reward": "reward.json"}
    )
    assert step.score is not None
    assert step.score.value == 0.25


@pytest.mark.docker
@pytest.mark.parametrize(
    ("script", "value", "reason"),
    [
        (b'echo \'{"reward": 0.5, "reason": "half"}\' > "$REWARD"', 0.5, "half"),
        pytest.param(
            b'printf \'\\357\\273\\277{"reward": 0.5, "reason": "half"}\' > "$REWARD"',
            0.5,
            "half",
            id="byte-order-mark",
            marks=pytest.mark.exhaustive,
        ),
        (b"exit 0", None, "tests/test.sh wrote no reward.json; it ended with exit code 0."),
        (b"echo 1 >&2; false", None, "tests/test.sh wrote no reward.json; it ended with exit code 1: 1"),
        (b'echo NaN > "$REWARD"', None, "The reward in reward.json is nan; it must be from 0 to 1."),
        (b"sleep 60", 0.0, "tests/test.sh did not end within 2 seconds."),
        pytest.param(
            b"#!/bin/pyhton3 -I\n",
            None,
            "tests/test.sh wrote no reward.json; it ended with exit code 127: "
            "the image has no '/bin/pyhton3', which the first line of the script names.",
            id="unknown-interpreter",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
async def test_reward_file_decides_and_a_missing_one_is_unscored(
    image: str, script: bytes, value: float | None, reason: str
) -> None:
    step = await finish(image, "true", script, {"reward": "reward.json", "timeout_s": 2})
    assert step.score is not None
    assert (step.score.value, step.score.rules[0].reason) == (value, reason)


@pytest.mark.exhaustive
@pytest.mark.docker
@pytest.mark.parametrize(
    ("program", "limit"),
    [("yes 0123456789", "memory"), ("for i in $(seq 200); do sleep 60 & done > /dev/null 2>&1", "processes")],
)
async def test_program_that_fills_the_box_cannot_avoid_its_score(image: str, program: str, limit: str) -> None:
    tests = b'found=$(as-agent ./run.sh)\nscore=$(echo "$found" | awk \'{print 0}\')\necho "$score" > "$REWARD"\n'
    command = f"printf '#!/bin/sh\\n%s\\n' '{program}' > run.sh; chmod 755 run.sh"
    step = await finish(image, command, tests, {"reward": "reward.json", "timeout_s": 60})
    assert step.score is not None
    assert step.score.value == 0.0
    assert step.score.rules[0].reason.endswith(f". The box had reached its limit of {limit} meanwhile.")


@pytest.mark.docker
async def test_programs_of_the_agent_are_killed_before_the_script_if_memory_is_full(image: str) -> None:
    tests = (
        b"own=$(cat /proc/self/oom_score_adj); theirs=$(as-agent cat /proc/self/oom_score_adj)\n"
        b'echo "$own < $theirs"; test "$own" -lt "$theirs"\n'
    )
    step = await finish(image, "true", tests)
    assert step.score is not None
    assert (step.score.value, step.score.rules[0].reason) == (1.0, "")


@pytest.mark.docker
async def test_artifacts_with_too_many_files_are_wrong_and_the_reason_has_the_limits(image: str) -> None:
    step = await finish(image, "python3 -c 'for n in range(20_001): open(str(n), \"w\")'")
    assert step.score is not None
    reason = "The artifacts have more than 64 MB, or more than 20,000 files and folders; none were checked."
    assert (step.score.value, step.score.rules[0].reason) == (0.0, reason)


@pytest.mark.docker
@pytest.mark.parametrize("mode", ["700", pytest.param("0550", marks=pytest.mark.exhaustive)])
async def test_script_starts_in_a_work_folder_that_only_its_owner_may_enter(image: str, mode: str) -> None:
    tests = b'test "$PWD" = /app && test "$(as-agent cat answer)" = 42 || { echo "in $PWD"; exit 1; }\n'
    step = await finish(image, f"echo 42 > answer; chmod {mode} /app", tests)
    assert step.score is not None
    assert (step.score.value, step.score.rules[0].reason) == (1.0, "")


@pytest.mark.docker
@pytest.mark.parametrize("script", [b"#!/bin/sh\nexit 0\n", b"exit 0\n"], ids=["executed", "run-by-sh"])
async def test_script_may_have_any_file_name(image: str, script: bytes) -> None:
    path = "tests/it's $HOME/a `b` ü.sh"
    playing = play(image, rule={"path": path}, files={path: script.decode()})
    await playing.reset()
    assert (await playing.step(DONE)).reward == 1.0


@pytest.mark.docker
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("nosuch", "as-agent: nosuch: No such file or directory"),
        pytest.param("./nosuch", "as-agent: ./nosuch: No such file or directory", marks=pytest.mark.exhaustive),
        pytest.param("./answer", "as-agent: ./answer: Permission denied", marks=pytest.mark.exhaustive),
    ],
)
async def test_program_that_the_agent_does_not_have_is_named(image: str, program: str, reason: str) -> None:
    step = await finish(image, "echo 42 > answer", f"as-agent {program}\n".encode())
    assert step.score is not None
    assert step.score.rules[0].reason == f"tests/test.sh ended with exit code 1: {reason}"


@pytest.mark.docker
async def test_script_gets_the_files_of_its_folder(image: str) -> None:
    playing = play(
        image,
        b'. "$TESTS/lib/common.sh"; check\n',
        {"files": "tests"},
        files={"tests/lib/common.sh": "check() { false; }"},
    )
    await playing.reset()
    assert (await playing.step(DONE)).reward == 0.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ('{"reward": 0}', 0.0),
        ("1.0000000000000002", 1.0),
        (".50\n", 0.5),
        (".", None),
        ("NaN", None),
        ("2", None),
        ("-0.1", None),
        ("true", None),
        ("x", None),
        ("9" * 4000, None),
        pytest.param("[" * 60_000, None, id="deep"),
    ],
)
def test_reward_must_be_a_number_from_0_to_1(text: str, value: float | None) -> None:
    verdict = read_reward(text, "reward.json")
    assert verdict.value == value
    assert len(verdict.reason) < 200


# ---- manifests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"build": "tests"}, "harness.build: give either `image`, a Docker image, or `build`, a folder"),
        ({"image": ""}, "harness.image: give either `image`, a Docker image, or `build`, a folder"),
        ({"image": "", "build": "tests"}, "harness.build: the folder 'tests' has no Dockerfile"),
        ({"mcp": []}, "harness.mcp: `mcp` is not supported"),
        ({"setup": "{{ id }}.sh"}, "harness.setup: '{{ id }}.sh' must begin with a folder"),
        ({"setup": "setup/{{ id }}.sh"}, "harness: the bundle has no files in the folder 'setup/'"),
    ],
)
def test_unsupported_keys_and_missing_folders_are_reported(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError) as failure:
        environment({"type": "workspace", "image": "x", **options}, files={"tests/test.sh": ""}, rules=[RULE])
    assert message in str(failure.value)


WINDOWS = "has line ends of Windows (CRLF), with which Linux cannot run it; save it with those of Unix (LF)"


@pytest.mark.parametrize(
    ("options", "files", "message"),
    [
        ({"setup": "setup/{{ id }}.sh"}, {"setup/c.sh": "#!/bin/sh\r\nls\r\n"}, f"'setup/c.sh' {WINDOWS}"),
        ({"setup": "setup/{{ id }}.sh"}, {"setup/d.sh": "ls\n"}, "the bundle has no file 'setup/c.sh'"),
        ({}, {"tests/test.sh": "set -e\r\nls\r\n"}, f"'tests/test.sh' {WINDOWS}"),
        ({"rule_files": "tests"}, {"tests/lib.sh": "set -e\r\nls\r\n"}, f"'tests/lib.sh' {WINDOWS}"),
        ({"rule_files": "tests"}, {"tests/run": "#!/bin/sh\r\nls\r\n"}, f"'tests/run' {WINDOWS}"),
        ({"rule_files": "tests"}, {"tests/run.py": "#!/bin/sh\r\n", "tests/a.txt": "a\r\n"}, ""),
        ({}, {"tests/test.sh": "\ufeff#!/bin/sh\n"}, "'tests/test.sh' begins with a byte order mark"),
        ({}, {"tests/test.sh": "ls\nprintf 'a\r\n'\n"}, ""),
        ({"rule": "tests/{{ id }}.sh"}, {}, "the bundle has no file 'tests/c.sh'"),
        ({"image": "", "build": "{{ id }}/"}, {"d/Dockerfile": ""}, "must begin with a folder"),
        ({"image": "", "build": "env/{{ id }}"}, {"env/d/Dockerfile": ""}, "the folder 'env/c/' has no Dockerfile"),
        ({"policy": "program", "program": "agent/main.py"}, {"agent/main.py": "import os\r\n"}, ""),
        ({"policy": "program", "program": "agent/main.py"}, {"agent/main.py": "#!a\r\n"}, f"'agent/main.py' {WINDOWS}"),
    ],
)
def test_scripts_that_cannot_be_run_are_reported_for_each_case(
    options: dict[str, Any], files: dict[str, str], message: str
) -> None:
    rule = {**RULE, "path": options.pop("rule", RULE["path"]), "files": options.pop("rule_files", "")}
    found = ""
    try:
        compiled = environment(
            {"type": "workspace", "image": "x", **options}, files={"tests/test.sh": "ls\n", **files}, rules=[rule]
        )
        compiled.rendered(CaseData(id="c", input="")).check()
    except (CaseError, CompileError) as error:
        found = str(error)
    assert message in found
    assert bool(message) == bool(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": "all"}, "`network` must be none, or {allow: [names of hosts]}"),
        ({"network": {"allow": []}}, "network"),
        ({"network": {"allow": ["*.org"]}}, "'*.org' is not the name of a host"),
        ({"network": {"allow": ["https://pypi.org"]}}, "'https://pypi.org' is not the name of a host"),
        ({"workdir": "/usr"}, "'/usr' cannot be the work folder"),
        ({"workdir": "/lib64"}, "'/lib64' cannot be the work folder"),
        ({"workdir": "/usr/bin"}, "'/usr/bin' cannot be the work folder"),
        ({"workdir": "app"}, "'app' must be an absolute path"),
        ({"artifacts": ["/etc"]}, "the artifact '/etc' must be below the work folder /app"),
        ({"user": 0}, "user"),
        ({"services": [{"name": "a", "image": "x"}] * 2}, "two services have the same name"),
        ({"services": [{"name": "localhost", "image": "x"}]}, "'localhost' is a name of the box itself"),
        ({"services": [{"name": "a", "image": "x", "writable": ["data"]}]}, "'data' must be an absolute path"),
        ({"limits": {"gpus": 1}}, "gpus"),
    ],
)
def test_invalid_options_name_what_is_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="harness") as failure:
        play("x", **options)
    assert message in str(failure.value)


def test_reward_must_be_the_name_of_a_file() -> None:
    compiled = environment(
        {"type": "workspace", "image": "x"}, files={"tests/test.sh": ""}, rules=[{**RULE, "reward": "out/reward"}]
    )
    with pytest.raises(CaseError, match="'out/reward' must be the name of a file, without a folder"):
        compiled.rendered(CaseData(id="c", input="")).check()


@pytest.mark.parametrize("name", ["tests", "bin", ".", ".."])
def test_reward_cannot_have_the_name_of_a_folder(name: str) -> None:
    compiled = environment(
        {"type": "workspace", "image": "x"}, files={"tests/test.sh": ""}, rules=[{**RULE, "reward": name}]
    )
    with pytest.raises(CaseError, match=re.escape(f"{name!r} is a folder of the box that scores")):
        compiled.rendered(CaseData(id="c", input="")).check()


def test_rule_needs_the_harness_workspace() -> None:
    with pytest.raises(CompileError, match="the rule workspace_script scores episodes of the harness workspace"):
        environment({"type": "single_turn"}, files={"tests/test.sh": ""}, rules=[RULE])


def test_missing_docker_is_reported_before_an_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setattr("sandbox.workspaces.shared._engine", None)
    compiled = environment({"type": "workspace", "image": "x"}, files={"tests/test.sh": ""}, rules=[RULE])
    with pytest.raises(SandboxUnavailable, match="Workspaces need a Docker engine, which cannot be reached"):
        compiled.check_available()
    monkeypatch.setattr("sandbox.workspaces.shared._engine", None)


@pytest.mark.docker
def test_missing_image_is_reported_before_an_episode() -> None:
    containers.daemon().close()
    with pytest.raises(SandboxUnavailable, match="docker pull nothing-like-this"):
        get_workspaces().check("nothing-like-this")


def write_documented_example(folder: Path, image: str) -> Path:
    """Write the bundle of docs/workspaces.md, with *image*, and return its folder."""
    page = (site_settings.BASE_DIR / "docs" / "workspaces.md").read_text(encoding="utf-8")
    section = page.partition("\n## Write one\n")[2].partition("\n## ")[0]
    (manifest,) = re.findall(r"^```yaml\n(.*?)^```", section, re.M | re.S)
    named = "image: llmeval-sandbox:latest"
    assert named in manifest
    manifest = manifest.replace(named, f"image: {image}")
    files = re.findall(r"^`([a-z]+(?:/hello\.sh|\.jsonl))`[^\n]*\n(?:[^\n]+\n)*?\n((?:    [^\n]*\n)+)", section, re.M)
    assert {name for name, _ in files} == {"cases.jsonl", "setup/hello.sh", "tests/hello.sh", "solution/hello.sh"}
    for name, text in [("environment.yaml", manifest), *files]:
        path = folder / "greeting" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder / "greeting"


@pytest.mark.docker
def test_documented_example_passes_its_gates(tmp_path: Path, image: str) -> None:
    with open_bundle(write_documented_example(tmp_path, image)) as bundle:
        assert validate_bundle(bundle).problems == []
        gates = run_gates(bundle, pool=get_shared_pool(PoolOptions()))["gates"]
    assert {gate["status"] for gate in gates if gate["name"] != "wrong"} == {"passed"}, gates


@pytest.mark.exhaustive
@pytest.mark.docker
def test_gate_shows_what_a_failing_solution_returned(tmp_path: Path, image: str) -> None:
    folder = write_documented_example(tmp_path, image)
    (folder / "solution" / "hello.sh").write_text("cat greetings.txt\n", encoding="utf-8")
    with open_bundle(folder) as bundle:
        gates = {gate["name"]: gate for gate in run_gates(bundle, pool=None)["gates"]}
    ((failure),) = gates["gold"]["failures"]
    found = re.search(r"gold answer 1: failed\. .* Its last call returned: (.*)", failure["message"], re.S)
    assert found and "cat: greetings.txt: No such file or directory" in found[1] and "exit code 1" in found[1]


@pytest.mark.exhaustive
@pytest.mark.docker
def test_gold_script_of_a_program_has_no_note_about_unused_turns(tmp_path: Path, image: str) -> None:
    folder = write_documented_example(tmp_path, image)
    manifest = folder / "environment.yaml"
    text = manifest.read_text(encoding="utf-8").replace("  setup:", "  policy: program\n  program: agent.py\n  setup:")
    manifest.write_text(text, encoding="utf-8")
    (folder / "agent.py").write_text(
        "import os, urllib.request\n"
        "key = {'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}\n"
        """data = b'{"model": "any", "messages": [{"role": "user", "content": "Hi"}]}'\n"""
        "url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n"
        "urllib.request.urlopen(urllib.request.Request(url, data, key))\n",
        encoding="utf-8",
    )
    with open_bundle(folder) as bundle:
        gates = {gate["name"]: gate for gate in run_gates(bundle, pool=None)["gates"]}
    assert (gates["gold"]["status"], gates["gold"]["note"]) == ("passed", "")


# ---- services --------------------------------------------------------------------------------------------------------

CACHE = {"name": "cache", "image": "redis:8", "healthcheck": "redis-cli ping"}
ASK = "exec 3<>/dev/tcp/cache/6379; printf 'INCRBY n 42\\r\\n' >&3; head -n 1 <&3 | tr -d ':\\r' > answer"


@pytest.mark.docker
async def test_box_uses_its_service_which_ends_with_the_episode(image: str) -> None:
    client = containers.daemon()
    if not client.images.list(name="redis:8"):
        unavailable("docker", "the image redis:8 is missing")
    setup = "python3 -c \"import socket; socket.create_connection(('cache', 6379))\"\n"  # fails unless it is reachable
    playing = play(image, services=[CACHE], setup="setup.sh", files={"setup.sh": setup})
    await playing.reset()
    group = {"label": f"{GROUP_LABEL}={playing.state['harness']['world']['box']['generation']}"}
    assert len(client.containers.list(filters=group, ignore_removed=True)) == 1
    await playing.step(calls(("bash", {"command": ASK})))
    assert (await playing.step(DONE)).reward == 1.0
    await playing.close()
    assert (
        client.containers.list(all=True, filters=group, ignore_removed=True) + client.networks.list(filters=group) == []
    )
    client.close()


@pytest.mark.docker
async def test_service_that_is_not_healthy_is_an_error_of_the_environment(image: str) -> None:
    playing = play(image, services=[{"name": "cache", "image": image, "healthcheck": "exit 3", "start_s": 1}])
    with pytest.raises(HarnessError, match=r"The service cache (ended|is not healthy)"):
        await playing.reset()


@pytest.mark.docker
def test_missing_image_of_a_service_is_reported_before_an_episode(image: str) -> None:
    harness = {"type": "workspace", "image": image, "services": [{"name": "db", "image": "nothing-like-this"}]}
    compiled = environment(harness, files={"tests/test.sh": ""}, rules=[RULE])
    with pytest.raises(SandboxUnavailable, match="docker pull nothing-like-this"):
        compiled.check_available()


# ---- network ---------------------------------------------------------------------------------------------------------

ALLOWED = {"allow": ["files.example"]}


@pytest.mark.exhaustive
@pytest.mark.docker
async def test_refused_connections_are_in_the_result_of_the_command(
    image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    containers.daemon().close()
    engine = DockerWorkspaces(outside="bridge", proxy_image=image)
    for module in ("hub.harnesses.workspace", "hub.harnesses.boxes.preparation"):
        monkeypatch.setattr(f"{module}.get_workspaces", lambda: engine)
    playing = play(image, network=ALLOWED)
    await playing.reset()
    fetch = "python3 -c 'import urllib.request as u; u.urlopen(\"https://evil.example\")' 2>&1 | tail -n 1"
    step = await playing.step(calls(("bash", {"command": fetch}), ("bash", {"command": "echo again"})))
    first, second = (message["content"] for message in step.observation.messages)
    assert first.endswith("[connection refused: evil.example:443: it is not in the list of allowed hosts]")
    assert "403 Forbidden" in first
    assert "refused" not in second
    await playing.close()


@pytest.mark.docker
def test_network_must_be_enabled_before_an_episode(image: str) -> None:
    harness = {"type": "workspace", "image": image, "network": ALLOWED}
    compiled = environment(harness, files={"tests/test.sh": ""}, rules=[RULE])
    with pytest.raises(SandboxUnavailable, match="LLMEVAL_WORKSPACE_NETWORK"):
        compiled.check_available()


# ---- images built from the bundle ------------------------------------------------------------------------------------


def build_files(steps: str) -> dict[str, str]:
    return {"environment/Dockerfile": f"FROM {containers.image()}\nUSER root\n{steps}\n", "environment/start": "41\n"}


@pytest.mark.docker
async def test_folder_of_the_bundle_is_built_and_scored_in_a_box_of_its_image(image: str, settings: Any) -> None:
    settings.WORKSPACE_BUILDS = True
    files = build_files("COPY start /app/start\nRUN echo 42 > /opt/expected")
    tests = b'[ "$(cat answer)" = "$(cat /opt/expected)" ] && [ ! -e start ]\n'
    playing = play("", tests, build="environment/", files=files)
    await playing.reset()
    step = await playing.step(calls(("bash", {"command": "cat start && sed s/1/2/ start > answer && rm start"})))
    assert step.observation.messages[0]["content"].startswith("41\n[exit code 0")
    assert (await playing.step(DONE)).reward == 1.0


@pytest.mark.docker
async def test_failed_build_is_an_error_of_the_environment(image: str, settings: Any) -> None:
    settings.WORKSPACE_BUILDS = True
    playing = play("", build="environment/", files=build_files("RUN echo why; exit 3"))
    with pytest.raises(HarnessError, match=r"(?s)environment/Dockerfile cannot be built: .*code: 3.*why"):
        await playing.reset()


@pytest.mark.docker
async def test_upload_alone_does_not_build(image: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WORKSPACE_BUILDS = False
    monkeypatch.setattr("sandbox.workspaces.shared._may_build", False)
    playing = play("", build="environment/", files=build_files("RUN echo not allowed"))
    with pytest.raises(SandboxUnavailable, match="may not build images"):
        await playing.reset()


# ---- trust -----------------------------------------------------------------------------------------------------------

IMPORTING = """#!/usr/bin/env python3
import os
import sys

sys.path.insert(0, os.environ["WORKDIR"])
import answer

assert answer.value() == 42
"""


@pytest.mark.docker
async def test_result_of_tests_that_import_the_models_module_is_labelled_because_it_can_be_forged(image: str) -> None:
    forge = "printf 'import os\\nos._exit(0)\\n' > answer.py"
    forged = await finish(image, forge, IMPORTING.encode())
    (rule,) = forged.score.rules
    assert (forged.reward, rule.detail["trust"]) == (1.0, "in_process")  # nothing protects such tests
    separate = await finish(image, "printf 42 > answer")
    assert separate.score.rules[0].detail["trust"] == "isolated"
    declared = await finish(image, "printf 42 > answer", rule={"trust": "in_process"})
    assert declared.score.rules[0].detail["trust"] == "in_process"


@pytest.mark.docker
async def test_module_of_python_that_the_model_replaces_is_labelled_unless_python_is_isolated(image: str) -> None:
    check = "python3 {} 'import json; assert json.load(open(\"answer\")) == 42'\n"
    forge = "printf 'import os\\nos._exit(0)\\n' > json.py"
    forged = await finish(image, forge, check.format("-c").encode())
    assert (forged.reward, forged.score.rules[0].detail["trust"]) == (1.0, "in_process")
    isolated = await finish(image, forge, check.format("-I -c").encode())
    assert (isolated.reward, isolated.score.rules[0].detail["trust"]) == (0.0, "isolated")


@pytest.mark.parametrize(
    ("files", "shared"),
    [
        ({"tests/test.sh": CHECK.decode()}, False),
        ({"tests/test.sh": "# pytest would import it\nas-agent python3 main.py | cmp - expected\n"}, False),
        ({"tests/test.sh": "cd /app && python3 -m pytest -q $TESTS\n"}, True),
        ({"tests/test.sh": "python3 -c 'import json; import app'\n"}, True),
        ({"tests/test.sh": "python3 -c 'from json import loads'\n"}, True),
        ({"tests/test.sh": "python3 -B -W ignore -c '\nimport sys, time\nfrom json import loads\n'\n"}, True),
        ({"tests/test.sh": "python3 -I -c '\nfrom json import loads\n'\n"}, False),
        ({"tests/test.sh": "python3 -c 'import sys; print(sys.version)'\n"}, False),
        ({"tests/test.sh": "python3 -Ic 'from json import loads'\n"}, False),
        ({"tests/test.sh": "as-agent python3 -m json.tool out.json\n"}, True),
        ({"tests/test.sh": "as-agent python3 -I -m json.tool out.json\n"}, False),
        ({"tests/test.sh": "python3 - <<'END'\nimport json\nEND\n"}, True),
        ({"tests/test.sh": "python3 -P - <<'END'\nimport json\nEND\n"}, False),
        ({"tests/test.sh": IMPORTING}, True),
        ({"tests/test.sh": 'python3 - <<\'END\'\nimport sys\nexpected = """\nfrom app import x\n"""\nEND\n'}, False),
        ({"tests/test.sh": "python3 - <<'END'\nimport app\nEND\n"}, True),
        ({"tests/test.sh": "cmp - answer <<END\nimport app\nEND\n"}, False),
        ({"tests/test.sh": "python3 $TESTS/run.py\n", "tests/run.py": "import subprocess\nimport lib.probe\n"}, False),
        ({"tests/test.sh": "python3 $TESTS/run.py\n", "tests/run.py": "def f():\n    from app.core import g\n"}, True),
        ({"tests/test.sh": "true\n", "tests/run.py": "import unittest\n"}, True),
        ({"tests/test.sh": "true\n", "tests/expected.txt": "import app\n"}, False),
    ],
)
def test_tests_that_import_the_models_modules_are_recognized(files: dict[str, str], shared: bool) -> None:
    files = {"tests/lib/probe.py": "", **files}
    harness = {"type": "workspace", "image": "any"}
    play = environment(harness, files=files, rules=[{**RULE, "files": "tests/"}])
    assert play.forgeable_rules == (["tests"] if shared else [])
    declared = environment(harness, files=files, rules=[{**RULE, "files": "tests/", "trust": "isolated"}])
    assert declared.forgeable_rules == []


def test_option_trust_changes_no_digest_of_rules_without_it() -> None:
    play = environment({"type": "workspace", "image": "any"}, files={"tests/test.sh": "true\n"}, rules=[RULE])
    (rendered,) = play.rendered_rules(CaseData(id="c", input=""))
    assert "trust" not in rendered.options.model_dump(mode="json")

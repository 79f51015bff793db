"""Episodes of `workspace` whose box is lost: snapshots, repeated calls, and divergence marked in the transcript."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate_bundle
from hub.environments.episodes import Episode
from hub.harnesses.base import Services
from hub.harnesses.boxes.recovery import comparable
from hub.protocols.calls import CallKey
from hub.protocols.cases import CaseData
from sandbox.errors import SandboxUnavailable
from sandbox.workspaces import shared
from sandbox.workspaces.base import Handle, WorkspaceEngine, WorkspaceLost
from sandbox.workspaces.snapshots import list_snapshot_folders, remove_snapshots
from tests.hub.bundle_files import lines, write_bundle
from tests.hub.playing import calls, environment
from tests.sandbox import containers
from tests.sandbox.workspaces.engines import make_engine
from tests.sandbox.workspaces.test_snapshots import ROOT, forged

pytestmark = pytest.mark.docker
RULE = {"name": "tests", "type": "workspace_script", "path": "tests/test.sh", "timeout_s": 20}
DONE: Any = {"role": "assistant", "content": "Done."}
FOLDER = "tests/recovery"


@pytest.fixture(params=containers.ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkspaceEngine]:
    made = make_engine(request.param)
    monkeypatch.setattr(shared, "_engine", made)
    opened: list[Handle] = []
    original = made.open

    def open_box(spec: Any) -> Handle:
        opened.append(original(spec))
        return opened[-1]

    monkeypatch.setattr(made, "open", open_box)
    yield made
    remove_snapshots(FOLDER)
    left = [handle for handle in opened if is_open(made, handle)]
    for handle in left:
        made.close(handle)
    assert not left, "a box is left"


def is_open(engine: WorkspaceEngine, handle: Handle) -> bool:
    try:
        engine.ping(handle)
    except WorkspaceLost:
        return False
    return True


def play(tests: str = "cat $WORKDIR/log; exit 0", state: Any = None, **options: Any) -> Episode:
    files = {"tests/test.sh": tests, **options.pop("files", {})}
    limits = {"memory_mb": 128, "disk_mb": 16, "pids": 64, **options.pop("limits", {})}
    harness = {"type": "workspace", "image": containers.image(), "limits": limits, **options}
    episode = Episode(
        environment(harness, files=files, rules=[RULE]),
        CaseData(id="c", input="Work.", files={"given": "from the case\n"}),
        key=CallKey(purpose="answer", environment="play", case="c", attempt=1, model="a"),
        services=Services(snapshots=FOLDER),
    )
    episode.restore(state or {})
    return episode


def bash(*commands: str) -> Any:
    return calls(*(("bash", {"command": command}) for command in commands))


def world(episode: Episode) -> Any:
    harness: Any = episode.state["harness"]
    return harness["world"]


def lose(engine: WorkspaceEngine, episode: Episode) -> None:
    engine.close(Handle(**world(episode)["box"]))


def stored() -> list[str]:
    return [name for folder in list_snapshot_folders(FOLDER) for name in storages["snapshots"].listdir(folder)[1]]


async def run(episode: Episode, *commands: str) -> str:
    """Return what the last of *commands* printed, without its exit code."""
    step = await episode.step(bash(*commands))
    return str(step.observation.messages[-1]["content"])


async def test_episode_continues_from_its_snapshot_and_repeats_the_calls_since_then(engine: WorkspaceEngine) -> None:
    episode = play(snapshot_turns=2)
    await episode.reset()
    await run(episode, "echo one >> log; echo $RANDOM$RANDOM > random")
    random = (await run(episode, "cat random")).splitlines()[0]  # a snapshot follows
    await run(episode, "echo three >> log", "echo four >> log")
    lose(engine, episode)
    text = await run(episode, "cat log random given")
    assert text.splitlines()[:5] == ["one", "three", "four", random, "from the case"]
    assert text.endswith("[The box was lost and opened again with its files after turn 2; 2 later calls repeated]")
    assert world(episode)["restored"] == [
        {"turn": 3, "from_turn": 2, "repeated": 2, "ended": 0, "diverged": []},
    ]
    assert "The box was lost" not in await run(episode, "true")
    step = await episode.step(DONE)
    assert step.score is not None
    assert (step.score.value, step.score.rules[0].detail["boxes_lost"][0]["from_turn"]) == (1.0, 2)  # type: ignore[index,call-overload]


async def test_without_snapshot_calls_are_repeated_from_the_beginning_after_setup(engine: WorkspaceEngine) -> None:
    episode = play(setup="setup.sh", files={"setup.sh": "echo prepared > log\n"})
    await episode.reset()
    write, edit = ("write", {"path": "log", "content": "a"}), ("edit", {"path": "log", "old": "a", "new": "b"})
    await episode.step(calls(write, edit))
    await run(episode, "echo; echo c >> log", "cat missing")
    lose(engine, episode)
    text = await run(episode, "cat log given")
    assert text.splitlines()[:3] == ["bc", "from the case", "[exit code 0, " + text.splitlines()[2].split(", ")[1]]
    assert text.endswith("[The box was lost and opened again; 4 later calls repeated]")
    assert stored() == []
    await episode.close()


async def test_repeated_call_with_another_result_is_marked_in_the_transcript_and_in_the_score(
    engine: WorkspaceEngine,
) -> None:
    episode = play()
    await episode.reset()
    await run(episode, "echo same > log", "cat /proc/sys/kernel/random/uuid; exit 3")
    lose(engine, episode)
    text = await run(episode, "cat log")
    assert text.startswith("same\n")
    assert text.endswith("; results that differ from those above: bash (turn 1, call 2)]")
    (diverged,) = world(episode)["restored"][0]["diverged"]
    assert (diverged["turn"], diverged["call"], diverged["tool"]) == (1, 2, "bash")
    assert diverged["before"] != diverged["after"]
    assert diverged["before"].endswith("[exit code 3, ... s]")
    step = await episode.step(DONE)
    assert "boxes_lost" in step.score.rules[0].detail  # type: ignore[union-attr]


async def test_text_protocol_repeats_calls_and_marks_divergence(engine: WorkspaceEngine) -> None:
    episode = play(protocol="text")
    await episode.reset()
    blocks = [
        f"```tool_call\n{json.dumps({'name': 'bash', 'arguments': {'command': command}})}\n```"
        for command in ("printf 'a\\n\\nb' | tee log", "cat /proc/sys/kernel/random/uuid")
    ]
    await episode.step({"role": "assistant", "content": "\n".join(blocks)})
    lose(engine, episode)
    step = await episode.step({"role": "assistant", "content": blocks[0]})
    text = str(step.observation.messages[-1]["content"])
    assert text.endswith("2 later calls repeated; results that differ from those above: bash (turn 1, call 2)]")
    assert episode.environment.harness.transcript(episode.environment.harness_options(episode.case), episode.messages)
    await episode.close()


async def test_box_lost_before_scoring_is_opened_again_and_scored(engine: WorkspaceEngine) -> None:
    episode = play('test "$(cat "$WORKDIR/log")" = 42', snapshot_turns=1)
    await episode.reset()
    await run(episode, "printf 42 > log")
    lose(engine, episode)
    step = await episode.step(DONE)
    assert step.score is not None
    assert step.score.value == 1.0
    assert step.score.rules[0].detail["boxes_lost"]


async def test_background_processes_that_a_snapshot_lacks_are_reported(engine: WorkspaceEngine) -> None:
    episode = play(snapshot_turns=1)
    await episode.reset()
    await run(episode, "sleep 300 > /dev/null 2>&1 &")
    lose(engine, episode)
    assert "; 1 background process ended]" in await run(episode, "true")
    await episode.close()


async def test_missing_and_changed_snapshots_fall_back_to_repeating_all_calls(engine: WorkspaceEngine) -> None:
    for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(forged(*ROOT).getvalue())):
        episode = play(snapshot_turns=1)
        await episode.reset()
        await run(episode, "printf kept > log")
        damage(Path(storages["snapshots"].path(f"{FOLDER}/{world(episode)['snapshot']['digest']}")))
        lose(engine, episode)
        text = await run(episode, "cat log")
        assert text.startswith("kept\n")
        assert text.endswith("[The box was lost and opened again; 1 later call repeated]")
        await episode.close()


async def test_box_that_cannot_be_opened_again_is_an_infrastructure_error_and_leaves_the_state(
    engine: WorkspaceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = play()
    await episode.reset()
    await run(episode, "echo a > log")
    lose(engine, episode)
    before = json.loads(json.dumps(episode.state))

    def refuse(spec: Any) -> Handle:
        raise SandboxUnavailable("The image is gone.")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "open", refuse)
        for message in (bash("true"), DONE):
            with pytest.raises(SandboxUnavailable, match="The image is gone"):
                await episode.step(message)
            assert world(episode)["box"] == before["harness"]["world"]["box"]
            assert not episode.done
    await episode.close()


async def test_box_that_is_lost_again_and_again_ends_the_episode_with_an_error(
    engine: WorkspaceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.harnesses.boxes.recovery.MAX_RESTORATIONS", 2)
    episode = play()
    await episode.reset()
    for _ in range(2):
        lose(engine, episode)
        await run(episode, "true")
    lose(engine, episode)
    with pytest.raises(WorkspaceLost, match="lost more than 2 times"):
        await run(episode, "true")


async def test_snapshot_beyond_its_limit_is_not_taken_and_the_episode_goes_on(
    engine: WorkspaceEngine, caplog: pytest.LogCaptureFixture
) -> None:
    episode = play(snapshot_turns=1, limits={"snapshot_mb": 1})
    await episode.reset()
    await run(episode, "head -c 2000000 /dev/zero > big")
    assert "the files have more than 1 MB; '/app/big' alone has 1.9 MB" in caplog.text
    assert stored() == []
    lose(engine, episode)
    assert "1 later call repeated" in await run(episode, "ls")
    await episode.close()


async def test_old_snapshots_are_removed_and_equal_content_is_stored_once(engine: WorkspaceEngine) -> None:
    episode = play(snapshot_turns=1)
    await episode.reset()
    for number in range(4):
        await run(episode, f"echo {number} > log")
    assert len(stored()) == 2
    await run(episode, "true")
    assert len(stored()) == 1
    await episode.close()
    remove_snapshots(FOLDER)
    assert list(list_snapshot_folders("tests")) == []


async def test_reopened_episode_has_the_time_that_was_left(engine: WorkspaceEngine) -> None:
    episode = play(limits={"episode_s": 300})
    await episode.reset()
    await run(episode, "echo a > log")
    stopped = json.loads(json.dumps(episode.state))
    for key in ("ends_at", "seen_at"):
        stopped["harness"]["world"][key] -= 100_000  # its process was killed a day ago
    again = play(state=stopped, limits={"episode_s": 300})
    assert again.can_reopen
    await again.reopen()
    assert not is_open(engine, Handle(**world(episode)["box"]))
    assert 250 < world(again)["ends_at"] - world(again)["seen_at"] <= 300
    assert (await run(again, "cat log")).startswith("a\n")
    await again.close()


PROGRAM = """
import os, urllib.request

headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
body = b'{"messages": [{"role": "user", "content": "a"}]}'
urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers))
"""


async def test_programs_cannot_be_continued(engine: WorkspaceEngine) -> None:
    episode = play(policy="program", program="agent.py", files={"agent.py": PROGRAM})
    await episode.reset()
    assert not episode.can_reopen
    lose(engine, episode)
    with pytest.raises(SandboxUnavailable):
        await episode.step(DONE)


def test_times_and_notes_are_not_compared() -> None:
    first = "a\n[exit code 0, 0.01 s]\n[The box was lost and opened again; 1 later call repeated]"
    assert comparable(first) == comparable("a\n[exit code 0, 12.50 s]")
    assert comparable("a\n[exit code 0, 0.01 s]") != comparable("a\n[exit code 1, 0.01 s]")
    assert comparable("[timed out and was killed after 1.0 s]") == comparable("[timed out and was killed after 1.1 s]")


@pytest.mark.parametrize(
    "more",
    [{"services": [{"name": "db", "image": "x"}]}, {"policy": "program", "program": "tests/test.sh"}],
    ids=["services", "program"],
)
def test_snapshots_with_state_that_they_lack_are_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    folder = write_bundle(
        tmp_path / "answer",
        files={"cases.jsonl": lines([{"id": "a", "input": "x"}]), "tests/test.sh": "exit 0\n"},
        slug="answer",
        category="tool-use",
        dataset={"path": "cases.jsonl"},
        harness={"type": "workspace", "image": "x", "snapshot_turns": 2, **more},
        scoring={"rules": [RULE]},
        gold=None,
        wrong=None,
    )
    problems = [str(problem) for problem in validate_bundle(open_bundle(folder)).problems]
    assert any("`snapshot_turns` cannot be used with" in problem for problem in problems), problems

"""Environments of workspaces for tests of runs and rollouts, and what is left of their episodes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hub.models import Environment
from hub.services import import_bundle
from sandbox.workspaces.snapshots import list_snapshot_folders
from tests.hub.bundle_files import lines
from tests.hub.bundle_files import write_bundle as write_environment
from tests.sandbox import containers

DONE: Any = {"role": "assistant", "content": "Done."}


def import_workspace(folder: Path, slug: str, inputs: dict[str, str], check: str, **harness: Any) -> None:
    """Import and publish an environment of workspaces with the given inputs by case, checked by the script *check*."""
    bundle = write_environment(
        folder / slug,
        files={
            "cases.jsonl": lines([{"id": case, "input": text} for case, text in inputs.items()]),
            "tests/test.sh": check,
        },
        slug=slug,
        category="tool-use",
        dataset={"path": "cases.jsonl"},
        harness={
            "type": "workspace",
            "image": containers.image(),
            "limits": {"memory_mb": 128, "disk_mb": 16, "episode_s": 300},
            **harness,
        },
        scoring={"rules": [{"name": "tests", "type": "workspace_script", "path": "tests/test.sh"}]},
        gold=None,
        wrong=None,
    )
    import_bundle(bundle=bundle)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)


def import_journal(folder: Path, cases: int = 1, **harness: Any) -> None:
    """Import the environment `journal`: three lines are written to a file."""
    check = 'test "$(cat log)" = "$(printf "one\\ntwo\\nthree")" || { cat log; exit 1; }\n'
    import_workspace(folder, "journal", {f"c{i}": "Write three lines." for i in range(cases)}, check, **harness)


def bash(command: str) -> dict[str, Any]:
    """Return a message of the model that runs *command*."""
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


def remove_box(box: str) -> None:
    client = containers.daemon()
    client.api.remove_container(box, force=True)
    client.close()


def snapshot_folders() -> Iterator[str]:
    yield from list_snapshot_folders("runs")
    yield from list_snapshot_folders("rollouts")

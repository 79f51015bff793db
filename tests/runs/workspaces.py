"""An environment of workspaces whose boxes are lost in tests, and what is left of its episodes."""

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


def import_journal(folder: Path, cases: int = 1, **harness: Any) -> None:
    """Import the environment `journal`: three lines are written to a file."""
    bundle = write_environment(
        folder / "journal",
        files={
            "cases.jsonl": lines([{"id": f"c{number}", "input": "Write three lines."} for number in range(cases)]),
            "tests/test.sh": 'test "$(cat log)" = "$(printf "one\\ntwo\\nthree")" || { cat log; exit 1; }\n',
        },
        slug="journal",
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

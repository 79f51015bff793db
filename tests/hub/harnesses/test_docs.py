"""docs/harnesses.md: its examples are valid bundles, and its tables list every option."""

import re

import pytest
from django.conf import settings

from hub.bundles.loader import open_bundle
from hub.bundles.validation import validate_bundle
from hub.gates.runner import run_gates
from hub.harnesses.custom import CustomHarnessResult
from hub.harnesses.registry import HARNESSES
from hub.harnesses.steps.tool_calls import text_calls
from hub.harnesses.steps.user_turns import UserOptions
from sandbox.client.options import PoolOptions
from sandbox.client.shared_pools import get_shared_pool

PAGE = (settings.BASE_DIR / "docs" / "harnesses.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```\w+ file=(\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
BUNDLES = sorted({path.partition("/")[0] for path, _ in FILES})
# What these gates need, an example need not show.
OPTIONAL = {"lost-key": {"wrong"}}


@pytest.mark.parametrize("name", BUNDLES)
def test_documented_example_passes_its_gates(name, tmp_path):
    for path, content in FILES:
        if path.startswith(f"{name}/"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / path).write_text(content, encoding="utf-8")
    with open_bundle(tmp_path / name) as bundle:
        assert validate_bundle(bundle).problems == []
        gates = run_gates(bundle, pool=get_shared_pool(PoolOptions()))["gates"]
    status = {gate["name"]: gate["status"] for gate in gates if gate["name"] not in OPTIONAL.get(name, ())}
    assert set(status.values()) == {"passed"}, gates


def test_every_harness_has_a_documented_example():
    """A single turn needs none, and docs/workspaces.md has that of a workspace, which test_workspace.py runs."""
    types = {re.search(r"type: (\w+)", text[text.index("harness:") :])[1] for path, text in FILES if "yaml" in path}
    assert types == set(HARNESSES) - {"single_turn", "workspace"}


@pytest.mark.parametrize("harness", HARNESSES.values(), ids=HARNESSES)
def test_every_option_is_documented_in_the_table_of_its_harness(harness):
    section = PAGE.partition(f"\n## {harness.type}\n")[2].partition("\n## ")[0]
    named = {word for row in re.findall(r"^\|(.*?)\|", section, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)}
    assert set(harness.Options.model_fields) <= named
    assert f"[`{harness.type}`](#{harness.type})" in PAGE


def test_keys_of_user_and_custom_results_are_documented():
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert set(UserOptions.model_fields) | set(CustomHarnessResult.model_fields) <= named


def test_documented_text_protocol_can_be_parsed():
    shown = re.search(r"^    ```tool_call\n.*?^    ```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    calls, problem = text_calls(re.sub(r"^    ", "", shown, flags=re.MULTILINE))
    assert (calls[0].name, problem) == ("spend", "")

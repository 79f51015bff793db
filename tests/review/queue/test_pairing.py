"""Tests of the responses of a run that form pairs."""

from typing import Any

import pytest

from hub.protocols.messages import Message
from review.services import create_pairs
from tests.factories import stored_response, stored_run, stored_version

pytestmark = pytest.mark.django_db


def call(identity: str, arguments: str) -> Message:
    function = {"name": "refund", "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": identity, "type": "function", "function": function}],
    }


def text(content: str) -> Message:
    return {"role": "assistant", "content": content}


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        (text("one"), text("two"), 1),
        (text("one"), text("one\n"), 0),
        (text("<think>1?</think>one"), text("one"), 0),
        (call("call_1", '{"order": 1}'), call("call_2", '{"order":1}'), 0),
        (call("call_1", '{"order": 1}'), call("call_1", '{"order": 2}'), 1),
    ],
)
def test_identical_answers_form_no_pair(first: Any, second: Any, pairs: int) -> None:
    version = stored_version("desk", 1)
    run = stored_run(version, ["alpha", "beta"])
    for model, answer in (("alpha", first), ("beta", second)):
        stored_response(
            run, version.cases.get(), model=model, messages=[{"role": "user", "content": "Refund order 1."}, answer]
        )
    assert len(create_pairs(run=run, policy="all")) == pairs

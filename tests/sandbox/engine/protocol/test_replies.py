"""The table of replies: it is complete, and the test judge accepts no other reply of a candidate."""

import ast
import inspect
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.engine.candidate import service
from sandbox.engine.protocol import codec, frames, operations, replies
from sandbox.engine.proxies import proxy, special_methods
from sandbox.engine.proxies.errors import RemoteError, Tampered
from sandbox.engine.proxies.peer import Peer
from tests.sandbox.engine.protocol.test_fuzz import values
from tests.sandbox.fuzz.targets import OPERATIONS, Wire, check_replies

KINDS: dict[str, Any] = {
    "value": 1,
    "same": 0,
    "stop": True,
    "missing": "f",
    "large": 5,
    "error": {
        "type": "E",
        "builtin": "E",
        "message": "",
        "line": None,
        "args": {"t": []},
        "bases": ["E"],
        "attributes": {"m": {}},
        "cause": None,
        "origin": None,
    },
    "callback": {"callback": 0, "args": [], "kwargs": {}},
}
CONTENTS = st.one_of(
    values,
    st.sampled_from(
        [True, False, None, 0, -1, 1.5, "", "text", 2**80, {"i": "ff"}, {"n": "nan"}, {"o": "x"}, {"k": 0}]
    ),
    st.builds(
        lambda number, kind, names, specials, base: {"h": [number, kind, names, specials, base]},
        st.integers(-1, 3),
        st.sampled_from([*sorted(replies.HANDLE_KINDS), "verdict"]),
        st.lists(st.sampled_from(["StopIteration", "Thing", "ValueError", "object"]), max_size=3),
        st.lists(st.sampled_from(["eq", "len", "next", 5]), max_size=2),
        st.sampled_from(["", "", "list", "int", "type", 5]),
    ),
    st.just(KINDS["error"]),
)
REPLIES = st.builds(
    lambda number, contents, changed: {"n": number, **contents, **changed},
    st.sampled_from([1, 1, 1, 1, 1, 2, True, "1"]),
    st.dictionaries(st.sampled_from([*KINDS, "args", "kwargs"]), CONTENTS, min_size=1, max_size=2),
    st.just({}) | st.dictionaries(st.just("changed"), st.dictionaries(st.sampled_from("017x"), CONTENTS, max_size=2)),
)


def ask(operation: str, reply: dict[str, Any]) -> Any:
    """What the judge gets when its first question, of this operation, is replied to like this."""
    peer = Peer(Wire(frames.to_run(frames.PEER, json.dumps(reply).encode())), {}, [])
    if operation in ("get", "call"):
        return peer.ask(operation, (), name="f", on=1, args=[], kwargs={}, nodes=[])
    return peer.ask("apply", name=operation, on=1, args=["name"] if operation == "getattr" else [])


def requested_operations() -> set[str]:
    """Return the names of the operations that the source of the proxies requests."""
    asking = {"asks", "computes", "compares", "apply", "_returns_object", "_awaits"}
    names = set()
    for module in (proxy, special_methods):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in asking:
                names |= {
                    arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                }
    return (names | special_methods.METHODS.keys()) - {"__doc__"}  # an attribute that the proxies ask for


def test_table_of_replies_has_every_operation_of_the_judge() -> None:
    asked = requested_operations()
    assert len(asked) > 30
    assert asked <= replies.OPERATIONS.keys()
    assert replies.OPERATIONS.keys() <= service.OPERATIONS.keys() | operations.FUNCTIONS.keys() | {"plain"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_reply_of_wrong_kind_is_tampering(operation: str, kind: str) -> None:
    reply = KINDS[kind] if kind == "callback" else {"n": 1, kind: KINDS[kind]}
    allowed = {"value", "error", "large"}
    ending = {operation: {"stop"} for operation in ("next", "anext", "send", "throw")}
    allowed |= (ending | {"get": {"missing"}}).get(operation, set())
    if kind not in allowed:  # `same` and `callback` speak of what this question did not give
        with pytest.raises(Tampered):
            ask(operation, reply)
    elif kind == "error":
        with pytest.raises(RemoteError):
            ask(operation, reply)


@pytest.mark.parametrize("name", ["StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_exceptions_that_end_loops_or_processes_are_replaced(operation: str, name: str) -> None:
    error = {**KINDS["error"], "bases": [name, "BaseException", "object"]}
    with pytest.raises(RemoteError):
        ask(operation, {"n": 1, "error": error})


def test_loop_ending_exception_class_of_the_prompt_is_replaced() -> None:
    class Done(StopIteration):
        pass

    error = {**KINDS["error"], "bases": ["Done", "StopIteration"]}
    peer = Peer(
        Wire(frames.to_run(frames.PEER, json.dumps({"n": 1, "error": error}).encode())), {"Done": Done}, ["Done"]
    )
    with pytest.raises(RemoteError):
        peer.ask("apply", name="getattr", on=1, args=["x"])


@pytest.mark.parametrize(
    ("changed", "held"),
    [
        ({"0": [2]}, [2]),
        ({"0": {"o": "list"}}, [1]),  # what could not be encoded stays as it was
        ({"0": {"t": [2]}}, None),
        ({"0": 5}, None),
        ({"1": "x"}, None),
        ({"1": {"k": 0}}, None),
        ({"2": [2]}, None),
        ({"-1": [2]}, None),
        ({"\u0660": [2]}, None),
        ([[2]], None),
    ],
)
def test_only_passed_containers_are_changed_by_a_reply(changed: Any, held: list[int] | None) -> None:
    reply = {"n": 1, "value": None, "changed": changed}
    peer = Peer(Wire(frames.to_run(frames.PEER, codec.dumps(reply))), {}, [])
    given: list[int] = [1]
    nodes = [peer.values.encode(given), peer.values.encode(test_only_passed_containers_are_changed_by_a_reply)]
    if held is None:
        with pytest.raises(Tampered):
            peer.ask("call", (given, None), on=1, args=[{"#": 0}], kwargs={}, nodes=nodes)
    else:
        peer.ask("call", (given, None), on=1, args=[{"#": 0}], kwargs={}, nodes=nodes)
        assert given == held


@settings(max_examples=500, deadline=None)
@given(
    st.builds(
        lambda number, sent: (
            bytes([number]) + b"".join(frames.to_run(frames.PEER, json.dumps(r).encode()) for r in sent)
        ),
        st.integers(0, len(OPERATIONS) - 1),
        st.lists(REPLIES | st.just(KINDS["callback"]), min_size=1, max_size=3),
    )
)
def test_generated_reply_has_type_of_its_operation_or_is_tampering(data: bytes) -> None:
    check_replies(data)

"""Arbitrary bytes written by a run neither pass its tests, nor break or delay their readers."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox.engine.protocol import codec, frames
from tests.sandbox.fuzz.targets import check_answers, check_codec, check_frames, check_reports

WORDS = (
    "n value error large defined missing syntax raised crashed passed total failure kind message type builtin line "
    "bases args kwargs changed same callback returned bad_tests fault 0 1 f assertion gone"
)
words = st.sampled_from(WORDS.split())
tags = st.sampled_from([*"tsfmdinbycxohkvrg"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | words
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(words, inner, max_size=4)
        | st.dictionaries(tags, inner, min_size=1, max_size=1)
        | st.tuples(st.sampled_from(["Decimal", "Fraction", "UUID", "date", "range", "deque", "nope"]), inner).map(
            lambda pair: {"x": list(pair)}
        )
    ),
    max_leaves=12,
)
reports = st.dictionaries(words, values, max_size=5) | values
numbered = st.builds(
    lambda n, report: {"n": n, **report}, st.integers(0, 4), st.dictionaries(words, values, max_size=4)
)
payloads = (reports | numbered).map(lambda report: json.dumps(report).encode()) | st.binary(max_size=40)


def stream(kinds: str) -> st.SearchStrategy[bytes]:
    """A run's bytes: mostly whole frames of these kinds, now and then noise."""
    whole = st.builds(lambda kind, payload: frames.to_run(ord(kind), payload), st.sampled_from([*kinds]), payloads)
    first = st.sampled_from([b"", frames.to_run(frames.REPORT, b'{"defined":true}')])
    rest = st.lists(whole | st.binary(max_size=12), max_size=5).map(b"".join)
    return st.builds(bytes.__add__, first, rest)


@settings(max_examples=400, deadline=None)
@given(values.map(codec.dumps) | st.binary(max_size=64))
@example(b'{"x":["Decimal","1E+999999999999999999"]}')
@example(b'{"f":[{"o":"a"},{"n":"nan"}]}')
@example(b"[" * 100_000)
def test_bytes_decode_to_a_stable_value_or_are_rejected(data: bytes) -> None:
    check_codec(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64) | stream("VPGJB"))
def test_frames_are_the_same_for_any_chunking(data: bytes) -> None:
    check_frames(data)


@settings(max_examples=400, deadline=None)
@given(stream("VVVVPGX"))
@example(b"".join(frames.to_run(frames.REPORT, r) for r in (b'{"defined":true}', b'{"n":1,"value":[{"o":"A"}]}')))
def test_arbitrary_report_gives_an_outcome_that_is_not_passed(data: bytes) -> None:
    check_reports(data)


@settings(max_examples=400, deadline=None)
@given(stream("PPPPVG"))
def test_arbitrary_reply_neither_passes_nor_breaks_the_judge(data: bytes) -> None:
    check_answers(data)

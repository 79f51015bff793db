"""Coverage-guided fuzzing: python -m tests.sandbox.fuzz.run [libFuzzer options], in a venv with atheris and hypothesis.

The suite's hypothesis tests turn libFuzzer's bytes into frames of the right shape; one input in eight is used
raw. For twenty minutes, with what it learns kept in a folder:

    python -m tests.sandbox.fuzz.run corpus/ -max_total_time=1200 -max_len=8192
"""

import sys

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["sandbox"]):
    from tests.sandbox.engine.protocol import test_fuzz as test_channel_fuzz
    from tests.sandbox.engine.protocol import test_replies
    from tests.sandbox.fuzz.targets import TARGETS

SHAPED = [
    test.hypothesis.fuzz_one_input
    for test in (
        test_channel_fuzz.test_bytes_decode_to_a_value_that_keeps_or_are_refused,
        test_channel_fuzz.test_frames_come_out_the_same_however_they_are_cut,
        test_channel_fuzz.test_a_run_that_reports_anything_gets_an_outcome_and_does_not_pass,
        test_channel_fuzz.test_a_judge_that_is_answered_anything_is_neither_fooled_nor_broken,
        test_replies.test_any_reply_to_any_operation_is_of_its_type_or_tampering,
    )
]
RAW = list(TARGETS.values())


def once(data: bytes) -> None:
    """Give one input to one target, which the first byte chooses."""
    first, rest = data[:1], data[1:]
    number = first[0] if first else 0
    chosen = RAW if number % 8 == 7 else SHAPED
    chosen[(number >> 3) % len(chosen)](rest)


if __name__ == "__main__":
    atheris.Setup(sys.argv, once)
    atheris.Fuzz()

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
        test_channel_fuzz.test_bytes_decode_to_a_stable_value_or_are_rejected,
        test_channel_fuzz.test_frames_are_the_same_for_any_chunking,
        test_channel_fuzz.test_arbitrary_report_gives_an_outcome_that_is_not_passed,
        test_channel_fuzz.test_arbitrary_reply_neither_passes_nor_breaks_the_judge,
        test_replies.test_generated_reply_has_type_of_its_operation_or_is_tampering,
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

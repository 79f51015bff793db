"""Coverage-guided fuzzing: python -m tests.sandbox.fuzz.run TARGET [libFuzzer options], in a venv that has atheris.

For example, for twenty minutes and with what it learns kept in a folder:

    python -m tests.sandbox.fuzz.run answers corpus/ -max_total_time=1200 -max_len=4096
"""

import sys

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["sandbox", "json"]):
    from tests.sandbox.fuzz.targets import TARGETS


def main(arguments: list[str]) -> int:
    """Fuzz until libFuzzer's options end it; does not return then. The exit code for a wrong target."""
    if len(arguments) < 2 or arguments[1] not in (*TARGETS, "all"):
        print((__doc__ or "").strip(), "\n\nTargets:", ", ".join([*TARGETS, "all"]), file=sys.stderr)
        return 2
    chosen = list(TARGETS.values()) if arguments[1] == "all" else [TARGETS[arguments[1]]]

    def once(data: bytes) -> None:
        target = chosen[data[0] % len(chosen)] if data else chosen[0]
        target(data[1:])

    atheris.Setup([arguments[0], *arguments[2:]], once)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

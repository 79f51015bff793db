"""Prints the conformance table: for each backend and tier how many rows passed, and which were skipped and why.

    python -m tests.sandbox.conformance [--setup local-A ...] [--row TEXT]

Exits with 1 if a row failed, with 3 if a backend given by name is not available. The whole table takes minutes.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.sandbox.conformance.bench import SETUPS, Setup, bench, complaint_of, why_left_out
from tests.sandbox.conformance.case import Case
from tests.sandbox.conformance.table import TABLE

KINDS = {"F": "never passes", "C": "contained", "D": "denied", "P": "passes"}


@dataclass
class Result:
    """What came of the table on one backend at one tier; `absent` says why nothing did."""

    setup: Setup
    held: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    absent: str = ""


def run(setup: Setup, rows: list[Case]) -> Result:
    """Try every row on one backend at one tier."""
    result = Result(setup)
    try:
        with bench(setup) as engines:
            for case in rows:
                reason = why_left_out(case, setup, engines.host)
                if reason:
                    result.left_out[reason] += 1
                elif complaint := complaint_of(case, engines):
                    result.broken.append(f"{case.kind} {case.id}: {complaint}")
                else:
                    result.held[case.kind] += 1
    except pytest.skip.Exception as missing:
        result.absent = str(missing)
    return result


def table(results: list[Result]) -> str:
    """A line for each result, and below the reasons."""
    head = "".join(f"{f'{kind} {meaning}':>18}" for kind, meaning in KINDS.items())
    lines = [f"{'held':<18}{head}{'left out':>10}{'broken':>8}"]
    for result in results:
        held = "".join(f"{result.held[kind]:>18}" for kind in KINDS)
        lines.append(f"{result.setup.name:<18}{held}{result.left_out.total():>10}{len(result.broken):>8}")
    for result in results:
        name = result.setup.name
        lines += [f"{name}: not here: {result.absent}"] if result.absent else []
        lines += [f"{name}: {count} left out: {reason}" for reason, count in result.left_out.items()]
        lines += [f"{name}: BROKEN {what}" for what in result.broken]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setup", action="append", choices=[setup.name for setup in SETUPS])
    parser.add_argument("--row", default="", help="only rows whose name contains this text")
    options = parser.parse_args()
    rows = [case for case in TABLE if options.row in case.id]
    results = []
    for setup in SETUPS:
        if not options.setup or setup.name in options.setup:
            print(f"{setup.name}: {len(rows)} rows", file=sys.stderr)
            results.append(run(setup, rows))
    print(table(results))
    if any(result.broken for result in results):
        return 1
    return 3 if options.setup and any(result.absent for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())

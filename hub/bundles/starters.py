"""Starter bundles: a small complete bundle for each type of harness, to be downloaded and changed.

To add one for a new harness, add a folder of its name to hub/starters. The README's first paragraph describes it on the
upload page. A test checks that each harness has one, and that it passes its gates.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hub.bundles.loader import README, Bundle, open_bundle
from hub.harnesses.registry import HARNESSES

FOLDER = Path(__file__).resolve().parents[1] / "starters"
_SIMPLEST_FIRST = ("single_turn", "multi_turn", "tools", "code_repair", "workspace", "custom")


@dataclass(frozen=True, slots=True)
class Starter:
    """A starter bundle: the type of its harness, its title and one paragraph on when to use it."""

    harness: str
    title: str
    about: str


@cache
def list_starters() -> list[Starter]:
    """Return the starter of each harness, the simplest harness first."""
    known = [harness for harness in _SIMPLEST_FIRST if harness in HARNESSES]
    others = sorted(set(HARNESSES) - set(known))
    return [_starter(harness) for harness in (*known, *others)]


def _starter(harness: str) -> Starter:
    title, about, *_ = (FOLDER / harness / README).read_text(encoding="utf-8").split("\n\n")
    return Starter(harness, title.removeprefix("# ").strip(), " ".join(about.split()))


def open_starter(harness: str) -> Bundle:
    """Open the starter bundle of *harness*. Raises UnknownName if there is no such harness."""
    HARNESSES.require(harness)
    return open_bundle(FOLDER / harness)

"""Parts of messages: numbers with nouns, amounts of money, shares, suggestions for unknown names. No side effects."""

import math
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import PurePosixPath

_MAX_LISTED = 20
ROUNDING = 1e-9  # error of a share that is none or all
_CUTOFF = 0.65  # at difflib's usual 0.6, `sample` would be suggested for `name`


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 case`, `1,200 cases`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def name_some(names: Iterable[str], most: int = 4) -> str:
    """Return at most *most* names and the number of the others: `a, b, c, d and 12 more`."""
    names = list(names)
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def dollars(usd: float) -> str:
    """Return an amount to the cent from a dollar on, to four digits below, and to two significant ones below $0.001."""
    if usd == 0:
        return "$0"
    if abs(usd) >= 0.001:
        return f"${usd:,.2f}" if abs(usd) >= 1 else f"${usd:.4f}"
    digits = 1 - math.floor(math.log10(abs(usd)))
    return f"${usd:.{digits}f}".rstrip("0")


def percent(share: float) -> str:
    """Return a share in percent: 0.853 as `85.3 %`. Only what is none or all is `0.0 %` or `100.0 %`."""
    text = f"{100 * share:z.1f}"
    if text == "0.0" and share > ROUNDING:
        return "< 0.1 %"
    if text == "100.0" and share < 1 - ROUNDING:
        return "> 99.9 %"
    return f"{text} %"


def decimals(value: float, digits: int, *, whole: float = 1.0, sign: str = "") -> str:
    """Return *value* with *digits* decimals, or more if it would be rounded to 0 or to *whole*: 0.004 as `0.004`.

    Bounds of intervals are written so, because an interval that excludes 0 must not look as if it contained it.
    """
    text = f"{value:{sign}z.{digits}f}"
    shown = abs(float(text))
    distance = abs(abs(value) - shown)
    if shown not in (0.0, whole) or distance <= ROUNDING * whole:
        return text
    significant = float(f"{distance:.0e}")  # rounded to one digit: 0.0096 as 0.01
    return f"{value:{sign}z.{-math.floor(math.log10(significant))}f}"


def points(difference: float, *, plus: bool = True) -> str:
    """Return a difference of shares in percentage points, with its sign: 0 as `+0.0`. Without *plus*, 0 as `0.0`."""
    return decimals(100 * difference, 1, whole=100, sign="+" if plus else "")


def interval(low: float, high: float) -> str:
    """Return two shares, or differences of shares, in percent: `[73.9, 91.9]`. There is no -0.0."""
    return f"[{decimals(100 * low, 1, whole=100)}, {decimals(100 * high, 1, whole=100)}]"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `did you mean x?` if one of *known* is close to *word*, else `known are a, b`; "" if none is known."""
    names = list(dict.fromkeys(known))
    if similar := find_similar(word, names):
        return f"did you mean {similar!r}?"
    return f"known are {name_some(names, _MAX_LISTED)}" if names else ""


def find_similar(word: str, known: Sequence[str]) -> str | None:
    """Return the one of *known* that is close to *word*; None if there is none."""
    near = get_close_matches(word, known, n=1, cutoff=_CUTOFF) or [n for n in known if n.lower() == word.lower()]
    return near[0] if near else None


def find_similar_file(path: str, files: Iterable[str]) -> str | None:
    """Return the one of *files* with a name like that of *path*; None if there is none.

    Names are compared without folder and extension: because of `.json` alone, stock.json resembles gold.jsonl.
    """
    by_stem: dict[str, list[str]] = {}
    for file in files:
        by_stem.setdefault(PurePosixPath(file).stem, []).append(file)
    stem = find_similar(PurePosixPath(path).stem, list(by_stem))
    return None if stem is None else max(by_stem[stem], key=lambda file: SequenceMatcher(None, path, file).ratio())


def end_sentence(text: str) -> str:
    """Return *text*, such as one that ends with the result of `suggest`, with a full stop if no mark ends it."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def sentence(clause: str) -> str:
    """Return *clause* with a capital letter at its start and a full stop if no mark ends it."""
    return end_sentence(clause[:1].upper() + clause[1:])


def unknown_name(noun: str, name: str, known: Iterable[str], *, none: str = "none is stored yet") -> str:
    """Return a sentence that no *noun* has *name*, with a suggestion from *known*, or with *none* if it is empty."""
    return end_sentence(f"There is no {noun} {name!r}; {suggest(name, known) or none}")


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown *key*."""
    advice = suggest(key, known)
    return f"unknown key; {advice}" if advice else "unknown key; remove it"

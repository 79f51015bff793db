"""Formats of figures and of foreign text in every report: units, money, shares, and text made safe to print."""

import math
import re

from hub.common import wording
from hub.common.output.foreign_text import clean

UNDEFINED = "-"


def markdown(text: str) -> str:
    """Return foreign text for a line of Markdown, in which its characters have no meaning."""
    text = clean(text).replace("\\", "\\\\")
    for character in "|`*_<>#":
        text = text.replace(character, f"\\{character}")
    return re.sub(r"\](?=[(\[:])", r"\\]", text)  # the end of a link's text; intervals keep their brackets


def cut(text: str, size: int) -> str:
    """Return *text* in at most *size* characters; three dots show a cut."""
    return text if len(text) <= size else text[: size - 3].rstrip() + "..."


def percent(share: float | None) -> str:
    """Return a share in percent: 0.853 as `85.3 %`."""
    return UNDEFINED if share is None else wording.percent(share)


def score(value: float | None, decimals: int = 2) -> str:
    """Return a score or another figure of at most 1 in decimals: `0.85`. Only 1 is `1.00`, and only 0 is `0.00`;
    only -1 is `-1.00`.

    If *decimals* is negative, 1 and 0 are written without decimals.
    """
    if value is None:
        return UNDEFINED
    if decimals < 0 and value in (0, 1):
        return f"{value:.0f}"
    digits = abs(decimals)
    text, step = f"{value:z.{digits}f}", 10.0**-digits
    if float(text) == 0 and abs(value) > wording.ROUNDING:
        return f"< {step:.{digits}f}" if value > 0 else f"> {-step:.{digits}f}"
    if abs(float(text)) == 1 and abs(value) < 1 - wording.ROUNDING:
        return f"> {1 - step:.{digits}f}" if value > 0 else f"< {step - 1:.{digits}f}"
    return text


def score_interval(low: float | None, high: float | None) -> str:
    """Return the bounds of a score or of another figure of at most 1: `[0.41, 0.997]`."""
    return UNDEFINED if low is None or high is None else f"[{wording.decimals(low, 2)}, {wording.decimals(high, 2)}]"


def interval(low: float | None, high: float | None) -> str:
    """Return two shares, or differences of shares, in percent: `[73.9, 91.9]`. There is no -0.0."""
    return UNDEFINED if low is None or high is None else wording.interval(low, high)


def method(name: str) -> str:
    """Return the name of an interval's method for people: `wilson_effective_n` as `Wilson, effective n`."""
    for key, title in (("wilson", "Wilson"), ("agresti_coull", "Agresti-Coull"), ("tango", "Tango")):
        if name.startswith(key):
            suffix = name.removeprefix(key).strip("_").replace("_", " ")
            return f"{title}, {suffix}" if suffix else title
    return name


def points(difference: float | None, *, plus: bool = True) -> str:
    """Return a difference of shares in percentage points, with its sign: 0 as `+0.0`. Without *plus*, 0 as `0.0`."""
    return UNDEFINED if difference is None else wording.points(difference, plus=plus)


def size(difference: float | None) -> str:
    """Return the size of a difference in percentage points, without its sign."""
    return UNDEFINED if difference is None else wording.points(abs(difference), plus=False)


def money(usd: float | None) -> str:
    """Return an amount in dollars."""
    return UNDEFINED if usd is None else wording.dollars(usd)


def ratio(value: float) -> str:
    """Return a ratio with two decimals, below 0.1 with two significant digits: `1.21`, `0.0034`. Only 0 is `0.00`."""
    return f"{value:.2f}" if value >= 0.1 or value <= 0 else f"{value:.{1 - math.floor(math.log10(value))}f}"


def tokens(count: float) -> str:
    """Return a number of tokens: 12,345 as `12.3 k`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size - size / 20_000:  # what would be rounded to 1000.0 of the smaller unit
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f}"


def milliseconds(value: float | None) -> str:
    """Return a time in milliseconds: without decimals from a hundred on, with one below."""
    if value is None:
        return UNDEFINED
    return f"{value:,.0f}" if round(value, 1) >= 100 else f"{value:.1f}"


def times(p50: float | None, p95: float | None) -> str:
    """Return median and 95th percentile in milliseconds: `120/310`."""
    return UNDEFINED if p50 is None else f"{milliseconds(p50)}/{milliseconds(p95)}"


def count(number: int) -> str:
    return f"{number:,}"


def p_value(value: float | None) -> str:
    """Return a p-value with four decimals. One just below 0.05, which shows a difference, is not rounded to it."""
    if value is None:
        return UNDEFINED
    if value < 0.0001:
        return "< 0.0001"
    text = f"{value:.4f}"
    return "< 0.05" if text == "0.0500" and value < 0.05 else text


def duration(seconds: float) -> str:
    """Return a wall time: `3.1 s`, `4 min 05 s`, `2 h 03 min`."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"

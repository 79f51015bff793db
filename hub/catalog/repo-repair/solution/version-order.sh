set -eu
cat > versions/parse.py <<'END'
"""Parts of versions such as 1.10.0-rc.1+build5."""


def parse(text):
    """Return a key for sorting. Raises ValueError unless the text has three numbers, separated by dots."""
    core, _, pre = text.partition("+")[0].partition("-")
    numbers = core.split(".")
    if len(numbers) != 3:
        raise ValueError(f"{text!r} does not have three numbers")
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")] if pre else []
    return ([int(number) for number in numbers], not pre, parts)
END
cat > versions/select.py <<'END'
"""Choosing versions."""

from versions.parse import parse


def newest(versions, pre_releases=False):
    """Return the highest version, or None if there is none. Pre-releases count only if they are allowed."""
    allowed = [text for text in versions if pre_releases or "-" not in text.partition("+")[0]]
    return max(allowed, key=parse, default=None)


def ordered(versions):
    """Return the versions from the lowest to the highest."""
    return sorted(versions, key=parse)
END

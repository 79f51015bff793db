"""Detection of initials of names that look like labels: the F of "F. Scott Fitzgerald wrote it"."""

import re
from collections.abc import Sequence

# "C. S. Lewis", or a name that is the subject of a short sentence: "F. Scott Fitzgerald wrote it".
_NAME = re.compile(
    r"(?<![\w'’.])(?P<initial>[A-Z])\.\s(?=(?P<name>[A-Z][\w'’-]*))"
    r"(?:(?:[A-Z]\.\s){1,3}[A-Z][\w'’-]+|(?:[A-Z][\w'’-]+\s){2}(?:\w+ed|wrote|sang|made|built|found|drew|said|won)"
    r"\s(?:it|this|that|them)\b)"
)
_INITIAL = re.compile(r"(?<![\w'’])(?P<initial>[A-Z])\.\s(?=(?P<name>[^\W\d_][\w'’-]*))")


class Initials:
    """Initials of names that are also labels of a question. The options decide which of the two is meant."""

    def __init__(self, labels: Sequence[str], choices: Sequence[str]) -> None:
        self._labels = set(labels)
        self._options = dict(zip(labels, choices, strict=False))
        # What follows each initial in the options: "Scott" after F.
        self._named = {
            (match["initial"], match["name"])
            for option in choices
            for match in _INITIAL.finditer(option)
            if match["initial"] in self._labels
        }

    def join(self, text: str) -> str:
        """Return *text* with initials joined to the names after them, so that they cannot be read as labels."""
        if self._named:
            text = _INITIAL.sub(lambda m: m["initial"] if self._is_named(m) else m[0], text)
        return _NAME.sub(lambda m: m[0] if self._repeats_option(m) else m[0].replace(". ", ""), text)

    def _is_named(self, match: re.Match[str]) -> bool:
        return (match["initial"], match["name"]) in self._named and not self._repeats_option(match)

    def _repeats_option(self, match: re.Match[str]) -> bool:
        """Return whether the name begins the option that the initial labels: "C. Marie Curie" with "Marie Curie"."""
        option = self._options.get(match["initial"], "")
        return option.casefold().startswith(match["name"].casefold())

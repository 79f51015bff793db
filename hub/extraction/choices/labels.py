"""The labels of one question, and the texts that consist of a label or begin with one."""

import re
from collections.abc import Sequence

from hub.extraction.choices.options import OptionReader, flatten, keep_words, without_articles
from hub.extraction.choices.phrases import AFTER_LABEL, LIST_NUMBER, OPTION, TICKS
from hub.extraction.markup import strip_markup

SEVERAL = "\0several"  # in place of a label: the text names more than one


def _pattern(label: str) -> str:
    """Return the pattern of a label. One that ends in a digit is not found within a number: 2 in "2.5"."""
    return re.escape(label) + (r"(?![.,]?\d)" if label[-1:].isdigit() else "")


class LabelReader:
    """Reader of the labels and options of one question in a text.

    any: pattern of a label. label: the same as the group `label`, with marks before it.
    """

    def __init__(self, labels: Sequence[str], choices: Sequence[str]) -> None:
        self.labels = list(labels)
        self.options = OptionReader(labels, choices)
        self.any = "|".join(map(_pattern, sorted(labels, key=len, reverse=True)))
        self.label = rf"[(\[*_\"'$ \t]{{0,6}}(?P<label>{self.any})"
        self._by_fold = {label.casefold(): label for label in labels}

    def exact_label(self, text: str) -> str | None:
        """Return the label that *text* consists of, apart from markup around it."""
        core = strip_markup(text.strip(f"{TICKS}\ufe0f \t")).strip("()[]{}<>.:!?*_`'\"# \t$")
        numbered = re.fullmatch(r"\d{1,2}[.)]\s+(\S+)", core)
        return self._by_fold.get((numbered[1] if numbered else core).casefold())

    def without_question(self, text: str) -> str:
        """Return *text* without a question at its beginning that consists of labels: "True or false? False."."""
        question = rf"\W{{0,4}}(?:{self.any})(?:\s*(?:,|/|\bor\b)\s*(?:{self.any}))+\s*\?[\s*_]*(?=\S)"
        return re.sub(rf"\A{question}", "", text, flags=re.IGNORECASE)

    def all_labels(self, text: str) -> set[str]:
        """Return the labels of a text that consists only of labels, such as "A B" or "A, B"; empty for other texts."""
        if not any(label.isdigit() for label in self.labels):
            text = LIST_NUMBER.sub("", text)
        words = set(re.findall(r"\w+", text)) - {"and", "or"}
        return words if words <= set(self.labels) else set()

    def consists_of_several(self, text: str) -> bool:
        """Return whether *text* consists of several labels, each once, and is no list of all options."""
        found = self.all_labels(text)
        once = len(re.findall(rf"(?<!\w)(?:{self.any})(?!\w)", text)) == len(found)
        return once and len(found) > 1 and (len(found) < len(self.labels) or "\n" not in text)

    def leading_label(self, text: str) -> str | None:
        """Return the label at the beginning of a marked answer, or the label of the option that it quotes."""
        text = re.sub(
            r"^(?:[-•>]\s+)?(?:(?:la|el|die|der|das|le|the|o|probably|likely|definitely|clearly)\s+)?"
            rf"(?:{OPTION}\b[ \t:]*)?",
            "",
            strip_markup(text),
            flags=re.IGNORECASE,
        )
        if text in self.labels:
            return text
        found = (
            self.options.label_of_equal_option(text, flatten, 1)
            or self.exact_label(text)
            or self.options.label_of_equal_option(text, keep_words, 3)
            or self.options.label_of_equal_option(text, without_articles, 4)
        )
        if found:
            return found
        match = re.match(self.label + r"(?P<mark>[)\]*_\"'$]*(?:[.:,;)\]*_-]|\s[-–—]|\s*\())", text)
        if match:
            return match["label"]
        folded = re.match(self.label + r"[)\]]", text, re.IGNORECASE)
        if folded:
            return self._by_fold.get(folded["label"].casefold())
        before_word = re.match(self.label + rf"\s+(?P<next>{AFTER_LABEL})\b", text)
        return before_word["label"] if before_word else self.options.label_by_words(text)

    def contradicts_itself(self, text: str) -> bool:
        """Return whether *text* consists of a label and the text of another option: "B (Paris)" if A is Paris."""
        text = text.strip()
        match = re.fullmatch(
            rf"(?i:{OPTION}\s+)?{self.label}(?:[)\]*_\"'.:,]{{1,4}}\s*|\s+[(–—-])(?P<rest>.*)", text
        ) or re.fullmatch(rf"(?P<rest>.*\S)\s{{0,3}}[(\[](?i:{OPTION}\s+)?(?P<label>{self.any})[)\]][*_.!\s]*", text)
        if match is None:
            return False
        other = self.options.label_of_equal_option(match["rest"].strip("()[]*_.:–— -"), flatten, 2)
        return other is not None and other != match["label"]

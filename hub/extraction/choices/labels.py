"""Reader of the labels and options of one question in a text."""

import itertools
import re
from collections.abc import Sequence

from hub.extraction.choices.options import SHORT_TEXT, OptionReader, flatten, keep_words, without_denials
from hub.extraction.choices.phrases import (
    AFTER_LABEL,
    BESIDES,
    CHOSEN,
    DENIAL,
    DENIED_LABEL,
    FITS,
    LEADS_TO,
    LIST_NUMBER,
    NEGATIVE_OPTION,
    NOT_RESTRICTED,
    NOT_SO,
    OPTION,
    RANKED,
    REASON,
    RIGHT,
    SAID_RIGHT,
    SAID_WRONG,
    VERDICT,
    WRONG,
)
from hub.extraction.corrections import ALTERNATIVELY, statement_versions
from hub.extraction.statements import Marker, Statement, is_counterfactual, is_supposed, statements, strip_markup

SEVERAL = "\0several"  # in place of a label: the text names more than one
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_]*\s+|\n")
_PART_END = re.compile(r"[*_]{0,4}(?:[,;:]|\s[-–—])\s")
_MOST_STATEMENTS = 20  # number of statements that are tried
_TICKS = "✅✔☑"
_CROSSES = "❌✗✘✖"
_MARK_END = re.compile(rf"(?<=\S[ \t][{_TICKS}{_CROSSES}])\ufe0f?[ \t]*[,;]?[ \t]+(?=\S)")
_LONGEST_END = 400  # characters at the end that are searched for labels joined as possible


def _pattern(label: str) -> str:
    """Return the pattern of a label. One that ends in a digit is not found within a number: 2 in "2.5"."""
    return re.escape(label) + (r"(?![.,]?\d)" if label[-1:].isdigit() else "")


# "A) Paris – wrong, it is in France", "| B | correct |", "Berlin is right"
_COMMENTED = re.compile(
    r"(?P<option>\S.{0,300}?)(?:[.)\]:]?\s*(?:<-+|[-–—:|(=→])\s*|[.)\]]\s+|\s+(?:is|ist|est|es|è)\s+)[*_\s]{0,4}"
    rf"(?:(?P<right>{SAID_RIGHT})|(?P<wrong>{SAID_WRONG}))"
)


_VERDICT_HEADING = re.compile(
    r"\|[*_\s]*(?:correct|right|the answer|answer|valid|true)\s?\??[*_\s]*\|\s*", re.IGNORECASE
)
_VERDICT_CELL = re.compile(r"\|[*_\s]*(?P<verdict>yes|no)[*_\s]*\|\s*", re.IGNORECASE)


def _with_verdicts(lines: Sequence[str]) -> list[str]:
    """Return *lines* with "yes" and "no" in the last cells of a table replaced, if its heading is "Correct?"."""
    found = []
    in_table = False
    for line in lines:
        last = line[line.rstrip(" |").rfind("|") :] if "|" in line else ""
        in_table = bool(last) and (in_table or _VERDICT_HEADING.fullmatch(last) is not None)
        cell = _VERDICT_CELL.fullmatch(last) if in_table else None
        comment = "right" if cell and cell["verdict"].casefold() == "yes" else "wrong"
        found.append(f"{line[: -len(last)]}| {comment} |" if cell else line)
    return found


class ChoiceReader:
    """Reader of the labels and options of one question in a text."""

    def __init__(self, labels: Sequence[str], choices: Sequence[str]) -> None:
        self._labels = list(labels)
        self._by_fold = {label.casefold(): label for label in labels}
        self.options = OptionReader(labels, choices)
        self._any = "|".join(map(_pattern, sorted(labels, key=len, reverse=True)))
        self._start = rf"^[ \t]*(?:\*\*|__)?[(\[]?(?P<label>{self._any})(?:[)\].:]|\*\*|__|\s\((?=[^()]+\)\W*$))"
        emphasised = rf"(?:\*\*|__)[(\[]?(?P<label>{self._any})[)\]]?[.:]?(?:\s[^*\n]{{0,200}})?(?:\*\*|__)"
        self._anywhere = rf"{emphasised}|\((?P<round>{self._any})\)"
        self._alternative = (
            r"(?:\bor\b|\band\b|\bo\b|\boder\b|\bou\b|\bund\b|/|&|\+|,|;|或|和|、)\s*"
            r"(?i:(?:or|and|maybe|possibly|perhaps|also|even|either|the|option|choice|answer|letter)\s+){0,4}"
            rf"[(\[*_\"']{{0,4}}(?P<other>{self._any})(?![\w'’])"
            rf"(?![)\]*_.:]*\s*(?:\S+\s+){{0,3}}?(?:(?:is|are|was|were|be|can|could|would|does|do)\s*)?{WRONG})"
            r"(?=[)\]*_\"'.,;:!?/]|\s*$|\s+(?:or|and|as|are|is|seems?|looks?|could|might|both)\b|\s*[^\x00-\x7f])"
        )
        # "(A) is wrong", whose label is not chosen
        self._rejected = re.compile(
            rf"[(\[*_\"']{{0,4}}\b(?:{self._any})[)\]*_\"'.:]{{0,4}}\s+(?:is|was)\s+(?:\w+ly\s+)?{WRONG}"
        )
        one = rf"[(\[*_\"']{{0,4}}(?:{self._any})[)\]*_\"'.:]{{0,4}}(?![\w'’])"
        several = (
            rf"(?P<several>{one}"
            rf"(?:(?:\s*,\s*(?:and\s+|or\s+|nor\s+)?|\s+(?:and|or|nor)\s+|\s*/\s*)(?i:{OPTION}\s+)?{one}){{0,30}})"
        )
        # "A, C and D are wrong", "not A", "neither A nor C"
        self._ruled_out = (
            rf"(?<![\w'’]){several}\s*(?:(?:is|are|was|were|can|could|must|do|does)\s*)?(?:all\s+|both\s+|clearly\s+|also\s+|be\s+)*{WRONG}",
            rf"(?i:\b(?:not|neither|nor|rul(?:e|es|ed|ing) out|eliminat(?:e|es|ed|ing)|exclud(?:e|es|ed|ing)"
            rf"|isn['’]t|can['’]t be|"
            rf"cannot be)\s+(?:{OPTION}\s+)?){several}",
        )
        # Before the last label in "none of A, B and C is right", "neither A nor C is right"
        self._none_of = (
            rf"(?i:\b(?:none\s+of|neither))\s+(?i:(?:the\s+)?(?:{OPTION}\s+)?)"
            rf"(?:{one}(?:\s*,\s*|\s+)(?:(?:and|or|nor)\s+)?){{1,30}}[(\[*_\"']{{0,4}}$"
        )
        # "B; A is too small": a clause about another label that does not call it an answer, too
        self._other_clause = (
            rf";\s*{several.replace('?P<several>', '?:')}\s+(?i:is|are|was|were|has|have|do|does)\b"
            r"(?!\s+(?i:also|equally|both|possible|plausible|acceptable|correct|right|valid|true"
            r"|the(?!\s+(?:second|third|next|least)\b))\b)"
        )
        # After a chosen label: "D is also correct.", "and so is D", "D is correct as well"
        too = rf"(?i:{OPTION}\s+)?[(\[*_\"']{{0,4}}(?P<too>{self._any})(?![\w'’])[)\]*_\"'.:]{{0,4}}"
        right = r"(?i:correct|right|true|valid|acceptable|accepted|possible)"
        self._chosen_too = (
            rf"(?:[.!;,]|\n|,?\s(?i:and|but|though|although))\s{{0,9}}(?<=\s)(?i:(?:and|but|though|although|the)\s+){{0,2}}{too}\s+(?i:is|are)\s+(?:(?i:also|equally)\s+{right}"
            rf"|{right}\s*,?\s*(?i:as well|too))(?!\w)(?!,?\s+(?i:but|except|only))",
            rf"(?i:\band\s+so\s+is\s+(?:the\s+)?){too}(?=\s*[.!;,]|\s*$)",
            rf"(?:^|[.!;,]|\n)\s{{0,9}}[(*_]{{0,3}}(?i:also)(?:\s+{right})?(?:\s+is|[*_]*\s?:)[*_]*\s+{too}(?=[\s*_]*(?:[.!;,)]|\n|$))",
        )
        self._label = rf"[(\[*_\"'$ \t]{{0,6}}(?P<label>{self._any})"

    def exact_label(self, text: str) -> str | None:
        """Return the label that *text* consists of, apart from markup around it."""
        core = strip_markup(text).strip("()[]{}<>.:!?*_`'\"# \t$")
        numbered = re.fullmatch(r"\d{1,2}[.)]\s+(\S+)", core)
        return self._by_fold.get((numbered[1] if numbered else core).casefold())

    def all_labels(self, text: str) -> set[str]:
        """Return the labels of a text that consists only of labels, such as "A B" or "A, B"; empty for other texts."""
        if not any(label.isdigit() for label in self._labels):
            text = LIST_NUMBER.sub("", text)
        words = set(re.findall(r"\w+", text)) - {"and", "or"}
        return words if words <= set(self._labels) else set()

    def consists_of_several(self, text: str) -> bool:
        """Return whether *text* consists of several labels, each once, and is no list of all options."""
        found = self.all_labels(text)
        once = len(re.findall(rf"(?<!\w)(?:{self._any})(?!\w)", text)) == len(found)
        return once and len(found) > 1 and (len(found) < len(self._labels) or "\n" not in text)

    def stated_label(self, text: str) -> str | None:
        """Return the label in the statement of the answer; SEVERAL if it names several."""
        for statement in statements(text)[:_MOST_STATEMENTS]:
            if statement.mark == Marker.DECISION:
                continue  # handled by `concluded_label`
            version = next(
                (part for part in statement_versions(statement.text) if self.leading_label(part)), statement.text
            )
            following = _SENTENCE_END.split(version, maxsplit=1)[1:]
            if (
                self.names_several(version)
                or any(self._other_follows(sentence, version) for sentence in following)
                or self.contradicts_itself(version)
                or self._joined(text, statement)
                or self._other_follows(text[statement.end : statement.end + 100], version)
            ):
                return SEVERAL
            label = self.leading_label(version)
            if label and self._calls_right_too(text[statement.start :], label):
                return SEVERAL
            if label:
                return label
        return None

    def is_uncertain(self, text: str) -> bool:
        """Return whether the last sentences of a text join labels as possible: "Could be B or D; both have it."."""
        label = rf"(?i:(?:the\s+)?{OPTION}\s+)?[(\[*_\"']{{0,4}}(?P<NAME>{self._any})(?![\w'’])[)\]*_\"'.]{{0,4}}"
        joined = (
            r"(?:\s*[,;]?\s*(?i:or|or maybe|or perhaps|or possibly|oder|ou"
            r"|o|maybe|possibly|perhaps)\s+(?i:also\s+|even\s+)?|\s*/\s*)"
        )
        pattern = (
            r"(?i:\b(?:could|might|may|can|either|between|maybe|perhaps|possibly|probably|torn|toss-up|it(?:['’]s| is))"
            rf"(?:\s+(?:also|well|be|is|it['’]s|either|between|equally"
            rf"|the|just)){{0,3}}\s+){label.replace('NAME', 'one')}"
            rf"(?:{joined}|\s+(?i:and|und|et|y)\s+){label.replace('NAME', 'other')}"
        )
        text = text[-_LONGEST_END:]
        return any(
            match["one"] != match["other"]
            and not re.match(rf"\s*(?:(?:is|are|be|can|could)\s*)?{WRONG}", text[match.end() :])
            and not DENIAL.search(text[max(match.start() - 20, 0) : match.end()])
            and not re.search(rf"(?i:\bbut\s+{CHOSEN}\s+(?:{OPTION}\s+)?){self._label}(?!\w)", text[match.end() :])
            # "between A and C, but A is less likely, so C"
            and not re.search(
                rf"(?i:(?<!\w){LEADS_TO}\s+(?:it(?:['’]s| is)\s+)?(?:{OPTION}\s+)?){self._label}"
                r"[)\]*_\"'.!]{0,4}\s*\Z",
                text[match.end() :],
            )
            for match in re.finditer(pattern, text)
        )

    def _calls_right_too(self, text: str, label: str) -> bool:
        """Return whether *text* calls another label right as well: "A. C is also correct."."""
        return label not in self.options.combining and any(
            match["too"] != label
            for pattern in self._chosen_too
            for match in re.finditer(pattern, self.options.with_labels(text[:_LONGEST_END]))
        )

    def _joined(self, text: str, last: Statement) -> bool:
        r"""Return whether "or" or a comma joins a statement to one before it: "\boxed{A} or \boxed{B}"."""
        return any(
            re.fullmatch(r"[\s$)*.]{0,6}(?:,|/|\bor\b|\band\b)[\s$(*]{0,6}", text[other.end : last.start][:30])
            is not None
            and self.leading_label(other.text) != self.leading_label(last.text)
            for other in statements(text)[:_MOST_STATEMENTS]
            if 0 <= last.start - other.end <= 20
        )

    def names_several(self, text: str) -> bool:
        """Return whether a statement names several labels: "A or B", "B and C", "A) Paris or B) London", "B (or C)"."""
        text = REASON.split(strip_markup(text), maxsplit=1)[0]
        if len(self.all_labels(text)) > 1:
            return True
        first = re.match(rf"(?i:either|both|between|options?)?\s*{self._label}(?![\w'’])", text)
        if first is None:
            return False
        rest = re.sub(self._ruled_out[0], " ", re.split(self._other_clause, text[first.end() :], maxsplit=1)[0])
        # In "C) Both A and B" the text of the option names others: "and B" does not follow the first label.
        within = re.compile(rf"\b(?!{re.escape(first['label'])}\b)(?:{self._any})[)\]*_]{{0,3}}\s*$")
        return any(
            match["other"] != first["label"] and not within.search(rest[: match.start()])
            for match in re.finditer(self._alternative, rest)
        )

    def contradicts_itself(self, text: str) -> bool:
        """Return whether *text* consists of a label and the text of another option: "B (Paris)" if A is Paris."""
        match = re.fullmatch(
            rf"(?i:{OPTION}\s+)?{self._label}(?:[)\]*_\"'.:,]{{1,4}}\s*|\s+[(–—-])(?P<rest>.*)", text.strip()
        )
        if match is None:
            return False
        other = self.options.label_of_equal_option(match["rest"].strip("()[]*_.:–— -"), flatten, 2)
        return other is not None and other != match["label"]

    def ticked_label(self, text: str) -> str | None:
        """Return the only label that *text* ticks: "A ❌, B ✅", "| B | ✅ |", "- [x] B"."""
        label = self._label.replace("label", "before")
        pattern = re.compile(
            rf"[\s>•*-]*(?:(?:[{_TICKS}]\ufe0f?|\[[xX]\]\s){self._label}(?![\w'’]).*"
            rf"|{label}(?:[)\]*_\"'.:,]{{1,4}}.*|\s[-–—:(|].*|\s*)[{_TICKS}]\ufe0f?[\s*_.]*)"
        )
        parts = (part for line in text.split("\n") for part in _MARK_END.split(line.strip(" \t|")))
        ticked = {match["label"] or match["before"] for part in parts if (match := pattern.fullmatch(part))}
        return str(ticked.pop()) if len(ticked) == 1 else None

    def commented_label(self, text: str) -> tuple[str | None, set[str]]:
        """Return the label that comments on the options leave ("A – wrong"), and the labels that they call wrong.

        The label is that of the only option called right, or else of the only one not called wrong. It is SEVERAL if
        several are called right, and None unless at least two options have a comment and one of them is called wrong,
        or the text consists of the options and calls one of them right.
        """
        right: set[str] = set()
        wrong: set[str] = set()
        if self.options.are_comments:
            return None, wrong
        lines = _with_verdicts(text.split("\n"))
        for line in lines:
            comment = _COMMENTED.match(line.strip(" \t>|•-*_"))
            if comment and (label := self._label_of_commented(comment["option"])):
                (right if comment["right"] else wrong).add(label)
        if len(right) == 1 and not wrong and not self.without_listing([line for line in lines if line.strip()]):
            return right.pop(), wrong
        if len(right | wrong) < 2 or not wrong or right & wrong:
            return None, wrong
        left = right or set(self._labels) - wrong
        if len(left) == 1:
            return left.pop(), wrong
        return (SEVERAL if right else None), wrong

    def _label_of_commented(self, option: str) -> str | None:
        """Return the label of a commented option, written as "A", "Option A", "A) Paris" or "Paris"."""
        option = re.sub(rf"^(?i:{OPTION})\s+(?=\S)", "", re.sub(r"[*_`]", "", option)).strip(" |")
        if label := self.exact_label(option) or self.options.label_of_equal_option(option, flatten, 2):
            return label
        match = re.match(rf"[(\[]?(?P<label>{self._any})(?:[)\].:]|\s+[-–—|])\s*\S", option)
        return match["label"] if match and not self.contradicts_itself(option) else None

    def _other_follows(self, after: str, stated: str) -> bool:
        """Return whether the sentence after a statement offers another label: "Or maybe C." """
        if not ALTERNATIVELY.match(after):
            return False
        named = re.search(
            rf"(?<![\w'’])[(\[*_\"']{{0,4}}(?P<label>{self._any})(?=[)\]*_\"'.,;:!?]|\s*$"
            rf"|\s+(?:is|as|if|could|might|may|would|works|fits)\b(?!\s*(?:be\s+)?{WRONG}))",
            after,
        )
        return named is not None and named["label"] != self.leading_label(stated)

    def leading_label(self, text: str) -> str | None:
        """Return the label at the beginning of a marked answer, or the label of the option that it quotes."""
        text = re.sub(
            rf"^(?:(?:la|el|die|der|das|le|the|o|probably|likely|definitely|clearly)\s+)?(?:{OPTION}\b[ \t:]*)?",
            "",
            strip_markup(text),
            flags=re.IGNORECASE,
        )
        if text in self._labels:
            return text
        found = (
            self.options.label_of_equal_option(text, flatten, 1)
            or self.exact_label(text)
            or self.options.label_of_equal_option(text, keep_words, 3)
        )
        if found:
            return found
        match = re.match(self._label + r"(?P<mark>[)\]*_\"'$]*(?:[.:,;)\]*_-]|\s[-–—]|\s*\())", text)
        if match:
            return match["label"]
        folded = re.match(self._label + r"[)\]]", text, re.IGNORECASE)
        if folded:
            return self._by_fold.get(folded["label"].casefold())
        before_word = re.match(self._label + rf"\s+(?P<next>{AFTER_LABEL})\b", text)
        return before_word["label"] if before_word else self.options.label_by_words(text)

    def concluded_label(self, text: str) -> str | None:
        """Return the label of the last concluding sentence: "option B is correct", "I choose B", "it's B because …"."""
        any_ = self._any
        end = rf"(?=[)\]*\"'.,;:!。]|\s*$|\s+(?:{AFTER_LABEL}|{BESIDES})\b)"
        label = rf"[(\[*_\"']{{0,6}}(?P<label>{any_})(?![\w'’])"
        patterns = (
            rf"(?<![\w'’])[(*\"']{{0,6}}(?P<label>{any_})[)*\"'.:]*\s+{VERDICT}\b",
            rf"(?<![\w'’])(?P<label>{any_})[)*]{{0,3}}[:?]?\s{{1,3}}(?i:yes|correct|true|right)\b{NOT_RESTRICTED}",
            # "B because it is the capital" at the beginning
            rf"\A(?i:{OPTION}\s+)?{label}[)\]*_\"'.:,]{{0,4}}\s+(?i:because|since|due\s+to|as\s+(?:it|this|that|the))\b",
            rf"(?i:\b{RIGHT}\s+(?:ist|is|es|est|è|é|är)\s+(?:la |el |die |le )?){label}{end}",
            rf"(?i:\b{CHOSEN}\s*:?\s+(?:the\s+)?(?:option|choice|answer|letter)?\s*){label}{end}",
            rf"(?i:\b(?:option|choice)\s+){label}(?=[)\]*\"'.!]*\s*$)",
            # "Only B works"
            rf"(?i:(?<!not )\bonly\s+(?:{OPTION}\s+)?){label}[)\]*_\"']{{0,4}}\s+"
            rf"(?!(?:\w+\s+){{0,3}}?{WRONG}|(?:fails|lacks|contradicts|violates)\b)(?:[a-z]+s|can|could)\b",
            # "The picture fits option A best", "it ended in 1945, which is C"
            rf"(?i:(?<!\w){FITS}\s+(?:the\s+)?(?:{OPTION}\s+)?){label}"
            rf"(?=[)\]*_\"']{{0,4}}(?:[.!。;]|,\s|\s*$|\s+(?i:best|most|better|well|perfectly|exactly|closely|completely|{BESIDES})\b))",
            # "Hence, C."
            rf"(?i:(?<!\w){LEADS_TO}\s*(?:it(?:['’]s| is| must be| has to be)\s+|c['’]est\s+|es\s+|ist\s+es\s+|è\s+)?"
            rf"(?:(?:the|la|le|el|die|der|das|(?-i:[ao])|de)\s+)?(?:{OPTION}\s+)?){label}"
            rf"[)\]*_\"']{{0,4}}(?=\s*[.!。]|\s*$|,\s*(?:not|because|since|as)\b|\s+(?:is|because|since|as)\b)",
            # "C, not A", "not A but C"
            rf"(?<![\w'’])(?<![Nn]ot )(?<![Nn]or ){label}[)\]*_\"']{{0,4}},?\s+(?:and\s+|but\s+)?"
            rf"(?i:not|rather than|instead of)\s+(?i:{OPTION}\s+)?"
            rf"[(\[*_\"']{{0,4}}(?:{any_})(?![\w'’])",
            rf"(?i:\bnot\s+(?:{OPTION}\s+)?)[(\[*]{{0,4}}(?:{any_})[)\]*]{{0,4}},?\s+but\s+(?:rather\s+)?(?i:{OPTION}\s+)?{label}",
            # "La opción correcta es la C", "C ist richtig", "正确选项是C", "选C"
            rf"(?i:\b{OPTION}(?:\s+[^\W\d]{{2,14}}){{0,2}}?\s*(?:es|est|é|è|ist|is|lautet|—|–|-|:)?\s+"
            rf"(?:la |el |die |le |(?-i:[ao]) )?)"
            rf"{label}(?=[)\]*\"'.,!。]*\s*$|[)\]*\"']*[.!。])",
            rf"(?<![\w'’])[(*\"']{{0,6}}(?P<label>{any_})[)*\"'.:]*\s+(?:ist|es|est|è|é|är|is)\s+(?:die\s|la\s|le\s|a\s|o\s|das\s)?"
            rf"(?:respuesta\s|réponse\s|resposta\s|risposta\s|antwort\s|opción\s)?{RIGHT}",
            rf"(?:选择|应选|选项|选|選択肢|選)(?:是|为|は)?\s*[:：]?\s*[(\[*]{{0,4}}(?P<label>{any_})(?![A-Za-z])",
            rf"(?<![A-Za-z'’])(?P<label>{any_})[)\]*.]{{0,3}}\s*(?:选项|項)?\s*(?:是正确|正确|是对的|が正解|が正しい"
            rf"|이 정답|가 정답|입니다|です)",
        )
        found = [match for pattern in patterns for match in re.finditer(pattern, text, re.MULTILINE)]
        found = [match for match in found if not NOT_SO.search(text[max(match.start() - 24, 0) : match.start("label")])]
        found = [match for match in found if not DENIED_LABEL.search(text[: match.start("label")][-40:])]
        found = [match for match in found if not re.search(self._none_of, text[: match.start("label")][-80:])]
        found = [match for match in found if not (is_counterfactual(text, match) or is_supposed(text, match.start()))]
        # "A is the best choice. D would be right for Germany."
        found = [match for match in found if not re.search(r"\bwould\s+be\b", match[0])] or found
        if not found:
            return None
        last = max(found, key=lambda match: match.start("label"))
        chosen = {match["label"] for match in found}
        if opening := re.match(rf"[(\[*_\"']{{0,4}}({self._any})[)\].:,*_]", text):
            chosen.add(opening[1])  # "A. B is correct, too."
        if any(
            match.start("too") >= last.start("label") and (match["too"] != last["label"] or len(chosen) > 1)
            for pattern in self._chosen_too
            for match in re.finditer(pattern, text)
        ):
            return SEVERAL
        after = text[last.end("label") : last.end("label") + 120]
        beside = re.match(rf"[)\]*_\"']{{0,4}}\s*{self._alternative}", after)
        if (beside and beside["other"] != last["label"]) or self._other_follows(
            re.split(r"(?<=[.!?])\s", after, maxsplit=1)[-1] if re.search(r"[.!?]\s", after) else after, last["label"]
        ):
            return SEVERAL
        return last["label"]

    def opening_word(self, text: str) -> str | None:
        """Return the label, a word such as "yes", that is the first sentence of *text*: "True. It is false that …"."""
        first = _SENTENCE_END.split(text, maxsplit=1)[0]
        label = None if first.rstrip("*_ ").endswith("?") else self.exact_label(first)
        return label if label and len(label) > 1 and label.isalpha() else None

    def opening_option(self, text: str) -> str | None:
        """Return the label of the option that the text begins with: "Paris.", "Paris, because …", "Yes - it is"."""
        first = _SENTENCE_END.split(text, maxsplit=1)[0]
        named = strip_markup(first)
        without_article = re.sub(r"^(?:the|an?)\s+", "", named, flags=re.IGNORECASE)
        if label := (
            self.options.label_of_equal_option(named, flatten, 2)
            or self.options.label_of_equal_option(without_article, flatten, 2)
        ):
            return None if ALTERNATIVELY.match(text[len(first) :].lstrip("*_ \n")) else label
        part = _PART_END.split(first, maxsplit=1)[0]
        label = self.options.label_of_equal_option(strip_markup(part), flatten, 2)
        return label if label and self.options.label_by_words(first) == label else None

    def trailing_label(self, sentence: str) -> str | None:
        """Return the label at the end of a sentence after a colon, dash or adverb: "It speeds up: B.", "Probably B"."""
        adverb = (
            r"(?i:probably|likely|most likely|definitely|clearly|surely|obviously|certainly|i think|i guess|i believe)"
        )
        match = re.search(
            rf"(?:[:—–]|\s-|->|→|^\W*{adverb},?)\s{{0,4}}[(\[*_\"']{{0,4}}(?P<label>{self._any})[)\]*_\"'.!]{{0,6}}\s*$",
            sentence,
        )
        return match["label"] if match else None

    def remaining_label(self, text: str) -> str | None:
        """Return the only remaining label if *text* rules out all others."""
        if len(self._labels) < 2:
            return None
        out = {
            label
            for pattern in self._ruled_out
            for match in re.finditer(pattern, self.options.with_labels(text))
            for label in re.findall(
                rf"(?<![\w'’]){self._any if len(self._labels) == 1 else f'(?:{self._any})'}(?![\w'’])", match["several"]
            )
        }
        kept = [label for label in self._labels if label not in out]
        return kept[0] if len(kept) == 1 else None

    def marked_label(self, lines: Sequence[str]) -> str | None:
        """Return the label at the beginning of a short first line, or marked in one of the last two lines."""
        for line in reversed(lines[-2:]):
            if len(line) <= SHORT_TEXT and (label := self.exact_label(line)):
                return label
        for original in [*lines[:1], *reversed(lines[-2:])]:
            affirmed = self._rejected.sub("", re.sub(self._start + NEGATIVE_OPTION, r"\g<label>)", original))
            first, line = original is lines[0], RANKED.sub("", without_denials(affirmed))
            if RANKED.search(original) and len(line) <= SHORT_TEXT and (label := self.leading_label(line)):
                return label
            named = {m["label"] or m["round"] for m in re.finditer(self._anywhere, line)}
            match = re.match(self._start, line)
            if match and (not first or len(line) <= SHORT_TEXT) and named <= {match["label"]}:
                return match["label"]
            if not first or len(lines) == 1:
                if len(named) == 1:
                    return str(named.pop())
                if named:
                    return None
        return None

    def without_listing(self, lines: Sequence[str]) -> list[str]:
        """Return *lines* without successive ones that begin with successive labels, since they repeat the options.

        The only line in bold of a list of all options stays.
        """
        starts = rf"^[ \t*_-]*[(\[]?(?P<label>{self._any})[)\].:]"
        begun = [re.match(starts, line) for line in lines]
        listed: set[int] = set()
        for i, (a, b) in enumerate(itertools.pairwise(begun)):
            if a and b and self._labels.index(b["label"]) == self._labels.index(a["label"]) + 1:
                listed |= {i, i + 1}
        if len(listed) == len(self._labels) > 1:
            bold = [i for i in listed if lines[i].strip(" \t-").startswith("**")]
            listed -= set(bold) if len(bold) == 1 else set()
        return [line for i, line in enumerate(lines) if i not in listed]

"""Extraction of the option that an answer chooses, by its label or by its text."""

import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence

from hub.extraction.corrections import ALTERNATIVELY, reopening_positions, statement_versions
from hub.extraction.normalization import answer_text
from hub.extraction.numeric.answers import read_number
from hub.extraction.numeric.numerals import words_to_digits
from hub.extraction.numeric.quantities import find_numbers, plain, quantities
from hub.extraction.statements import Mark, Statement, final_answer, statements, strip_markup

# A label that is a word of its own ("A", "I") counts before other words only if one of these follows.
_AFTER_LABEL = r"because|since|as|for|and|which|due|is|was|it|this|that|given|based|not|with|the"
_VERDICT = (
    r"(?:(?:is|was|must be|would be|should be|seems|looks)\s+(?:clearly\s+|the\s+){0,2}(?:correct|right|best"
    r"|true|answer|left|only)"
    r"|fits|applies|matches|remains|(?:is\s+)?the\s+only)"
)
_DENIAL = re.compile(r"\b(?:not|neither|nor|none|never)\b|n['’]t\b", re.IGNORECASE)
_REASON = re.compile(r"(?<=[.!?])\s+(?=[A-Z][a-z])|\b(?:because|since|as|while|whereas|given|due)\b")
# "Nothing fits A", "that doesn't make it B"
_NOT_SO = re.compile(
    r"(?:n['’]t|\b(?:not|never|hardly|nothing|none|neither|nor|might|may|could))\s(?:\w+\s){0,2}?"
    r"(?:fit|match|suit|support|favou?r|indicate|suggest|describe|point|correspond|consistent|lead|speak|agree|make|mean"
    r"|give|leave)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?<=[,;!?])\s|(?<=\.)\s|\bbut\b|\brather\b")
_SEVERAL = "\0several"  # in place of a label: the text names more than one
_MOST_STATEMENTS = 20  # statements that are tried
_TELLING = 2  # minimal length of an option that is searched for in text: "a" occurs everywhere
_LONGEST_END = 400  # characters at the end in which labels that are called possible leave the choice open
_SHORT = 200  # characters of a text in which an option mentioned anywhere counts as the answer
_CHOSEN = (
    r"(?:(?:i|we)(?:['’]d|\s+would|\s+will|['’]ll)?(?:\s+(?:probably|definitely|still|therefore|have\s+to))?\s+(?:choose|chose|pick|select|say|guess|go\s+(?:with|for)"
    r"|settle\s+(?:on|for)|opt\s+for|lean\s+towards?|conclude|think\s+it(?:['’]s|\s+is))"
    r"|ich\s+(?:wähle|nehme)|je\s+choisis|elijo|escolho|scelgo|выбираю"
    r"|(?:correct|right|best|selected|chosen|final)\s+(?:answer|option|choice|letter|one)\s*(?:is|would\s+be|:)"
    r"|(?:answer|option|choice)\s+(?:has\s+to|must|should|would)\s+be|(?:it(?:'s|\s+is)|must\s+be|it\s+should\s+be|choose|select))"
)


_LEADS_TO = (
    r"(?:hence|thus|therefore|so|ergo|consequently|accordingly|finally|overall|in (?:conclusion|summary|short)|"
    r"also|donc|"
    r"por (?:lo )?tanto|portanto|quindi|daher|deshalb|folglich|因此|所以|故|よって|したがって|따라서)[,:]?"
)
_OPTION = (
    r"(?:options?|choice|letter|answer|antwort|réponse|reponse|respuesta|resposta|risposta|antwoord|svar|opción|opcion|opção|opzione|variante?|alternativa|möglichkeit|buchstabe|"
    r"lettre|letra|вариант|ответ|optie)"
)
_RIGHT = (
    r"(?:richtig\w*|korrekt\w*|correct\w*|correto|correta|corrett[ao]|bonne|juste|giust[ao]|rätt|juist|goed|zutreffend|"
    r"верн\w*|правильн\w*)"
)
_WRONG = (
    r"(?:not\b|n['’]t\b|cannot\b|wrong|incorrect|false|out\b|eliminated|ruled out|excluded|impossible|invalid|untrue|"
    r"falsch|incorrecta|fausse?)"
)
_FITS = (
    r"(?:fits?|match(?:es)?|suits?|supports?|favou?rs?|indicates?|suggests?|describes?|points?\s+to(?:wards?)?"
    r"|corresponds?\s+to|(?:is|are)\s+consistent\s+with|leads?\s+(?:me\s+|us\s+)?to|speaks?\s+for|agrees?\s+with"
    r"|which\s+(?:is|makes\s+it|means|gives|leaves)|(?:this|that)\s+(?:is|makes\s+it|means|gives|leaves))"
)
_BESIDES = r"here|then|instead|overall|myself|personally|today|too|please|over|if|i think|i guess|for this"
# After these, other labels only rank behind the one that is chosen.
_RANKED = re.compile(
    r"[,;(–—-]?\s{0,3}\b(?:(?:closely )?followed by|ahead of|rather than|instead of|unlike|as opposed to|in contrast to"
    r"|compared (?:to|with)|then comes?|before|beating|with (?=[^.;]{1,40}\b(?:second|behind|next|third)\b))[^.;!?]*",
    re.IGNORECASE,
)
# Currencies' names as their signs, so that "eight dollars" is the option "$8".
_MONEY = {"$": "dollars?|bucks?|usd", "€": "euros?|eur", "£": "pounds?|gbp", "¥": "yen|jpy", "₹": "rupees?|inr"}
_MOST_REOPENINGS = 3  # the last ones that are tried


def choice(text: str, labels: Sequence[str], choices: Sequence[str] = ()) -> str | None:
    """Return the label that *text* chooses, or None if it chooses none or more than one.

    In order: a text that is nothing but a label; what follows the last correction ("Wait, it's B"); the stated answer
    (see `statements`); a sentence such as "B is correct" or "I choose B"; a marked letter (`**B.**`, `(B)`) at the
    beginning or the end, outside of a list of the options; an option's own words, in the last sentence or in a short
    text; the one option that is left if all others are ruled out.
    """
    text = unicodedata.normalize("NFKC", answer_text(text))
    reader = _ChoiceReader(labels, choices)
    if whole_label := reader.whole_label(text):
        return whole_label
    if len(text) <= _SHORT and len(reader.all_labels(text)) > 1:
        return None
    for position in reversed(reopening_positions(text)[-_MOST_REOPENINGS:]):
        rest = text[position:].strip(" ,.:;!—–-")
        label = (
            reader.whole_label(rest.split("\n")[0])
            or reader.whole_label(rest)
            or reader.stated_label(rest)
            or reader.concluded_label(rest)
        )
        if label:
            return None if label == _SEVERAL else label
    label = reader.stated_label(text)
    if not label and reader.wavers(re.split(r"(?<=[.!?])\s+", text)[-1]):
        return None
    label = label or reader.concluded_label(text)
    if label:
        return None if label == _SEVERAL else label
    if reader.wavers(text):
        return None
    lines = reader.without_listing([line for line in text.split("\n") if line.strip()])
    last = re.split(r"(?<=[.!?])\s+", lines[-1])[-1] if lines else ""
    versions = statement_versions(lines[-1]) if lines else []
    corrected = next(filter(None, map(reader.whole_label, versions)), None) if len(versions) > 1 else None
    if label := corrected or reader.marked_label(lines) or reader.trailing_label(last):
        return label
    places = [final_answer(text) or "", last, text if len(text) <= _SHORT else ""]
    worded = next((label for label in map(reader.label_by_words, places) if label), None)
    return worded or reader.remaining_label(text) or reader.counted(last)


class _ChoiceReader:
    """Reader of the labels and options of one question in a text."""

    def __init__(self, labels: Sequence[str], choices: Sequence[str]) -> None:
        self._labels = list(labels)
        self._by_fold = {label.casefold(): label for label in labels}
        self._options = list(zip(labels, choices, strict=False))
        self._any = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
        self._start = rf"^[ \t]*(?:\*\*|__)?[(\[]?(?P<label>{self._any})(?:[)\].:]|\*\*|__)"
        emphasised = rf"(?:\*\*|__)[(\[]?(?P<label>{self._any})[)\]]?[.:]?(?:\s[^*\n]{{0,200}})?(?:\*\*|__)"
        self._anywhere = rf"{emphasised}|\((?P<round>{self._any})\)"
        self._alternative = (
            r"(?:\bor\b|\band\b|\bo\b|\boder\b|\bou\b|\bund\b|/|&|\+|,|;|或|和|、)\s*"
            r"(?i:(?:or|and|maybe|possibly|perhaps|also|even|either|the|option|choice|answer|letter)\s+){0,4}"
            rf"[(\[*_\"']{{0,4}}(?P<other>{self._any})(?![\w'’])"
            rf"(?![)\]*_.:]*\s*(?:\S+\s+){{0,3}}?(?:(?:is|are|was|were|be|can|could|would|does|do)\s*)?{_WRONG})"
            r"(?=[)\]*_\"'.,;:!?/]|\s*$|\s+(?:or|and|as|are|is|seems?|looks?|could|might|both)\b|\s*[^\x00-\x7f])"
        )
        self._label = rf"[(\[*_\"'$ \t]{{0,6}}(?P<label>{self._any})"

    def whole_label(self, text: str) -> str | None:
        """Return the label that *text* consists of, apart from markup around it."""
        core = strip_markup(text).strip("()[]{}<>.:!?*_`'\"# \t$")
        numbered = re.fullmatch(r"\d{1,2}[.)]\s+(\S+)", core)
        return self._by_fold.get((numbered[1] if numbered else core).casefold())

    def all_labels(self, text: str) -> set[str]:
        """Return the labels of a text that consists only of labels, such as "A B" or "A, B"; empty for other texts."""
        words = set(re.findall(r"\w+", text)) - {"and", "or"}
        return words if words <= set(self._labels) else set()

    def stated_label(self, text: str) -> str | None:
        """Return the label in the statement of the answer; _SEVERAL if it names several."""
        for statement in statements(text)[:_MOST_STATEMENTS]:
            if statement.mark == Mark.DECISION:
                continue  # `concluded_label` handles those
            version = next(
                (said for said in statement_versions(statement.said) if self.leading_label(said)), statement.said
            )
            if (
                self.names_several(version)
                or self._joined(text, statement)
                or self._other_follows(text[statement.end : statement.end + 100], version)
            ):
                return _SEVERAL
            label = self.leading_label(version)
            if label:
                return label
        return None

    def wavers(self, text: str) -> bool:
        """Return whether the last sentences of a text join labels as possible: "Could be B or D; both have it."."""
        label = rf"(?i:(?:the\s+)?{_OPTION}\s+)?[(\[*_\"']{{0,4}}(?P<NAME>{self._any})(?![\w'’])[)\]*_\"'.]{{0,4}}"
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
        return any(
            match["one"] != match["other"]
            and not re.match(rf"\s*(?:(?:is|are|be|can|could)\s*)?{_WRONG}", text[match.end() :])
            and not _DENIAL.search(text[max(match.start() - 20, 0) : match.end()])
            for match in re.finditer(pattern, text[-_LONGEST_END:])
        )

    def counted(self, sentence: str) -> str | None:
        """Return the one option whose number *sentence* gives, in digits or words: "eight dollars" is "$8"."""
        found = [(label, option, quantities(option)) for label, option in self._options]
        if (
            not found
            or any(len(amounts) != 1 for _, _, amounts in found)
            or _DENIAL.search(sentence)
            or len(sentence) > _SHORT
        ):
            return None
        said = words_to_digits(sentence)
        for sign, names in _MONEY.items():
            said = re.sub(rf"(?<![\w.,$€£])(\d[\d.,]*)\s(?:{names})\b", rf"{sign}\1", said, flags=re.IGNORECASE)
        if read_number(said).several:
            return None
        text = plain(said)
        labels: set[str] = set()
        for label, option, amounts in found:
            sign = next((sign for sign in _MONEY if sign in option), "")
            unit = re.search(r"[^\W\d_]+", option)
            for item in find_numbers(text):
                after = text[item.end :].lstrip(" -°").casefold()
                measured = (
                    sign in text[item.start : item.end]
                    if sign
                    else not unit or after.startswith(unit[0].casefold()[:3])
                )
                if measured and item.quantity.agrees(amounts[0]):
                    labels.add(label)
        return labels.pop() if len(labels) == 1 else None

    def _joined(self, text: str, last: Statement) -> bool:
        r"""Return whether "or" or a comma joins a statement to one before it: "\boxed{A} or \boxed{B}"."""
        return any(
            re.fullmatch(r"[\s$)*.]{0,6}(?:,|/|\bor\b|\band\b)[\s$(*]{0,6}", text[other.end : last.start][:30])
            is not None
            and self.leading_label(other.said) != self.leading_label(last.said)
            for other in statements(text)[:_MOST_STATEMENTS]
            if 0 <= last.start - other.end <= 20
        )

    def names_several(self, said: str) -> bool:
        """Return whether a statement names several labels: "A or B", "B and C", "A) Paris or B) London", "B (or C)"."""
        said = _REASON.split(strip_markup(said), maxsplit=1)[0]
        first = re.match(rf"(?i:either|both|between|options?)?\s*{self._label}(?![\w'’])", said)
        return first is not None and any(
            match["other"] != first["label"] for match in re.finditer(self._alternative, said[first.end() :])
        )

    def _other_follows(self, after: str, said: str) -> bool:
        """Return whether the sentence after a statement offers another label: "Or maybe C." """
        if not ALTERNATIVELY.match(after):
            return False
        named = re.search(
            rf"(?<![\w'’])[(\[*_\"']{{0,4}}(?P<label>{self._any})(?=[)\]*_\"'.,;:!?]|\s*$|\s+(?:is|as|if)\b)", after
        )
        return named is not None and named["label"] != self.leading_label(said)

    def leading_label(self, said: str) -> str | None:
        """Return the label at the beginning of a marked answer, or the label of the option that it quotes."""
        said = re.sub(
            rf"^(?:(?:la|el|die|der|das|le|the|o|probably|likely|definitely|clearly)\s+)?(?:{_OPTION}\b[ \t:]*)?",
            "",
            strip_markup(said),
            flags=re.IGNORECASE,
        )
        if said in self._labels:
            return said
        found = self._equal(said, _flat, 1) or self.whole_label(said) or self._equal(said, _squeezed, 3)
        if found:
            return found
        match = re.match(self._label + r"(?P<mark>[)\]*_\"'$]*(?:[.:,;)\]*_-]|\s[-–—]|\s*\())", said)
        if match:
            return match["label"]
        folded = re.match(self._label + r"[)\]]", said, re.IGNORECASE)
        if folded:
            return self._by_fold.get(folded["label"].casefold())
        label_by_words = re.match(self._label + rf"\s+(?P<next>{_AFTER_LABEL})\b", said)
        return label_by_words["label"] if label_by_words else self.label_by_words(said)

    def concluded_label(self, text: str) -> str | None:
        """Return the label of the last concluding sentence: "option B is correct", "I choose B", "it's B because …"."""
        any_ = self._any
        end = rf"(?=[)\]*\"'.,;:!。]|\s*$|\s+(?:{_AFTER_LABEL}|{_BESIDES})\b)"
        label = rf"[(\[*_\"']{{0,6}}(?P<label>{any_})(?![\w'’])"
        patterns = (
            rf"(?<![\w'’])[(*\"']{{0,6}}(?P<label>{any_})[)*\"'.:]*\s+{_VERDICT}\b",
            rf"(?<![\w'’])(?P<label>{any_})[)*]{{0,3}}:?\s{{1,3}}(?i:yes|correct|true|right)\b",
            rf"(?i:\b{_RIGHT}\s+(?:ist|is|es|est|è|é|är)\s+(?:la |el |die |le )?){label}{end}",
            rf"(?i:\b{_CHOSEN}\s*:?\s+(?:the\s+)?(?:option|choice|answer|letter)?\s*){label}{end}",
            rf"(?i:\b(?:option|choice)\s+){label}(?=[)\]*\"'.!]*\s*$)",
            # "The picture fits option A best", "it ended in 1945, which is C"
            rf"(?i:(?<!\w){_FITS}\s+(?:the\s+)?(?:{_OPTION}\s+)?){label}"
            rf"(?=[)\]*_\"']{{0,4}}(?:[.!。;]|,\s|\s*$|\s+(?i:best|most|better|well|perfectly|exactly|closely|completely|{_BESIDES})\b))",
            # "Hence, C."
            rf"(?i:(?<!\w){_LEADS_TO}\s*(?:it(?:['’]s| is| must be| has to be)\s+|c['’]est\s+|es\s+|ist\s+es\s+|è\s+)?"
            rf"(?:(?:the|la|le|el|die|der|das|a|o|de)\s+)?(?:{_OPTION}\s+)?){label}"
            rf"[)\]*_\"']{{0,4}}(?=\s*[.!。]|\s*$|,\s*(?:not|because|since|as)\b|\s+(?:is|because|since|as)\b)",
            # "C, not A", "not A but C"
            rf"(?<![\w'’])(?<![Nn]ot )(?<![Nn]or ){label}[)\]*_\"']{{0,4}},?\s+(?:and\s+|but\s+)?"
            rf"(?i:not|rather than|instead of)\s+(?i:{_OPTION}\s+)?"
            rf"[(\[*_\"']{{0,4}}(?:{any_})(?![\w'’])",
            rf"(?i:\bnot\s+(?:{_OPTION}\s+)?)[(\[*]{{0,4}}(?:{any_})[)\]*]{{0,4}},?\s+but\s+(?:rather\s+)?(?i:{_OPTION}\s+)?{label}",
            # "La opción correcta es la C", "C ist richtig", "正确选项是C", "选C"
            rf"(?i:\b{_OPTION}(?:\s+[^\W\d]{{2,14}}){{0,2}}?\s*(?:es|est|é|è|ist|is|lautet|—|–|-|:)?\s+"
            rf"(?:la |el |a |die |le |o )?)"
            rf"{label}(?=[)\]*\"'.,!。]*\s*$|[)\]*\"']*[.!。])",
            rf"(?<![\w'’])[(*\"']{{0,6}}(?P<label>{any_})[)*\"'.:]*\s+(?:ist|es|est|è|é|är|is)\s+(?:die\s|la\s|le\s|a\s|o\s|das\s)?"
            rf"(?:respuesta\s|réponse\s|resposta\s|risposta\s|antwort\s|opción\s)?{_RIGHT}",
            rf"(?:选择|应选|选项|选|選択肢|選)(?:是|为|は)?\s*[:：]?\s*[(\[*]{{0,4}}(?P<label>{any_})(?![A-Za-z])",
            rf"(?<![A-Za-z'’])(?P<label>{any_})[)\]*.]{{0,3}}\s*(?:选项|項)?\s*(?:是正确|正确|是对的|が正解|が正しい"
            rf"|이 정답|가 정답|입니다|です)",
        )
        found = [match for pattern in patterns for match in re.finditer(pattern, text, re.MULTILINE)]
        found = [
            match for match in found if not _NOT_SO.search(text[max(match.start() - 24, 0) : match.start("label")])
        ]
        if not found:
            return None
        last = max(found, key=lambda match: match.start("label"))
        after = text[last.end("label") : last.end("label") + 120]
        if re.match(rf"[)\]*_\"']{{0,4}}\s*{self._alternative}", after) or self._other_follows(
            re.split(r"(?<=[.!?])\s", after, maxsplit=1)[-1] if re.search(r"[.!?]\s", after) else after, last["label"]
        ):
            return _SEVERAL
        return last["label"]

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
        one = rf"[(\[*_\"']{{0,4}}(?:{self._any})[)\]*_\"'.:]{{0,4}}(?![\w'’])"
        several = (
            rf"(?P<several>{one}"
            rf"(?:(?:\s*,\s*(?:and\s+|or\s+|nor\s+)?|\s+(?:and|or|nor)\s+|\s*/\s*)(?i:{_OPTION}\s+)?{one}){{0,30}})"
        )
        patterns = (
            rf"(?<![\w'’]){several}\s*(?:(?:is|are|was|were|can|could|must|do|does)\s*)?(?:all\s+|both\s+|clearly\s+|also\s+|be\s+)*{_WRONG}",
            rf"(?i:\b(?:not|neither|nor|rul(?:e|es|ed|ing) out|eliminat(?:e|es|ed|ing)|exclud(?:e|es|ed|ing)"
            rf"|isn['’]t|can['’]t be|"
            rf"cannot be)\s+(?:{_OPTION}\s+)?){several}",
        )
        out = {
            label
            for pattern in patterns
            for match in re.finditer(pattern, text)
            for label in re.findall(
                rf"(?<![\w'’]){self._any if len(self._labels) == 1 else f'(?:{self._any})'}(?![\w'’])", match["several"]
            )
        }
        kept = [label for label in self._labels if label not in out]
        return kept[0] if len(kept) == 1 else None

    def marked_label(self, lines: Sequence[str]) -> str | None:
        """Return the label at the beginning of a short first line, or marked in one of the last two lines."""
        for line in reversed(lines[-2:]):
            if len(line) <= _SHORT and (label := self.whole_label(line)):
                return label
        for whole in [*lines[:1], *reversed(lines[-2:])]:
            first, line = whole is lines[0], _RANKED.sub("", _affirmed(whole))
            if _RANKED.search(whole) and len(line) <= _SHORT and (label := self.leading_label(line)):
                return label
            named = {m["label"] or m["round"] for m in re.finditer(self._anywhere, line)}
            match = re.match(self._start, line)
            if match and (not first or len(line) <= _SHORT) and named <= {match["label"]}:
                return match["label"]
            if not first or len(lines) == 1:
                if len(named) == 1:
                    return str(named.pop())
                if named:
                    return None
        return None

    def without_listing(self, lines: Sequence[str]) -> list[str]:
        """Return *lines* without successive ones that begin with successive labels, since they repeat the options."""
        starts = rf"^[ \t*_-]*[(\[]?(?P<label>{self._any})[)\].:]"
        begun = [re.match(starts, line) for line in lines]
        listed: set[int] = set()
        for i, (a, b) in enumerate(itertools.pairwise(begun)):
            if a and b and self._labels.index(b["label"]) == self._labels.index(a["label"]) + 1:
                listed |= {i, i + 1}
        return [line for i, line in enumerate(lines) if i not in listed]

    def _equal(self, said: str, form: Callable[[str], str], least: int) -> str | None:
        """Return the only option equal to *said* after *form*, if at least *least* characters remain."""
        said = form(said)
        labels = [label for label, option in self._options if len(said) >= least and form(option) == said]
        return labels[0] if len(labels) == 1 else None

    def label_by_words(self, text: str) -> str | None:
        """Return the only option quoted in *text* and not denied; words within a longer option do not count."""
        flat = _flat(text)
        own = [_flat(option) for _, option in self._options if _DENIAL.search(option)]
        if _DENIAL.search(functools.reduce(lambda rest, option: rest.replace(option, " "), own, flat)):
            flat = _flat(_affirmed(text))
        found = [(label, _flat(option)) for label, option in self._options if _stands(_flat(option), flat)]
        labels = {
            label
            for label, option in found
            if not any(option != other and _stands(option, other) for _, other in found)
        }
        return labels.pop() if len(labels) == 1 else None


def _affirmed(text: str) -> str:
    """Return *text* without clauses that deny something: "the whale, not the shark" gives "the whale"."""
    if not _DENIAL.search(text):
        return text
    return " ".join(clause for clause in _CLAUSE.split(text) if not _DENIAL.search(clause))


def _stands(option: str, text: str) -> bool:
    if len(option) < _TELLING:
        return False
    return re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text) is not None


def _flat(text: str) -> str:
    """Case, emphasis, white space, a subject at the beginning and a closing mark aside."""
    text = re.sub(r"^\s*(?:it|they|he|she)\s+(?=\S+\s+\S)", "", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", re.sub(r"[*`]", "", text)).casefold().strip(" .,;:!")


def _squeezed(text: str) -> str:
    """Words alone."""
    return re.sub(r"[^\w]+", " ", text.casefold()).strip()

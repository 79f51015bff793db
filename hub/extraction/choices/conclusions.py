"""The label of a concluding sentence: "option B is correct", "I choose B"."""

import re

from hub.extraction.choices.exclusions import none_of_pattern
from hub.extraction.choices.labels import SEVERAL, LabelReader
from hub.extraction.choices.phrases import (
    AFTER_LABEL,
    BESIDES,
    CHOSEN,
    DENIED_LABEL,
    FITS,
    LEADS_TO,
    NOT_RESTRICTED,
    NOT_SO,
    OPTION,
    RIGHT,
    SURELY,
    VERDICT,
    WRONG,
)
from hub.extraction.choices.several import alternative_pattern, chosen_too_patterns, other_follows
from hub.extraction.statements import is_counterfactual, is_supposed


def concluded_label(reader: LabelReader, text: str) -> str | None:
    """Return the label of the last concluding sentence: "option B is correct", "I choose B", "it's B because …"."""
    found = [match for pattern in _patterns(reader) for match in re.finditer(pattern, text, re.MULTILINE)]
    found = [match for match in found if not NOT_SO.search(text[max(match.start() - 24, 0) : match.start("label")])]
    found = [match for match in found if not DENIED_LABEL.search(text[: match.start("label")][-40:])]
    none_of = none_of_pattern(reader)
    found = [match for match in found if not re.search(none_of, text[: match.start("label")][-80:])]
    found = [match for match in found if not (is_counterfactual(text, match) or is_supposed(text, match.start()))]
    # "A is the best choice. D would be right for Germany."
    found = [match for match in found if not re.search(r"\bwould\s+be\b", match[0])] or found
    if not found:
        return None
    last = max(found, key=lambda match: match.start("label"))
    chosen = {match["label"] for match in found}
    if opening := re.match(rf"[(\[*_\"']{{0,4}}({reader.any})[)\].:,*_]", text):
        chosen.add(opening[1])  # "A. B is correct, too."
    if any(
        match.start("too") >= last.start("label") and (match["too"] != last["label"] or len(chosen) > 1)
        for pattern in chosen_too_patterns(reader)
        for match in re.finditer(pattern, text)
    ):
        return SEVERAL
    after = text[last.end("label") : last.end("label") + 120]
    beside = re.match(rf"[)\]*_\"']{{0,4}}\s*{alternative_pattern(reader)}", after)
    if (beside and beside["other"] != last["label"]) or other_follows(
        reader,
        re.split(r"(?<=[.!?])\s", after, maxsplit=1)[-1] if re.search(r"[.!?]\s", after) else after,
        last["label"],
    ):
        return SEVERAL
    return last["label"]


def _patterns(reader: LabelReader) -> tuple[str, ...]:
    """Return the patterns of concluding sentences. The label is the group `label`."""
    any_ = reader.any
    end = rf"(?=[)\]*\"'.,;:!。]|\s*$|\s+(?:{AFTER_LABEL}|{BESIDES})\b)"
    label = rf"[(\[*_\"']{{0,6}}(?P<label>{any_})(?!\w|['’]\w)"
    return (
        rf"(?<![\w'’])[(*\"']{{0,6}}(?P<label>{any_})[)*\"'.:]*\s+{VERDICT}\b",
        # "B: correct", but not "yes or no? Yes" if "yes" is a label itself
        rf"(?<![\w'’])(?P<label>{any_})[)*]{{0,3}}[:?]?\s{{1,3}}(?!(?i:{any_})\b)(?i:yes|correct|true|right)\b{NOT_RESTRICTED}",
        # "B because it is the capital" at the beginning
        rf"\A(?i:{OPTION}\s+)?{label}[)\]*_\"'.:,]{{0,4}}\s+(?i:because|since|due\s+to|as\s+(?:it|this|that|the))\b",
        rf"(?i:\b{RIGHT}\s+(?:ist|is|es|est|è|é|är)\s+(?:la |el |die |le )?){label}{end}",
        rf"(?i:\b{CHOSEN}\s*:?\s+(?:the\s+)?(?:option|choice|answer|letter)?\s*){label}{end}",
        rf"(?i:\b(?:option|choice|letter)[:*]{{0,3}}\s+){label}(?=[)\]*\"'.!]*\s*$)",
        # "A, definitely", "A, I think" at the beginning
        rf"\A(?i:{OPTION}\s+)?{label}[)\]*_\"'.:]{{0,4}},?\s+(?i:{SURELY})(?=\s*[.!,;*]|\s*$)",
        # "mostly positive, with some negative remarks"
        rf"(?i:(?<!not )(?<!n['’]t )\b(?:mostly|predominantly|overwhelmingly|largely|mainly|primarily)\s+){label}\b",
        # "B it is."
        rf"(?<![\w'’]){label}[)\]*\"']{{0,4}},?\s+(?i:it\s+is)(?=[*_]*\s*(?:[.!]|$))",
        # "Only B works"
        rf"(?i:(?<!not )\bonly\s+(?:{OPTION}\s+)?){label}[)\]*_\"']{{0,4}}\s+"
        rf"(?!(?:\w+\s+){{0,3}}?{WRONG}|(?:fails|lacks|contradicts|violates)\b)(?:[a-z]+s|can|could)\b",
        # "The picture fits option A best", "it ended in 1945, which is C"
        rf"(?i:(?<!\w){FITS}\s+(?:the\s+)?(?:{OPTION}\s+)?){label}"
        rf"(?=[)\]*_\"']{{0,4}}(?:[.!。;]|,\s|\s*$|\s+(?i:best|most|better|well|perfectly|exactly|closely|completely|{BESIDES})\b))",
        # "Hence, C."
        rf"(?i:(?<!\w){LEADS_TO}\s*(?:it(?:['’]s| is| must be| has to be)\s+|c['’]est\s+|es\s+|ist\s+es\s+|è\s+)?"
        rf"(?:(?:the|la|le|el|die|der|das|(?-i:[ao])|de)\s+)?(?:{OPTION}\s+)?){label}"
        rf"[)\]*_\"']{{0,4}}(?=\s*[.!。]|\s*$|,\s*(?:not|because|since|as)\b|\s+(?:is(?!\s+(?:\w+ly\s+)?{WRONG})|because|since|as)\b)",
        # "Between B and D, B."
        rf"(?i:\b(?:between|of|either)\s+)(?:{any_})\s+(?i:and|or)\s+(?:{any_})[,;:]\s+{label}(?=[)\]*_\"'.!]*\s*$)",
        # "C, not A", "not A but C"
        rf"(?<![\w'’])(?<![Nn]ot )(?<![Nn]or ){label}[)\]*_\"']{{0,4}},?\s+\(?(?:and\s+|but\s+)?"
        rf"(?i:not|rather than|instead of)\s+(?i:{OPTION}\s+)?"
        rf"[(\[*_\"']{{0,4}}(?:{any_})(?![\w'’])",
        rf"(?i:\bnot\s+(?:{OPTION}\s+)?)[(\[*]{{0,4}}(?:{any_})[)\]*]{{0,4}},?\s+but\s+(?:rather\s+)?(?i:{OPTION}\s+)?{label}",
        # "La opción correcta es la C", "C ist richtig", "正确选项是C", "选C"
        rf"(?i:\b{OPTION}(?:\s+[^\W\d]{{2,14}}){{0,2}}?\s*(?:es|est|é|è|ist|is|['’]s|lautet|—|–|-|:)?\s+"
        rf"(?:la |el |die |le |(?-i:[ao]) )?)"
        rf"{label}(?=[)\]*\"'.,!。]*\s*$|[)\]*\"']*[.!。])",
        rf"(?<![\w'’])[(*\"']{{0,6}}(?P<label>{any_})[)*\"'.:]*\s+(?:ist|es|est|è|é|är|is)\s+(?:die\s|la\s|le\s|a\s|o\s|das\s)?"
        rf"(?:respuesta\s|réponse\s|resposta\s|risposta\s|antwort\s|opción\s)?{RIGHT}",
        rf"(?:选择|应选|选项|选|選択肢|選)(?:是|为|は)?\s*[:：]?\s*[(\[*]{{0,4}}(?P<label>{any_})(?![A-Za-z])",
        rf"(?<![A-Za-z'’])(?P<label>{any_})[)\]*.]{{0,3}}\s*(?:选项|項)?\s*(?:是正确|正确|是对的|が正解|が正しい"
        rf"|이 정답|가 정답|입니다|です)",
    )

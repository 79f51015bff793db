"""References to the two responses of a pair in free text: what migration 0004 needs, as it was when it was written.

A copy, so that later changes of preferences/sides.py do not change the migration.
"""

import re

_TOKEN = re.compile(r"⟦(first|second)⟧")


def side_of(letter, swapped):
    """Return `first` or `second` for the letter A or B; if *swapped*, the second response was shown as A."""
    return "first" if (letter.lower() == "a") != swapped else "second"


def letters_to_tokens(text, swapped, choices):
    """Return *text* with each reference to A or B replaced by a token. *choices*: the task lists choices A and B."""
    plain = _TOKEN.sub(r"[[\1]]", text)
    for start, end, written, letter in reversed(_references(plain, choices)):
        plain = f"{plain[:start]}{written}⟦{side_of(letter, swapped)}⟧{plain[end:]}"
    return plain


def tokens_to_letters(text):
    """Return *text* with each token replaced by A or B, in the order with the first response as A."""
    return _TOKEN.sub(lambda match: "A" if match[1] == "first" else "B", text)


def lists_choices(messages):
    """Return whether a prompt lists choices named A and B."""
    prompt = []
    for message in messages:
        if message.get("role") == "assistant":
            break
        prompt.append(_text_of(message))
    return any({"A", "B"} <= {match[1] for match in _CHOICE.finditer(text)} for text in prompt)


def _text_of(message):
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content)
    return content if isinstance(content, str) else ""


_NOUNS = (
    "response|answer|assistant|model|candidate|completion|solution|submission|side|output|agent|implementation|"
    "version|reply|text|code"
)
_CHOICE = re.compile(r"^[ \t>*(\[]{0,4}([A-B])[).:\]][*]*[ \t]+\S", re.M)
_CHOICE_LIST = re.compile(r"\b[AB]\b\s*(?:,|/|and|or)\s*(?:[AB]\b\s*,?\s*)?(?:and\s+|or\s+)?[C-E]\b(?![+#'’])")
_OPAQUE = re.compile(  # code and quoted text, in which letters are not references
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|(?<!\w)'[^'\n]*'(?!\w)", re.S
)
_LETTER = re.compile(r"(?<![\w])[AB](?![\w])")
_LOWER = re.compile(rf"(?<!\w)(?:{_NOUNS})\s+([ab])(?![\w(.\-=/])", re.IGNORECASE)
_ORDINAL = re.compile(
    r"(?P<the>\bthe\s+)?\b(?P<place>first|second|1st|2nd|left|left-hand|right-hand)\s+"
    r"(?P<noun>response|assistant|candidate|completion|submission|answer|reply)\b"
    r"|\b(?:the\s+)?(?P<before>response|answer)\s+on\s+the\s+(?P<hand>left|right)\b",
    re.IGNORECASE,
)
# Nouns that are often followed by a letter of their own: "matrix A", "option B", "set A and set B".
_OTHERS = (
    "option|choice|letter|matrix|vector|set|array|list|node|vertex|point|class|variable|plan|type|column|row|table|"
    "figure|fig|step|part|section|group|grade|vitamin|team|player|person|station|event|string|tier|appendix|hepatitis|"
    "object|module|user|item|box|city|train|worker|machine|phase|case|scenario|key|field|value|state|level|category|"
    "statement|premise|question|parameter|argument|constant|schedule|exhibit|factor|product|company|bucket"
)
_OTHERS_BEFORE = re.compile(
    rf"\b(?:(?:{_OTHERS})(?:s|es)?|an?)\s+(?:[A-Z]\s*(?:,|/|&|\band\b|\bor\b|\bto\b|\bfrom\b)\s*(?:[a-z]+\s+)?)*$",
    re.IGNORECASE,
)
_ANSWER_IS = re.compile(
    r"(?P<which>\b\w+\s+)?\b(?:answers?|answered|answering|key|target|chose|chooses|selects?|selected|picks?|picked)\s+"
    r"(?:(?:is|was|are|as|should\s+be|must\s+be|would\s+be|to\s+be|with|letter)\s+)?$",
    re.IGNORECASE,
)
_PREFERRED = {"better", "best", "preferred", "stronger", "superior", "winning"}
_PREVIOUS_WORD = re.compile(r"([^\W\d_]+)[ \t\n]+[*_]*$")
_NOUN_BEFORE = re.compile(rf"(?:{_NOUNS})s?|replies", re.IGNORECASE)
_ABOUT_CHOICES = {"answer", "answers", "solution", "solutions", "text", "code", "output", "outputs"}

_AUXILIARY = (
    r"(?:is|was|has|had|does|did|could|would|should|might|may|needs?|isn|wasn|hasn|hadn|doesn|didn|couldn|wouldn|"
    r"shouldn|won|can)['’]t\b|(?:is|was|has|had|does|did|could|would|should|might|may|cannot)\b(?!-)|"
    r"can\b(?!\s+of|-)|will\b(?!\s+to|-)|must\b(?!\s+(?:for|read)|-)|(?:but|because|since|although|though|whereas)\b|"
    r"(?:better|worse|more\s+\w+|less\s+\w+)\s+than\b"
)
_NO_VERBS = (  # words that end like a verb and can follow the article "A"
    "series|means|news|species|sales|savings|always|sometimes|perhaps|besides|lens|sports|graphics|maths|mathematics|"
    "systems|bounds|args|kwargs|units|types|options|results|params|parameters|operations|settings|headers|brackets|"
    "columns|rows|days|weeks|months|years|hours|minutes|seconds|times|ones|others|this|numbers|words|values|keys|s"
)
_VERB = rf"(?!(?:{_NO_VERBS})\b)[a-z]+(?<!s)(?<!u)(?<!i)(?<!a)s\b(?![-’'])"
_PAST = (
    r"(?:[a-z]+ed\s+(?:to|the|a|an|it|its|because|this|that|every|each|no|nothing|all)\b|"
    r"(?:got|gave|made|took|forgot|wrote|chose|went|kept|left|did)\b(?!-))"
)
_ADVERB = r"(?:(?:[a-z]+ly|also|only|just|never|always|sometimes|even|still|not|then|too)\s+)"
_AFTER_SIDE = re.compile(
    r"['’]s\b|\s*$|\s*[,;:!?)\]…]|\.(?!\s*[A-Z]\.)(?:\s|$)|\s+[-–—]+\s|[ \t]*\n|\s*[/&<>]\s*[*_]*B\b|"
    r"\s+(?:and|or|vs\.?|versus|over|than|nor|with|to|for)\s+(?:[a-z]+\s+)?[*_]*B\b|"
    rf"\s+{_ADVERB}{{0,2}}(?:{_AUXILIARY}|{_VERB}|{_PAST})"
)
_GLUED_AFTER = tuple("+#=<>@$%^~|\\{([-")
_GLUED_BEFORE = tuple(".-#@\\$=<>_'’")
_IN_FORMULA = re.compile(r"(?:[=+^|]|[*×·])\s+$")
_BEFORE_BULLET = re.compile(r"(?:^|\n)\s*[*+]\s+$")
_BEFORE_OPERATOR = re.compile(r"\s+(?:[=+^|×·]|\*\s)")
_COMPOUND = re.compile(r"[ -](?:trees?|cells?|vitamins?|movies?|flat|sharp|tests?|testing)\b|\s+to\s+Z\b|\s+[A-Z][a-z]")


def _references(text, choices):
    """Return (start, end, words to keep before the token, letter) of each reference in *text*, in order."""
    opaque = [match.span() for match in _OPAQUE.finditer(text)]
    choices = choices or bool(_CHOICE_LIST.search(text))

    def open_at(start):
        return not any(begin <= start < end for begin, end in opaque)

    found = [
        (match.start(), match.end(), "", match[0])
        for match in _LETTER.finditer(text)
        if open_at(match.start()) and _is_side(text, match.start(), choices)
    ]
    for match in _LOWER.finditer(text):
        of_choice = choices and match[0].split()[0].lower() in _ABOUT_CHOICES
        sure = match[1] == "b" or (match[1] == "a" and _AFTER_SIDE.match(text, match.end()))
        if sure and not of_choice and open_at(match.start()):
            found.append((match.start(1), match.end(1), "", match[1]))
    for match in _ORDINAL.finditer(text):
        if open_at(match.start()) and (place := _place(text, match)):
            noun = (match["noun"] or match["before"]).lower()
            written = noun.capitalize() if match[0][0].isupper() else noun
            found.append((match.start(), match.end(), f"{written} ", place))
    return sorted(found)


def _place(text, match):
    """Return A or B for "the first response" or "the response on the left", "" if it may mean something else."""
    if match["hand"]:
        return "A" if match["hand"].lower() == "left" else "B"
    if not match["the"] and not (match[0][0].isupper() and _starts_sentence(text[: match.start()])):
        return ""  # "its first response" may be a turn of a conversation
    return "A" if match["place"].lower() in ("first", "1st", "left", "left-hand") else "B"


def _is_side(text, start, choices):
    """Return whether the capital letter at *start*, a word on its own, refers to a side."""
    before, after = text[max(0, start - 200) : start], text[start + 1 : start + 200]
    while before[-1:] in ("*", "_") and after[:1] == before[-1:]:  # emphasis
        before, after = before[:-1], after[1:]
    previous = _PREVIOUS_WORD.search(before)
    word = previous[1] if previous else ""
    if _part_of_other(before, after):
        return False
    if _NOUN_BEFORE.fullmatch(word):
        if choices and word.lower() in _ABOUT_CHOICES:
            return False
        wins = _ANSWER_IS.search(before)
        return wins is None or word.lower() in ("answer", "answers")
    if choices or _OTHERS_BEFORE.search(before) or _COMPOUND.match(after) or _shouted(word, after):
        return False
    named = _ANSWER_IS.search(before)
    if named is not None and (named["which"] or "").strip().lower() not in _PREFERRED:
        return False
    return text[start] == "B" or not _starts_sentence(before) or bool(_AFTER_SIDE.match(after))


def _part_of_other(before, after):
    """Return whether the letter between *before* and *after* is part of a formula, a name, a grade or a quotation."""
    if after.startswith("/") or before.endswith("/"):
        beside = re.match(r"/[*_]*[AB]\b(?!/)", after) or re.search(r"\b[AB][*_]*/$", before)
        return not beside or bool(re.match(r"(?:/[AB])?[ -]test", after))
    if after.startswith((*_GLUED_AFTER, "*")) or before.endswith(_GLUED_BEFORE):
        return True
    if re.match(r"\.\w|['’](?!s\b)", after) or _BEFORE_OPERATOR.match(after):
        return True
    return bool(_IN_FORMULA.search(before)) and not _BEFORE_BULLET.search(before)


def _shouted(word, after):
    """Return whether the letter is surrounded by words in capitals."""
    following = re.match(r"\s+([A-Z]{2,})\b", after)
    return len(word) > 1 and word.isupper() and following is not None


def _starts_sentence(before):
    """Return whether a word after *before* would be capitalized anyway."""
    stripped = before.rstrip(" \t*_")
    return not stripped or stripped[-1] in '.!?:;([{–—-•>\n"“'

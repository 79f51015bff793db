"""Detection of corrections, withdrawals and alternatives in a text."""

import re

# Words that announce a correction, at the beginning of a sentence or after a dash. Statements after them replace those
# before them.
_START = r"(?:(?:^|[.!?…:;]|\n|—|–|\s-|\()[ \t*_\"“]{0,6})"
_REOPENING = re.compile(
    _START + r"(?P<word>(?:(?:oh|ah|hmm+|but|and|however),?\s+)?(?:(?:no,?\s+)?wait|hold on|hang on|actually|hmm+"
    r"|no\b[,.!—-]|oops|whoops|sorry|correction|scratch that|strike that|on (?:second thoughts?|reflection)|"
    r"let me (?:re-?\w+|double[- ]check|correct|fix|check)|i (?:made|see|found|notice[d]?) (?:a|an|my|the) \w{0,12} ?"
    r"(?:mistake|error)|my (?:mistake|apologies|bad)|i apologi[sz]e|i (?:meant?|misread|miscounted"
    r"|miscalculated|misspoke)|"
    r"update[d]?\s*:|edit\s*:|revised|corrected))\b",
    re.IGNORECASE,
)
# The same within a statement: "18, no wait, 19", "18 (sorry, 19)".
_INLINE = re.compile(
    r"(?:[.,;:?!…—–(]|\.\.\.|\s-)\s*(?:(?:oh|ah|hmm+),?\s+)?(?:no,?\s+wait|wait,?\s+no|wait|hmm+"
    # "no" before a noun ("no more than 50") corrects nothing, and neither does "rather than 41".
    r"|no(?=\s*(?:[,.;:!—–-]|$)|\s+(?:it|that|the|make|sorry|rather|actually)\b|\s+[($€£*\\\[]{0,3}-?(?:\d|[a-z]\b))"
    r"|oops|sorry|correction|"
    r"scratch that|strike that|i mean(?:t)?|or rather|rather(?! than\b)|make that|actually)\b[\s,:;.!—–-]*",
    re.IGNORECASE,
)
# Phrases that withdraw the value itself, so that even an unmarked value after them counts.
_WITHDRAWAL = re.compile(
    _START + r"(?:(?:oh|ah|hmm+|but),?\s+)?(?:correction|scratch that|strike that|oops|whoops|i meant?|my mistake|"
    r"my apologies|i apologi[sz]e|(?:sorry|no|wait|hold on|actually|hmm+)\b[^.!?\n]{0,80}?"
    r"(?:\b(?:wrong|incorrect|mistaken?|error|should be|should have been|is actually)\b|not (?:right|correct))|"
    r"(?:that|this|it)(?:['’]s| is| was)(?: clearly| actually)? (?:wrong|incorrect|not (?:right"
    r"|correct))\b(?!,? (?:because|since|if))|"
    r"(?:no|wait|actually|sorry),?\s(?=it(?:['’]s| is) (?:actually )?\W{0,6}\d)|"
    r"(?:it|that|this|the answer) should (?:be|have been)(?=\s\W{0,6}\d)|"
    r"i (?:made|see|found|notice[d]?) (?:a|an|my|the) \w{0,12} ?(?:mistake|error))\b",
    re.IGNORECASE,
)
# "Hmm, that's the median.": the value before it answers another question. Another sentence has to follow.
_MISTAKEN = re.compile(
    _START
    + r"(?:(?:oh|ah|but|and|no)[,.]?\s+)?(?:wait|hold on|hang on|actually|hmm+|no|oh|oops|sorry|but)[,.!…—– -]{1,4}"
    r"(?:no[,.]?\s+)?(?:that|this|it)(?:['’]s| is| was| would be"
    r"| gives(?: me| us)?| counts| only)\s(?:only |just |actually )?"
    r"(?:the|an?|for|when|what|how|where|if|only|just|per|before|after|without|in)\s(?!(?:right|correct|same|answer|final)\b)"
    r"[^.!?\n]{1,80}[.!?](?=\s+\S)",
    re.IGNORECASE,
)
# "I can't really say which", "impossible to tell.", but not "I can't say which of his apples are red".
_CANNOT_DECIDE = (
    r"\b(?:can(?:no|['’])t|cannot|could(?: no|n['’])t|unable to"
    r"|impossible to|hard to|difficult to|not (?:able|possible) to"
    r"|do(?: no|n['’])t know how to)\s(?:really |honestly |yet )?(?:say|tell|decide|determine|choose|judge|know)\b\s?"
    r"(?:which|what|whether|between|for (?:sure|certain)|with certainty|without (?:more|further|knowing)|until|[.!]|$)"
    r"(?!\s(?:of (?:the|his|her|their)\s)(?!two\b|readings|values|answers))"
)
# "I'm not sure which one", "it's not clear what you mean"
_NOT_SURE = (
    r"(?:\bnot|n['’]t) (?:really |entirely |quite |at all )?(?:sure|certain|clear) (?:which|what) "
    r"(?:(?:one|of (?:these|those|them|the two)|reading|interpretation"
    r"|value|number|base|meaning|answer|case)\b|you (?:mean|want|are asking)"
    r"|is (?:meant|right|correct|intended|wanted))"
)
# "unclear which", "torn between 3 and 4", "the question is ambiguous", "I don't know which"
_AMBIGUOUS = (
    r"\b(?:un(?:clear|decided|sure)|torn) (?:which|between|what) |\b(?:it|the question|this) is ambiguous\b"
    r"|\bi (?:do not|don['’]t) know which\b"
)
# "I can't answer this without the price of a ticket." The match ends before "so", "but" or "=": an answer may follow.
_CANNOT_ANSWER = (
    r"\bi(?:['’]m| am)?\s(?:can(?:no|['’])t|cannot|unable to|not able to)"
    r" (?:answer|solve|help (?:you )?with|determine)"
    r" (?:this|that|it|the (?:question|problem|answer)|your (?:question|request))\b"
    r"(?:(?!\b(?:so|but|therefore|hence|thus|we|instead|until|directly|from)\b|=)[^.!?\n]){0,160}"
)
# "The number cannot be determined."
_CANNOT_BE_ANSWERED = (
    r"\b(?:it|this|answer|question|problem|number|value) (?:can(?:no|['’])t|cannot|could not) be"
    r" (?:determined|calculated|computed|answered|known|found|solved)\b"
    r"(?:(?!\b(?:so|but|therefore|hence|thus|we|instead|until|directly)\b|=)[^.!?\n]){0,160}"
)
# "There is not enough information to answer the question.", at the end of a line
_TOO_LITTLE_INFORMATION = (
    r"\b(?:not enough|insufficient|too little) (?:information|data|context)(?: (?:given|provided|available|here))?"
    r"(?: to (?:answer|determine|solve|say|tell|know|calculate|compute|find)"
    r"(?: (?:this|it|that|the (?:answer|question|problem|result)))?)?\W{0,4}(?:\n|$)"
)
# Phrases of texts that name several values without a decision, or none.
_UNDECIDED = re.compile(
    rf"{_CANNOT_DECIDE}|{_NOT_SURE}|{_AMBIGUOUS}|{_CANNOT_ANSWER}|{_CANNOT_BE_ANSWERED}|{_TOO_LITTLE_INFORMATION}",
    re.IGNORECASE,
)
# "I'm very sorry, but ", "Unfortunately, ", "As an AI model trained on text, "
_EXCUSE = (
    r"(?:(?:i['’]m |i am )?(?:very |so )?sorry\b[,.!]?\s(?:but )?|unfortunately,?\s"
    r"|as an? (?:ai|language model)\b[^,.]{0,60},\s)?"
)
_I_CANNOT = (
    r"i\s?(?:can(?:no|['’])t|can not|['’]m (?:unable|not able) to|am (?:unable|not able) to|won['’]t|will not"
    r"|(?:must |have to )?(?:refuse|decline) to)\s"
)
# "help with that", "comply.", "answer the question", "score this answer". Not "I can't help but notice", "I can't
# answer 42 or 43" or "I can't rate this any higher".
_REFUSED = (
    r"(?:(?:help|assist)\b(?! (?:but|it|\w+ing)\b)|(?:answer|comply|continue)\s?[.,;:]"
    r"|(?:provide|share|answer|do|solve|fulfil+|comply with|discuss|compare)"
    r" (?:that|this|it|such|your|the (?:question|problem|request))\b"
    r"|(?:(?:judge|grade|rate|mark|score|assess|evaluate)"
    r" (?:(?:that|this|it|such|your|any)(?: (?!any)\w+)?|the (?:answer|response|reply|question|problem|request))"
    r"|(?:give|provide|assign) (?:an? |any )?(?:marks?|scores?|ratings?|grades?))"
    r"(?=\s?(?:[.,;:!\n]|$)|\s(?:because|since|as|at all|for)\b))"
)
# "I'm sorry, but I really don't know the answer to that."
_DO_NOT_KNOW = (
    r"(?:i['’]m sorry,?\s(?:but )?)?i\s(?:really |honestly )?(?:don['’]t|do not) know"
    r"(?:\s(?:that|this|it|the (?:answer|solution)|the answer to (?:that|this)))?\s?(?:[.,;:!—–]|\n|$)"
)
# A refusal that begins a text: "I'm sorry, but I can't assist with that.", "I don't know."
_REFUSAL = re.compile(rf"\W*{_EXCUSE}{_I_CANNOT}{_REFUSED}|{_DO_NOT_KNOW}", re.IGNORECASE)
# What may introduce an answer after a refusal.
_ANSWERED_AFTER_ALL = re.compile(
    r"=|\b(?:but|so|however|therefore|thus|hence|still|anyway|answer|guess|estimate|approximately|roughly|about|total"
    r"|is|are|be|gives?|equals?|makes?|wait|actually)\b[^.!?\n]{0,200}\d"
    r"|\b(?:maybe|perhaps|probably|possibly)\s\W{0,3}\d"
    r"|(?::|→|->|⇒)[\s$€£*-]{0,6}\d|^\W{0,6}\d[\d.,/]*\W{0,6}$",  # also on a line of its own
    re.IGNORECASE | re.MULTILINE,
)
# The beginning of a sentence that offers an alternative to the value before it.
ALTERNATIVELY = re.compile(
    r"^[\s*_,;(—–-]{0,8}(?:or\b|alternatively\b|maybe\b|perhaps\b|possibly\b|otherwise\b|"
    r"(?:but |although |though |and )?(?:it|that|the answer|this)? ?(?:could|might|may)(?: also| well"
    r"| possibly| just)* be\b|"
    r"(?:but |although )?(?:it(?:['’]s| is) also possible|another (?:possible|valid) (?:answer|value)))",
    re.IGNORECASE,
)
# Each match of _UNDECIDED has one of these, in lower case. Looking for them takes a twentieth of the time.
_UNDECIDED_WORDS = (
    *("not", "n't", "n’t", "unable", "impossible", "hard", "difficult", "unclear", "undecided", "unsure", "torn"),
    *("ambiguous", "insufficient", "too little"),
)
_END = 600  # characters at the end of a text that are searched for _UNDECIDED


def reopening_positions(text: str) -> list[int]:
    """Return the positions after words that announce a correction ("Wait", "Actually", "Correction")."""
    return [match.end() for match in _REOPENING.finditer(text)]


def announces_correction(text: str) -> bool:
    """Return whether *text*, which follows a statement, corrects or withdraws it."""
    return bool(reopening_positions(text)) or withdrawal_end(text) >= 0


def withdrawal_end(text: str, start: int = 0) -> int:
    """Return the position after the last withdrawal ("Wait, that is wrong.") from *start* on; -1 if there is none."""
    position = -1
    for pattern in (_WITHDRAWAL, _MISTAKEN):
        for match in pattern.finditer(text, max(start - 1, 0)):
            position = max(position, match.end())
    return position


def is_undecided(text: str) -> bool:
    """Return whether the end of *text* names no decision between values, without a number after that."""
    end = text[-_END:]
    folded = end.casefold()
    if not any(word in folded for word in _UNDECIDED_WORDS):
        return False
    return any(not any(map(str.isdigit, end[match.end() :])) for match in _UNDECIDED.finditer(end))


def is_refused(text: str) -> bool:
    """Return whether *text* begins with a refusal, and gives no answer after that: "I can't help. Call 911."."""
    refusal = _REFUSAL.match(text)
    return refusal is not None and _ANSWERED_AFTER_ALL.search(text, refusal.end()) is None


def statement_versions(statement: str) -> list[str]:
    """Return the versions of a statement, the last first: "18, no wait, 19" gives "19" and "18"."""
    return list(reversed(_INLINE.split(statement)))

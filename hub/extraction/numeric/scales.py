"""Words and characters after a number that multiply it: percent, million, 万."""

import re
from fractions import Fraction

_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "lakh": 10**5,
    "lakhs": 10**5,
    "million": 10**6,
    "crore": 10**7,
    "crores": 10**7,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
# The same words in other languages, as patterns. A longer word comes before its prefixes.
FOREIGN_SCALES = {
    r"mil millones": 10**9,
    r"mio\.?|mln\.?|millionen|millions|million(?:er|s)|mill(?:ón|ones)|milh(?:ão|ões)|milion[ei]|milion(?:y|ów)?"
    r"|miljo(?:en|n|ner)|milyon|juta|triệu|миллион(?:а|ов)?|млн\.?|مليون": 10**6,
    r"mrd\.?|mld\.?|milliarden?|milliards?|milliarder|miliard[oiy]?|miliardów|miljard(?:er)?|milyar|miliar|tỷ"
    r"|bilh(?:ão|ões)|миллиард(?:а|ов)?|млрд\.?|مليار": 10**9,
    r"billionen|bill(?:ón|ones)|триллион(?:а|ов)?|трлн\.?": 10**12,
    r"tausend|tsd\.?|mille|mila|mil|duizend|tusen|tys\.?|tysi(?:ąc|ące|ęcy)|ribu|nghìn|тысяч[аи]?|тыс\.?": 10**3,
}
CJK_SCALES = {"百": 10**2, "千": 10**3, "천": 10**3, "万": 10**4, "萬": 10**4, "만": 10**4}
CJK_SCALES |= {"百万": 10**6, "千万": 10**7, "亿": 10**8, "億": 10**8, "억": 10**8, "兆": 10**12, "조": 10**12}
CJK_SCALE = "|".join(sorted(CJK_SCALES, key=len, reverse=True))
PERCENT = (
    r"percent|per cent|prozent|por ciento|pour cent|por cento|per cento|procent(?:a|en)?|процент(?:а|ов)?"
    r"|パーセント|퍼센트"
)


def scale_of(word: str) -> Fraction:
    """Return the factor of what follows a number, 1 if it is empty."""
    word = word.strip().lower()
    if word.endswith("%") or re.fullmatch(PERCENT, word):
        return Fraction(1, 100)
    scale = _SCALES.get(word) or CJK_SCALES.get(word)
    if not scale and word:
        scale = next((scale for pattern, scale in FOREIGN_SCALES.items() if re.fullmatch(pattern, word)), None)
    return Fraction(scale or 1)

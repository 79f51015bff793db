"""Phrases in which answers choose, reject and rank options, as regular expressions."""

import re

TICKS = "✅✔✓☑"
SENTENCE_END = re.compile(r"(?<=[.!?])[*_]*\s+|\n")
# A label that is also a word ("A", "I") counts before other words only if one of these follows.
AFTER_LABEL = r"because|since|as|for|and|which|due|is|was|it|this|that|given|based|not|with|the|but\s(?:[iI]|it|not)"
_NO_FLAW = r"(?!\s(?:(?!not\b)\w+\s){0,4}?(?:wrong|incorrect|false|invalid|impossible)\b)"
# "B is only half right", "B is only true if n is even"
_NO_LIMIT = r"(?!\s(?:half|part(?:ly|ially)?|sometimes|true|right|correct|valid|an?|if|when|for|in)\b)"
VERDICT = (
    r"(?:(?:is|was|must be|would be|should be|seems|looks)\s+(?:clearly\s+|the\s+|my\s+|final\s+){0,3}"
    r"(?:correct|right|best|better(?!\s+than)|true|answer|choice|pick|odd one|one|left|all\s+that(?:['’]s|\s+is)\s+left"
    rf"|only(?:(?<=the only)|{_NO_LIMIT}){_NO_FLAW})|fits|applies|matches|remains"
    rf"|wins(?=\s*[.!,;]|\s*$)|(?:is\s+)?the\s+only{_NO_FLAW}"
    r"|best\s+(?:describes|fits|matches|explains|represents|reflects|captures|answers|completes)"
    r"|is\s+(?:the\s+)?closest"
    r"|(?:is\s+the|seems|looks|appears)\s+most\s+(?:accurate|appropriate|likely|plausible|suitable|reasonable|consistent))"
)
_ALL_BUT = r"(?:anything|everything|any|all)(?: \w+)? but"
# "Rome, however, is wrong"
ASIDE = re.compile(
    r",\s(?:however|though|of course|on the other hand|(?:by|in) contrast|in fact|indeed|clearly|obviously),(?=\s)",
    re.IGNORECASE,
)
DENIAL = re.compile(rf"\b(?:not|neither|nor|none|never|except|{_ALL_BUT})\b|n['’]t\b", re.IGNORECASE)
# The text of an option after its label: "D) None of the above".
NEGATIVE_OPTION = r"[ ]{0,3}(?:None of|Neither|Never|Nothing|Not (?:enough|given|possible|applicable))\b"
REASON = re.compile(r"(?<=[.!?])\s+(?=[A-Z][a-z])|\b(?:because|since|as|while|whereas|given|due)\b")
# "Nothing fits A", "that doesn't make it B"
NOT_SO = re.compile(
    r"(?:n['’]t|\b(?:not|never|hardly|nothing|none|neither|nor|might|may|could))\s(?:\w+\s){0,2}?"
    r"(?:fit|match|suit|support|favou?r|indicate|suggest|describe|point|correspond|consistent|lead|speak|agree|make|mean"
    r"|give|leave)",
    re.IGNORECASE,
)
CLAUSE = re.compile(
    r"(?<=[,;!?])\s|(?<=\.)\s|(?<!\banything )(?<!\beverything )(?<!\ball )\bbut\b|\brather\b", re.IGNORECASE
)
CHOSEN = (
    r"(?:(?:i|we)(?:['’]d|\s+would|\s+will|['’]ll)?(?:\s+(?:probably|definitely|still|therefore|have\s+to))?\s+(?:choose|chose|pick|select|say|guess|go\s+(?:with|for)"
    r"|settle\s+(?:on|for)|opt\s+for|lean\s+towards?|conclude|think\s+it(?:['’]s|\s+is))"
    r"|going\s+with|my\s+(?:best\s+|final\s+)?(?:guess|pick)\s*(?:is|:)"
    r"|ich\s+(?:wähle|nehme)|je\s+choisis|elijo|escolho|scelgo|выбираю"
    r"|(?:correct|right|best|selected|chosen|final)\s+(?:answer|option|choice|letter|one|statement)\s*(?:is|would\s+be|:)"
    r"|(?:i|we)(?:['’]d|\s+would|['’]ll|\s+will)?\s+(?:label|classify|categori[sz]e|rate|call|consider)\s+(?:it|this|that|the\s+\w+)(?:\s+as)?"
    r"|closest(?:\s+(?:answer|option|choice|match|one))?\s+is"
    r"|(?:false|incorrect|untrue|wrong)\s+(?:statement|claim|sentence|assertion)\s+is"
    r"|left\s+with(?:\s+(?:only|just))?"
    r"|(?:answer|option|choice)\s+(?:has\s+to|must|should|would)\s+be|(?:(?:it|that|this)(?:['’]s|\s+is)|(?:it|that|this)\s+(?:would|should|could\s+only|can\s+only)\s+be|must\s+be|has\s+to\s+be"
    r"|choose|select))"
)
# After the chosen label: "B, definitely", "B, I'm fairly sure"
SURELY = (
    r"(?:definitely|(?:most\s+)?(?:probably|likely)|certainly|clearly|surely|obviously|for\s+sure|without\s+(?:a\s+)?doubt"
    r"|i(?:['’]m|\s+am)\s+(?:fairly\s+|pretty\s+|quite\s+|very\s+)?(?:sure|certain|confident)|i\s+(?:think|believe|guess))"
)
LEADS_TO = (
    r"(?:hence|thus|therefore|∴|so|ergo|consequently|accordingly|finally|overall|in (?:conclusion|summary|short)|"
    r"also|donc|"
    r"by (?:(?:the |a )?process of )?elimination|"
    r"por (?:lo )?tanto|portanto|quindi|daher|deshalb|folglich|因此|所以|故|よって|したがって|따라서)[,:]?"
)
OPTION = (
    r"(?:options?|choice|letter|answer|antwort|réponse|reponse|respuesta|resposta|risposta|antwoord|svar|opción|opcion|opção|opzione|variante?|alternativa|möglichkeit|buchstabe|"
    r"lettre|letra|вариант|ответ|optie)"
)
# Before a label: "the answer is not B", "I don't think it's B", "do not choose B"
DENIED_LABEL = re.compile(
    r"(?:\b(?:not|nicht|niet|inte|ikke|не|no\s+es(?:\s+la)?|est\s+pas(?:\s+la)?|non\s+è(?:\s+la)?|não\s+é(?:\s+a)?)"
    r"|n['’]t\s+(?:think|believe)\s+(?:that\s+)?(?:it(?:['’]s|\s+is)|the\s+answer\s+is)"
    r"|(?:\b(?:not|never|cannot)|n['’]t)\s+(?:choose|pick|select|go(?:ing)?\s+with|opt\s+for|recommend|say)(?:\s+the)?"
    rf"(?:\s+{OPTION})?)\s+[(\[*_\"']{{0,4}}$",
    re.IGNORECASE,
)
RIGHT = (
    r"(?:richtig\w*|korrekt\w*|correct\w*|correto|correta|corrett[ao]|bonne|juste|giust[ao]|rätt|juist|goed|zutreffend|"
    r"верн\w*|правильн\w*)"
)
WRONG = (
    r"(?:not\b(?!\s(?:the\s)?only\b)|"
    r"n['’]t\b|cannot\b|wrong|incorrect|false|out\b|eliminated|ruled out|excluded|impossible|invalid|untrue|"
    r"falsch|incorrecta|fausse?)"
)
# Comments on the options of a list: "A – wrong", "B: correct, it is in Germany". "Correct, but …" is neither.
_RESTRICTED = r"(?:but|though|although|yet|only|except)\b"
NOT_RESTRICTED = rf"(?!,?\s+{_RESTRICTED})"
_COMMENT_END = rf"(?=[*_]*(?:[.;:!)|]|,(?!\s*{_RESTRICTED})|\s+[-–—(|]|\s*$|\s+(?:because|since|as)\b))"
SAID_RIGHT = rf"(?i:right|true|{RIGHT}){_COMMENT_END}"
SAID_WRONG = (
    r"(?i:wrong|incorrect\w*|not\s+(?:correct|right|true)|false|untrue|invalid|eliminated|ruled out|excluded"
    rf"|falsch|nicht richtig|faux|fausse|неверн\w*|неправильн\w*){_COMMENT_END}"
)
FITS = (
    r"(?:fits?|match(?:es)?|suits?|supports?|favou?rs?|indicates?|suggests?|describes?|points?\s+to(?:wards?)?"
    r"|corresponds?\s+to|(?:is|are)\s+consistent\s+with|leads?\s+(?:me\s+|us\s+)?to|speaks?\s+for|agrees?\s+with"
    r"|(?:which|this|that|elimination)\s+(?:is|makes\s+it|means|gives|leaves(?:\s+(?:us|me)\s+with)?))"
)
BESIDES = r"here|then|instead|overall|myself|personally|today|too|please|over|if|i think|i guess|for this"
# Labels after these phrases are ranked below the chosen one.
RANKED = re.compile(
    r"[,;(–—-]?\s{0,3}\b(?:(?:closely )?followed by|ahead of|rather than|instead of|unlike|as opposed to|in contrast to"
    r"|compared (?:to|with)|then comes?|before|beating|with (?=[^.;]{1,40}\b(?:second|behind|next|third)\b))[^.;!?]*",
    re.IGNORECASE,
)
# Names of currencies by sign, so that "eight dollars" is the option "$8".
MONEY = {"$": "dollars?|bucks?|usd", "€": "euros?|eur", "£": "pounds?|gbp", "¥": "yen|jpy", "₹": "rupees?|inr"}
# The number of an item of a list: "1. Paris"
LIST_NUMBER = re.compile(r"^[ \t]*\d{1,2}[.)][ \t]+(?=\S)", re.MULTILINE)

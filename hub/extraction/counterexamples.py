"""Detection of blocks that are not the answer: examples of what is wrong, pseudocode, what another answer would be."""

import re

_FLAW = (
    r"(?:wrong|incorrect|invalid|bad|buggy|broken|faulty|flawed|anti-?patterns?|pitfalls?|mistakes?|not recommended)"
)
_CODE = (
    r"(?:code|version|implementation|solution|function|program|attempt|approach|example|way|snippet|output|json|object"
    r"|one)"
)
_WARNING = r"(?:\s[-–—]\s(?:do not|don['’]t|never)\b.{0,30})?"
_EXAMPLE = r"(?:(?:for (?:example|instance)|e\.g\.),?\s)?"
_IS = r"(?:\s(?:is|was|would be|looks like)(?:\s(?:this|the following))?)"
# The whole sentence, without marks and the colon.
_LABEL = re.compile(
    rf"{_EXAMPLE}(?:(?:a|an|the|some)\s)?(?:(?:common|typical|classic|frequent)\s)?{_FLAW}(?:\s{_CODE}{_IS}?)?{_WARNING}"
    r"|(?:before|original|(?:for (?:reference|comparison),?\s|compare (?:(?:it|this)\s)?(?:with|to)\s)?"
    r"(?:here(?:['’]s| is)\s)?(?:(?:the|your)\s)?"
    rf"(?:original|old|previous|buggy|incorrect|wrong|broken)(?:\s(?:buggy|incorrect|wrong|broken|old))?\s{_CODE})"
    r"(?:,?\sfor (?:reference|comparison))?(?:\s(?:is|was))?(?:\s\([^()]{1,60}\))?"
    rf"|your\s{_CODE}(?:\swas)?|(?:(?:what|the\s{_CODE}(?:\sthat)?)\s)?you (?:had|wrote|posted)"
    rf"|the (?:bug|error|mistake|problem|issue) (?:in|with) (?:your|the (?:original|old))\s{_CODE}\s(?:is|was)"
    r"(?:\s(?:here|in )?this (?:line|part)|\shere)?"
    r"|(?:do not|don['’]t|not)(?:\sthis)?"
    r"|(?:what|how) not to (?:do|write)(?:\s\w+)?"
    rf"|(?:here(?:['’]s| is)\s)?(?:(?:the|in|as|some|same (?:in|as))\s){{0,2}}(?:\w+\s)?pseudo[-\s]?code(?:\s{_CODE})?"
    r"(?:\s(?:for|of) (?:this|it|the|your)(?:\s\w+){0,2})?(?:,?\sfor (?:reference|comparison))?(?:\s\([^()]{1,60}\))?"
    r"|for comparison,?\s(?:an?|the)\s(?:invalid|incorrect|wrong|bad)\s.{1,40}",
    re.IGNORECASE,
)
_REST = r"[^,;:—–]{0,60}"
_SENTENCE = re.compile(
    r"(?:(?:so|but|and|please|note|again)[,:]?\s){0,2}(?:you\s(?:should|must)\s)?"
    r"(?:(?:do not|don['’]t|never)\s(?:ever\s)?(?:do|use|write|implement)|avoid(?:\s(?:doing|using|writing))?)\s"
    rf"(?:it|this|that|the following|(?:code|something) like)\b(?!\sby\b){_REST}"
    r"|(?:a|one|the|another)\s(?:\w+\s)?(?:common|typical|frequent|classic)\s(?:mistake|error|pitfall)"
    rf"(?:\s(?:is|would be)(?:\s(?:to|this|the following|something|\w+ing)\b{_REST})?)?"
    r"|.{0,60}\bthe following (?:\w+\s)?(?:is|are|would be|will be|does|would|will)\s"
    rf"(?:also\s)?(?:wrong|incorrect|a mistake|not (?:work|correct|right)|fail)\b{_REST}"
    r"|.{0,80}\b(?:better|rather|safer|faster|cleaner|simpler|shorter) than(?:\sthis)?"
    r"|(?:and\snot\s|not\s)?instead of(?:\sthis)?"
    rf"|{_REST}\bwithout the fix\b.{{0,20}}",
    re.IGNORECASE,
)
_FIRST = r"(?:naive|naïve|simple|simpler|obvious|straightforward|first|greedy|original|old|buggy|following)"
# Before a colon only: without one, the sentence is about the block before it.
_ANNOUNCEMENT = re.compile(
    rf"(?:but\s|note that\s)?{_EXAMPLE}this\s(?:(?:is|would be)\s(?:wrong|incorrect|a mistake)"
    r"|(?:does not|doesn['’]t|will not|won['’]t|would not|wouldn['’]t) work|(?:will|would) fail|fails)"
    rf"|(?:but\s|note that\s)?{_EXAMPLE}(?:this(?:\s(?:{_FIRST}\s)?{_CODE})?|(?:the|an?)\s{_FIRST}\s{_CODE})\s"
    r"(?:gives|returns|produces|yields|would (?:give|return|produce|yield))\s(?:the\s|an?\s)?(?:wrong|incorrect)\s"
    r"(?:results?|answers?|outputs?|values?)"
    rf"(?:\s(?:for|if|when|with|on)\b(?!.{{0,60}}\b(?:use|fix\w*|so|instead|correct\w*)\b){_REST})?",
    re.IGNORECASE,
)
# "The original code", "the wrong code is", "the original code is wrong", "do not write it like this", "counterexample".
_CHINESE = re.compile(
    r"(?:以下是|下面是|这是)?(?:(?:原来的?|原始的?|原|旧的?|之前的|你的|错误的?|有问题的|有错误的)"
    r"(?:代码|版本|实现|写法|解法|函数|程序|示例|例子|做法)(?:(?:是|有)(?:错误的?|错的?|问题的?|不正确的))?"
    r"|(?:请)?不要(?:这样|这么)(?:写|做|用|实现)|反例|常见错误)(?:是|如下)?"
)
_OTHER_ANSWER = re.compile(
    r"\(?(?:note that\s)?(?:(?:for|by|in|as an?)\s(?:comparison|contrast|reference)(?=[,:]|$)"
    r"|(?:an?|another|the\s(?:ideal|perfect|best))\s(?:[\w-]+\s){0,4}"
    r"(?:answer|response|reply|solution|version)\b.{0,80}?\b(?:would|could|might)\b"
    r"|(?:if|had)\b.{0,120}?\b(?:had|been)\b|had\s(?:it|the\s\w+)\b.{0,120}?\bwould\shave\b)",
    re.IGNORECASE,
)
_MARKS = re.compile(r"^[\s#>~❌✗✘✖🚫⚠\ufe0f\d.)-]+|[\s:：.。!！]+$")


def is_counterexample(introduction: str, text: str) -> bool:
    """Return whether a block with *text* after the line *introduction* is shown as wrong, or as pseudocode.

    The line may be a label ("Wrong:", "### Original code") or end with such a sentence ("Do not write it like this:").
    The label may also be the comment in the first line of the block. A line such as "The original code was wrong. Here
    is the fixed version:" is about another block.
    """
    first = text.lstrip().partition("\n")[0]
    comment = first if first.startswith(("#", "//")) else ""
    return _says_so(introduction) or _says_so(comment.lstrip("/"))


def is_about_another_answer(introduction: str) -> bool:
    """Return whether the last sentence of *introduction* announces what another answer than the one at hand gets.

    "For comparison, a poor answer would get", "If the unit had been missing:".
    """
    return _OTHER_ANSWER.match(_MARKS.sub("", _last_sentence(introduction))) is not None


def _last_sentence(line: str) -> str:
    return re.split(r"(?<=[.!?])\s|(?<=[。！？])(?=.)", re.sub(r"[*_`]", "", line).strip())[-1]


def _says_so(line: str) -> bool:
    sentence = _last_sentence(line)
    plain = _MARKS.sub("", sentence)
    patterns = [_LABEL, _SENTENCE]
    if sentence.rstrip().endswith((":", "：")):
        patterns += [_ANNOUNCEMENT, _CHINESE]
    return any(pattern.fullmatch(plain) for pattern in patterns)

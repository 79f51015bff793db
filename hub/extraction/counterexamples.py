"""Detection of blocks that an answer shows as examples of what is wrong: "Don't do this:", "The original code:"."""

import re

_FLAW = r"(?:wrong|incorrect|bad|buggy|broken|faulty|flawed|anti-?patterns?|pitfalls?|mistakes?|not recommended)"
_CODE = (
    r"(?:code|version|implementation|solution|function|program|attempt|approach|example|way|snippet|output|json|one)"
)
_WARNING = r"(?:\s[-–—]\s(?:do not|don['’]t|never)\b.{0,30})?"
# The whole sentence, without marks and the colon.
_LABEL = re.compile(
    rf"(?:(?:a|an|the|some)\s)?(?:(?:common|typical|classic|frequent)\s)?{_FLAW}(?:\s{_CODE})?{_WARNING}"
    r"|(?:before|(?:for (?:reference|comparison),?\s)?(?:here(?:['’]s| is)\s)?(?:(?:the|your)\s)?"
    rf"(?:original|old|previous|buggy|incorrect|wrong|broken)(?:\s(?:buggy|incorrect|wrong|broken|old))?\s{_CODE})"
    r"(?:\s(?:is|was))?(?:\s\([^()]{1,60}\))?"
    r"|(?:what|how) not to (?:do|write)(?:\s\w+)?"
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
_MARKS = re.compile(r"^[\s#>~❌✗✘✖🚫⚠\ufe0f\d.)-]+|[\s:.!]+$")


def is_counterexample(introduction: str, text: str) -> bool:
    """Return whether a block with *text* after the line *introduction* is shown as an example of what is wrong.

    The line may be a label ("Wrong:", "### Original code") or end with such a sentence ("Do not write it like this:").
    The label may also be the comment in the first line of the block. A line such as "The original code was wrong. Here
    is the fixed version:" is about another block.
    """
    first = text.lstrip().partition("\n")[0]
    comment = first if first.startswith(("#", "//")) else ""
    return _says_so(introduction) or _says_so(comment.lstrip("/"))


def _says_so(line: str) -> bool:
    sentence = re.split(r"(?<=[.!?])\s", re.sub(r"[*_`]", "", line).strip())[-1]
    plain = _MARKS.sub("", sentence)
    return _LABEL.fullmatch(plain) is not None or _SENTENCE.fullmatch(plain) is not None

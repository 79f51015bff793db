"""Compares what was done at the desk with what the case asks for: every change, no other, and what was said."""

import re

FREE_TEXT = {"text", "summary"}
# Doing these again replaces what was done before, so only the last one counts.
REPLACING = {"change_address", "apply_coupon"}


def check(case, state, transcript):
    spoken = [message for message in transcript if message["role"] == "assistant"]
    said = [message.get("content") or "" for message in spoken]
    extra, missing = _effects(state["log"]), []
    for want in case["row"]["expect"]:
        found = next((have for have in extra if _same(want, have)), None)
        if found is None:
            missing.append(want)
        else:
            extra.remove(found)
    if missing:
        return {"score": 0.0, "reason": f"Not done: {_words(missing[0])}."}
    if extra:
        return {"score": 0.0, "reason": f"Should not have been done: {_words(extra[0])}."}
    if not spoken or spoken[-1].get("tool_calls") or not said[-1].strip():
        return {"score": 0.0, "reason": "The customer was told nothing at the end."}
    for pattern in case["row"]["says"]:
        if not any(re.search(pattern, text, re.I) for text in said):
            return {"score": 0.0, "reason": f"The customer was not told what they asked for (/{pattern}/)."}
    for pattern in case["row"]["never_says"]:
        if any(re.search(pattern, text, re.I) for text in said):
            return {"score": 0.0, "reason": f"The customer was told what is not theirs to know (/{pattern}/)."}
    return {"score": 1.0, "reason": "Everything that was asked for and allowed was done, and nothing else."}


def _effects(log):
    """The log without what was replaced later."""
    last = {(event["do"], event["order"]): i for i, event in enumerate(log) if event["do"] in REPLACING}
    return [event for i, event in enumerate(log) if last.get((event["do"], event["order"]), i) == i]


def _same(want, have):
    """Whether an event is the expected one. A list of values means any of them; free text has to hold its words."""
    return want.keys() <= have.keys() and all(_fits(key, value, have[key]) for key, value in want.items())


def _fits(key, want, have):
    if key in FREE_TEXT:
        return re.search(want, have, re.I) is not None
    if key == "amount":
        return abs(want - have) < 0.005
    if isinstance(want, list):
        return have in want
    if isinstance(want, str):
        return _plain(want) == _plain(have)
    return want == have


def _plain(text):
    return re.sub(r"[\s,.]+", "", str(text)).lower()


def _words(event):
    return ", ".join(f"{key} {value}" for key, value in event.items())

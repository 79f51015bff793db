"""Record of what objects of the code replied, to notice one that replies differently to the same question.

Tests often look at an object more than once: `assert max(r) > 2 and max(r) < 4`. An object that chose its reply each
time could meet every such condition. So the same question about the same object must get the same reply until the tests
do something that may change the object: call the code, advance an iterator of it, assign to an attribute or an item.
"""

import re
from typing import Any

from ..protocol.operations import AWAITED, IN_PLACE

CHANGES = frozenset({"setattr", "setitem", "delattr", "delitem", "enter", "exit", *AWAITED, *IN_PLACE})
"""Operations after which an honest object may reply differently."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Looks:
    """Replies since the last operation that may change an object.

    A new object in the place of an earlier one, such as what a property makes anew each time, is its twin: it must give
    the replies that the first one gave. So must the items of two iterators over the same object.
    """

    def __init__(self) -> None:
        self._replies: dict[tuple[int, str, str], Any] = {}
        self._twins: dict[int, int] = {}  # handle -> handle of the first object in its place
        self._positions: dict[int, int] = {}  # iterator over another object -> number of items read
        self._ended: set[int] = set()  # iterators that have no more items

    def forget(self) -> None:
        """Forget all replies: any object may have changed."""
        self._replies.clear()
        self._twins.clear()
        self._positions.clear()
        self._ended.clear()

    def agree(self, on: int, name: str, args: Any, kind: str, content: Any) -> bool:
        """Record a reply. Return False if it differs from an earlier reply to the same question.

        on             handle of the object, or -1 for a name that the code defines
        kind, content  the reply, as in `replies`
        """
        if name == "next":
            return self._agree_on_item(on, kind, content)
        if name in CHANGES:
            self.forget()
            return True
        first = self._twins.get(on, on)
        if name == "hash" and first != on:
            return True  # by default the hash of an object is its own
        key = first, name, repr(self._of_first(args)) if args else ""
        same = self._is_repeated(key, kind, content)
        if name in ("iter", "reversed") and kind == "value" and content["h"][0] != on:
            self._positions.setdefault(content["h"][0], 0)
        return same

    def _agree_on_item(self, on: int, kind: str, content: Any) -> bool:
        position = self._positions.get(on)
        was_ended = on in self._ended
        if position is None:  # an iterator that the code gave itself: reading from it may run any of the code
            ended = self._ended.copy()
            self.forget()
            self._ended = ended
            same = True
        else:
            self._positions[on] = position + 1
            same = self._is_repeated((self._twins.get(on, on), "next", str(position)), kind, content)
        if kind == "stop":
            self._ended.add(on)
        return same and not (was_ended and kind == "value")

    def _is_repeated(self, key: tuple[int, str, str], kind: str, content: Any) -> bool:
        reply = kind, _error(content) if kind == "error" else content
        before = self._replies.setdefault(key, reply)
        return before is reply or (before[0] == kind and self._same(before[1], reply[1]))

    def _of_first(self, value: Any) -> Any:
        """Encoded arguments, with the first object in the place of each twin."""
        if not self._twins:
            return value
        if type(value) is list:
            return [self._of_first(item) for item in value]
        if type(value) is dict:
            if value.keys() == {"r"}:
                return {"r": self._twins.get(value["r"], value["r"])}
            return {key: self._of_first(item) for key, item in value.items()}
        return value

    def _same(self, before: Any, now: Any) -> bool:
        """Whether two encoded values are the same, but for the identity of objects in them."""
        if type(before) is not type(now):
            return False
        if type(now) is list:
            return len(before) == len(now) and all(map(self._same, before, now))
        if type(now) is str:
            return before == now or _ADDRESS.sub("", before) == _ADDRESS.sub("", now)
        if type(now) is not dict:
            return bool(before == now)
        if before.keys() != now.keys():
            return False
        tag = next(iter(now)) if len(now) == 1 else ""
        if tag == "h":
            return self._are_twins(before["h"], now["h"])
        if tag in ("s", "f"):
            return self._same(sorted(before[tag], key=_order), sorted(now[tag], key=_order))
        if tag == "m":  # keys of the code's own, which are no tags
            return before["m"].keys() == now["m"].keys() and all(
                self._same(before["m"][k], now["m"][k]) for k in now["m"]
            )
        return all(self._same(before[key], now[key]) for key in now)

    def _are_twins(self, before: list[Any], now: list[Any]) -> bool:
        if before[1:] != now[1:]:
            return False
        if before[0] != now[0]:
            self._twins[now[0]] = self._twins.get(before[0], before[0])
        return True


def _error(content: Any) -> list[Any]:
    """What tests see of an exception, without the line that raised it."""
    return [content["type"], content["message"], content["args"]]


def _order(encoded: Any) -> str:
    """A key that puts the members of two equal sets in the same order."""
    if type(encoded) is dict and encoded.keys() == {"h"}:
        return repr(encoded["h"][1:])
    return repr(encoded)

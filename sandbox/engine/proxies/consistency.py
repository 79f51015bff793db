"""Record of the replies of the code's objects, to notice an object that answers the same question differently.

Tests often use an object more than once: `assert max(r) > 2 and max(r) < 4`. An object that chose its reply each time
could meet every such condition. So the same question about the same object must get the same reply until the tests do
something that may change the object: call the code, advance an iterator of it, assign to an attribute or an item.
"""

import re

from ..protocol.operations import AWAITED, IN_PLACE, OF_GENERATORS

CHANGES = frozenset({"setattr", "setitem", "delattr", "delitem", "enter", "exit", *AWAITED, *OF_GENERATORS, *IN_PLACE})
"""Operations after which an object may legitimately reply differently."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class ReplyHistory:
    """Replies since the last operation that may change an object.

    A new object in the place of an earlier one, such as the result of a property, is its twin: it must give the replies
    that the first one gave. So must the items of two iterators over the same object.
    """

    def __init__(self) -> None:
        self._replies: dict[tuple[int, str, str], tuple[str, object]] = {}
        self._twins: dict[int, int] = {}  # handle -> handle of the first object in its place
        self._positions: dict[int, int] = {}  # iterator over another object -> number of items read
        self._ended: set[int] = set()  # iterators that have no more items

    def forget(self) -> None:
        """Forget all replies, because any object may have changed."""
        self._replies.clear()
        self._twins.clear()
        self._positions.clear()
        self._ended.clear()

    def is_consistent(self, on: int, name: str, args: object, kind: str, content: object) -> bool:
        """Record a reply. Return False if it differs from an earlier reply to the same question.

        on             handle of the object, or -1 for a name that the code defines
        kind, content  the reply, as in `replies`
        """
        if name == "next":
            return self._is_consistent_item(on, kind, content)
        if name in CHANGES:
            self.forget()
            return True
        first = self._twins.get(on, on)
        if name == "hash" and first != on:
            return True  # by default each object has a hash of its own
        key = first, name, repr(self._with_first_objects(args)) if args else ""
        same = self._is_repeated(key, kind, content)
        if name in ("iter", "reversed") and kind == "value" and isinstance(content, dict) and content["h"][0] != on:
            self._positions.setdefault(content["h"][0], 0)
        return same

    def _is_consistent_item(self, on: int, kind: str, content: object) -> bool:
        position = self._positions.get(on)
        has_ended = on in self._ended
        if position is None:  # an iterator that the code returned: reading from it may run any code
            ended = self._ended.copy()
            self.forget()
            self._ended = ended
            same = True
        else:
            self._positions[on] = position + 1
            same = self._is_repeated((self._twins.get(on, on), "next", str(position)), kind, content)
        if kind == "stop":
            self._ended.add(on)
        return same and not (has_ended and kind == "value")

    def _is_repeated(self, key: tuple[int, str, str], kind: str, content: object) -> bool:
        reply = kind, _visible_error(content) if kind == "error" else content
        before = self._replies.setdefault(key, reply)
        return before is reply or (before[0] == kind and self._is_same(before[1], reply[1]))

    def _with_first_objects(self, value: object) -> object:
        """Return encoded arguments with each twin replaced by the first object in its place."""
        if not self._twins:
            return value
        if type(value) is list:
            return [self._with_first_objects(item) for item in value]
        if type(value) is dict:
            if value.keys() == {"r"}:
                return {"r": self._twins.get(value["r"], value["r"])}
            return {key: self._with_first_objects(item) for key, item in value.items()}
        return value

    def _is_same(self, before: object, now: object) -> bool:
        """Return whether two encoded values are equal, except for the identity of objects in them."""
        if type(before) is not type(now):
            return False
        if isinstance(before, list) and isinstance(now, list):
            return len(before) == len(now) and all(map(self._is_same, before, now))
        if isinstance(before, str) and isinstance(now, str):
            return before == now or _ADDRESS.sub("", before) == _ADDRESS.sub("", now)
        if not (isinstance(before, dict) and isinstance(now, dict)):
            return bool(before == now)
        if before.keys() != now.keys():
            return False
        tag = next(iter(now)) if len(now) == 1 else ""
        if tag == "h":
            return self._are_twins(before["h"], now["h"])
        if tag in ("s", "f"):
            return self._is_same(sorted(before[tag], key=_set_order), sorted(now[tag], key=_set_order))
        if tag == "m":  # its keys are the code's, not tags
            return before["m"].keys() == now["m"].keys() and all(
                self._is_same(before["m"][k], now["m"][k]) for k in now["m"]
            )
        return all(self._is_same(before[key], now[key]) for key in now)

    def _are_twins(self, before: list[object], now: list[object]) -> bool:
        if before[1:] != now[1:]:
            return False
        first, second = before[0], now[0]
        if isinstance(first, int) and isinstance(second, int) and first != second:
            self._twins[second] = self._twins.get(first, first)
        return True


def _visible_error(content: object) -> list[object]:
    """Return the parts of an exception that tests see, without the line that raised it."""
    assert isinstance(content, dict)
    return [content["type"], content["message"], content["args"]]


def _set_order(encoded: object) -> str:
    """Return a sort key that puts the members of two equal sets in the same order."""
    if isinstance(encoded, dict) and encoded.keys() == {"h"}:
        return repr(encoded["h"][1:])
    return repr(encoded)

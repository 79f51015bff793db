"""Containers as a flat list of nodes, so that cycles, shared parts and long chains cross as they are.

A node is encoded as the codec would, but for containers in it, which are {"#": index}. Containers are exact lists,
dicts, sets, tuples and frozensets, and instances of the classes that both processes define. Other values that can
change, such as a deque, are nodes with the codec's encoding of all that is in them.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from . import codec
from .values import attributes_of, blank, fill

_CHANGING = (list, dict, set)
_CONTAINERS = frozenset({list, dict, set, tuple, frozenset})
_WHOLE: dict[type, Callable[[Any, Any], Any]] = {  # nodes that are encoded whole, and how each takes a new value
    bytearray: lambda old, new: old.__setitem__(slice(None), new),
    deque: lambda old, new: (old.clear(), old.extend(new)),
    Counter: lambda old, new: (old.clear(), old.update(new)),
    OrderedDict: lambda old, new: (old.clear(), old.update(new)),
    defaultdict: lambda old, new: (old.clear(), old.update(new)),
    SimpleNamespace: lambda old, new: (vars(old).clear(), vars(old).update(vars(new))),
}
_NODES = _CONTAINERS | _WHOLE.keys()
_SCALARS = frozenset({type(None), bool, int, float, str, bytes, complex})
_JSON = frozenset({type(None), bool, str})
_SAFE_INT = 1 << 63
_NESTED = 40  # levels that are encoded as nested JSON


class Flattener:
    """Gives every container that is reached a number; those in `known` keep theirs.

    closed  no further numbers: other containers are encoded where they stand
    """

    def __init__(
        self, export: codec.Export, classes: dict[str, Any], known: Sequence[Any] = (), closed: bool = False
    ) -> None:
        self._export, self._classes, self._closed = export, classes, closed
        self.objects: list[Any] = list(known)
        self._numbers = {id(value): i for i, value in enumerate(self.objects)}

    def child(self, value: Any) -> Any:
        """What stands for a value inside of a node, or for a root."""
        kind = type(value)
        if kind in _SCALARS or not (kind in _NODES or self._classes.get(kind.__name__) is kind):
            return codec.encode(value, self._export)
        number = self._numbers.get(id(value))
        if number is None and self._closed:
            return codec.encode(value, self._export)
        if number is None:
            number = self._numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return {"#": number}

    def node(self, value: Any) -> Any:
        """The encoding of one container."""
        kind, child = type(value), self.child
        if kind is list:
            return list(value) if _is_json(value) else [child(item) for item in value]
        if kind is dict:
            return {"d": [[child(key), child(item)] for key, item in value.items()]}
        if kind is tuple:
            return {"t": [child(item) for item in value]}
        if kind is set or kind is frozenset:
            return {"s" if kind is set else "f": [child(item) for item in value]}
        found = attributes_of(value, self._classes)
        if found is None:
            return codec.encode(value, self._export)
        name, attributes = found
        return {"v": [name, {key: child(item) for key, item in attributes.items()}]}

    def nodes(self, start: int = 0) -> list[Any]:
        """All nodes from a number on, those included that they lead to."""
        encoded: list[Any] = []
        while start + len(encoded) < len(self.objects):
            encoded.append(self.node(self.objects[start + len(encoded)]))
        return encoded


def _is_json(items: list[Any]) -> bool:
    """Whether JSON has every item of a list as it is."""
    kinds = set(map(type, items))
    if kinds == {int}:
        return -_SAFE_INT <= min(items) and max(items) < _SAFE_INT
    return kinds <= _JSON


def is_simple(value: Any, classes: dict[str, Any], known: frozenset[int] = frozenset()) -> bool:
    """Whether nested JSON says all about a value: no cycles, no shared parts, no instances, not too deep."""
    if type(value) in _SCALARS:
        return True
    seen = set(known)
    level = [value]
    for _ in range(_NESTED):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind in _CONTAINERS:
                if kind in _CHANGING or item:
                    if id(item) in seen:
                        return False
                    seen.add(id(item))
                if kind is dict:
                    below.extend(item)
                    below.extend(item.values())
                elif not _SCALARS.issuperset(map(type, item)):
                    below.extend(item)
            elif kind not in _SCALARS and classes.get(kind.__name__) is kind:
                return False
        if not below:
            return True
        level = below
    return False


class Builder:
    """Makes the objects that nodes stand for.

    known  those that are there already, by number
    part   restores what is inside of an instance of a shared class
    """

    def __init__(
        self,
        restore: codec.Restore,
        classes: dict[str, Any],
        known: Sequence[Any] = (),
        part: codec.Restore | None = None,
    ) -> None:
        self._restore, self._classes, self._part = restore, classes, part or restore
        self.objects: list[Any] = list(known)

    def add(self, nodes: Any) -> None:
        """Build further nodes. Raises CodecError for nodes of the wrong shape."""
        start = len(self.objects)
        nodes = _listed(nodes)
        self.objects += [self._empty(node) for node in nodes]
        for i in range(len(nodes)):
            if self.objects[start + i] is _LATER:
                self._freeze(start + i, start, nodes)
        # Sets and dicts last: their members are hashed, which may look into the members.
        for last in (False, True):
            for i, node in enumerate(nodes):
                if (_tag(node) in ("d", "s")) is last and _tag(node) not in ("x", "y"):
                    self.fill(start + i, node)

    def _freeze(self, number: int, start: int, nodes: list[Any]) -> None:
        """Make a tuple or frozenset, those inside of it first."""
        pending, opened = [number], set()
        while pending:
            at = pending[-1]
            if self.objects[at] is not _LATER:
                pending.pop()
                continue
            tag = _tag(nodes[at - start])
            content = _listed(nodes[at - start][tag])
            inner = [_number(item) for item in content if _tag(item) == "#"]
            waiting = [i for i in inner if i < len(self.objects) and self.objects[i] is _LATER]
            if not waiting:
                pending.pop()
                self.objects[at] = _unless_crowded(tuple if tag == "t" else frozenset, [self.child(i) for i in content])
            elif at in opened:
                raise codec.CodecError("a tuple that holds itself")
            else:
                opened.add(at)
                pending.extend(waiting)

    def fill(self, number: int, node: Any) -> None:
        """Give a changing object its content, instead of what it has."""
        target, tag = self.objects[number], _tag(node)
        if tag == "o":  # what could not be encoded stays as it was
            return
        if type(node) is list and type(target) is list:
            kinds = set(map(type, node))
            target[:] = [self.child(item) for item in node] if dict in kinds or list in kinds else node
        elif tag == "s" and type(target) is set:
            items = _unless_crowded(set, [self.child(item) for item in _listed(node["s"])])
            target.clear()
            target.update(items if type(items) is set else [items])
        elif tag == "d" and type(target) is dict:
            pairs = [(self.child(key), self.child(item)) for key, item in map(_pair, _listed(node["d"]))]
            crowded = codec.crowded([key for key, _ in pairs])
            target.clear()
            target.update([("", codec.Opaque("mapping of keys with one hash"))] if crowded else pairs)
        elif tag == "v":
            _, attributes = _pair(node["v"])
            inside = {name: self.child(item, self._part) for name, item in _mapping(attributes).items()}
            fill(target, inside, self._classes)
        elif tag in ("x", "y"):
            if type(target) in _WHOLE:
                _WHOLE[type(target)](target, self._decoded_as(type(target), node))
        elif tag not in ("t", "f"):
            raise codec.CodecError("a node of another type than its object")

    def _empty(self, node: Any) -> Any:
        """What a node is filled into."""
        tag = _tag(node)
        if type(node) is list:
            return []
        if tag in _BLANK:
            return _BLANK[tag]()
        if tag == "v":
            name, attributes = _pair(node["v"])
            return blank(name, _mapping(attributes), self._classes)
        if tag in ("x", "y"):
            return codec.decode(node, self._restore)
        raise codec.CodecError("no node")

    def _decoded_as(self, kind: type, node: Any) -> Any:
        value = codec.decode(node, self._restore)
        if type(value) is not kind:
            raise codec.CodecError("a node of another type than its object")
        return value

    def child(self, data: Any, restore: codec.Restore | None = None) -> Any:
        """The value that stands inside of a node, or a root."""
        if _tag(data) == "#":
            number = _number(data)
            if number >= len(self.objects):
                raise codec.CodecError("a node that is not there")
            return self.objects[number]
        return codec.decode(data, restore or self._restore)


class _Later:
    """Stands for a tuple or frozenset that is not made yet."""


_LATER = _Later()


_BLANK: dict[str, Callable[[], Any]] = {"d": dict, "s": set, "t": lambda: _LATER, "f": lambda: _LATER}


def _unless_crowded(kind: Callable[[list[Any]], Any], items: list[Any]) -> Any:
    if kind is not tuple and codec.crowded(items):
        return codec.Opaque("set of members with one hash")
    return kind(items)


def _tag(data: Any) -> str:
    return next(iter(data)) if type(data) is dict and len(data) == 1 else ""


def _number(data: Any) -> int:
    number = data["#"]
    if type(number) is not int or number < 0:
        raise codec.CodecError("a node's number")
    return number


def _listed(data: Any) -> list[Any]:
    if type(data) is not list:
        raise codec.CodecError("no list of nodes")
    return data


def _pair(data: Any) -> list[Any]:
    if type(data) is not list or len(data) != 2:
        raise codec.CodecError("no pair")
    return data


def _mapping(data: Any) -> dict[str, Any]:
    if type(data) is not dict:
        raise codec.CodecError("no mapping")
    return data

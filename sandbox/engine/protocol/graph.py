"""Encoding of containers as a flat list of numbered nodes, which keeps cycles, shared parts and long chains.

A node is the codec's encoding of a container, in which other containers are {"#": index}. Containers are exact lists,
dicts, sets, tuples and frozensets, and instances of the classes that both processes define. Other values that can
change, such as a deque, are nodes with the codec's encoding of all their items.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import TypeVar, cast

from . import codec
from .operations import RESUMES
from .values import Classes, attributes_of, blank, fill

T = TypeVar("T")
_CHANGING = (list, dict, set)
_CONTAINERS = frozenset({list, dict, set, tuple, frozenset})
_ATOMIC: dict[type, Callable[..., object]] = {  # types encoded as one node each, and how an object takes a new value
    bytearray: lambda old, new: old.__setitem__(slice(None), new),
    deque: lambda old, new: (old.clear(), old.extend(new)),
    Counter: lambda old, new: (old.clear(), old.update(new)),
    OrderedDict: lambda old, new: (old.clear(), old.update(new)),
    defaultdict: lambda old, new: (old.clear(), old.update(new)),
    SimpleNamespace: lambda old, new: (old.__dict__.clear(), old.__dict__.update(new.__dict__)),
}
_NODES = _CONTAINERS | _ATOMIC.keys()
_SCALARS = frozenset({type(None), bool, int, float, str, bytes, complex})
_JSON = frozenset({type(None), bool, str})
_SAFE_INT = 1 << 63
_NESTED = 40  # levels that are encoded as nested JSON


class Flattener:
    """Numbers every container that it reaches; those in `known` keep their numbers.

    closed  give no further numbers: encode other containers in place
    """

    def __init__(
        self, export: codec.Export, classes: Classes, known: Sequence[object] = (), closed: bool = False
    ) -> None:
        self._export, self._classes, self._closed = export, classes, closed
        self.objects: list[object] = list(known)
        self._numbers = {id(value): i for i, value in enumerate(self.objects)}

    def child(self, value: object) -> object:
        """Return the encoding of a value inside a node, or of a root."""
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

    def node(self, value: object) -> object:
        """Return the encoding of one container."""
        child = self.child
        if type(value) is list:
            return list(value) if _is_json(value) else [child(item) for item in value]
        if type(value) is dict:
            return {"d": [[child(key), child(item)] for key, item in value.items()]}
        if type(value) is tuple:
            return {"t": [child(item) for item in value]}
        if type(value) is set:
            return {"s": [child(item) for item in value]}
        if type(value) is frozenset:
            return {"f": [child(item) for item in value]}
        found = attributes_of(value, self._classes)
        if found is None:
            return codec.encode(value, self._export)
        name, attributes = found
        return {"v": [name, {key: child(item) for key, item in attributes.items()}]}

    def nodes(self, start: int = 0) -> list[object]:
        """Return all nodes from a number on, including those that they lead to."""
        encoded: list[object] = []
        while start + len(encoded) < len(self.objects):
            encoded.append(self.node(self.objects[start + len(encoded)]))
        return encoded


def _is_json(items: list[object]) -> bool:
    """Return whether every item of a list is encoded as itself."""
    kinds = set(map(type, items))
    if kinds == {int}:
        numbers = cast("list[int]", items)
        return -_SAFE_INT <= min(numbers) and max(numbers) < _SAFE_INT
    return kinds <= _JSON


def is_simple(value: object, classes: Classes, known: frozenset[int] = frozenset()) -> bool:
    """Return whether nested JSON describes a value: no cycles, shared parts or instances, and not too deep."""
    if type(value) in _SCALARS:
        return True
    seen = set(known)
    level = [value]
    for _ in range(_NESTED):
        below: list[object] = []
        for item in level:
            kind = type(item)
            if isinstance(item, list | dict | set | tuple | frozenset) and kind in _CONTAINERS:
                if kind in _CHANGING or item:
                    if id(item) in seen:
                        return False
                    seen.add(id(item))
                if isinstance(item, dict):
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


SMALL = 4096


def keeps_arguments(specials: Collection[str], nodes: list[object]) -> bool:
    """Return whether an object that a call returned may change the arguments of the call later on.

    The items of an iterator are requested one by one, so only arguments that are small are compared each time.

    specials  the special methods of the object
    nodes     the encoded arguments
    """
    if not nodes or RESUMES.isdisjoint(specials):
        return False
    is_iterator = "next" in specials or "anext" in specials
    return not is_iterator or are_small(nodes)


def are_small(nodes: list[object]) -> bool:
    """Return whether nodes may be compared at each item of an iterator."""
    return len(codec.dumps(nodes)) <= SMALL


class Builder:
    """Builds the objects that nodes describe.

    known  objects that exist already, by number
    part   restores values inside an instance of a shared class
    """

    def __init__(
        self,
        restore: codec.Restore,
        classes: Classes,
        known: Sequence[object] = (),
        part: codec.Restore | None = None,
    ) -> None:
        self._restore, self._classes, self._part = restore, classes, part or restore
        self.objects: list[object] = list(known)

    def add(self, nodes: object) -> None:
        """Build further nodes. Raises CodecError for nodes of the wrong shape."""
        start = len(self.objects)
        items = codec.of_type(list, nodes)
        self.objects += [self._empty(node) for node in items]
        for i in range(len(items)):
            if self.objects[start + i] is _PENDING:
                self._freeze(start + i, start, items)
        # Sets and dicts last: their members are hashed, which may look into the members.
        for last in (False, True):
            for i, node in enumerate(items):
                if (_tag(node) in ("d", "s")) is last and _tag(node) not in ("x", "y"):
                    self.fill(start + i, node)

    def _freeze(self, number: int, start: int, nodes: list[object]) -> None:
        """Build a tuple or frozenset, those inside it first."""
        pending = [number]
        opened: set[int] = set()
        while pending:
            at = pending[-1]
            if self.objects[at] is not _PENDING:
                pending.pop()
                continue
            tag, tagged = _tagged(nodes[at - start])
            content = codec.of_type(list, tagged)
            inner = [_number(item) for item in content if _tag(item) == "#"]
            waiting = [i for i in inner if i < len(self.objects) and self.objects[i] is _PENDING]
            if not waiting:
                pending.pop()
                self.objects[at] = _unless_hashes_collide(
                    tuple if tag == "t" else frozenset, [self.child(i) for i in content]
                )
            elif at in opened:
                raise codec.CodecError("a tuple that holds itself")
            else:
                opened.add(at)
                pending.extend(waiting)

    def fill(self, number: int, node: object) -> None:
        """Replace the content of an object that can change."""
        target = self.objects[number]
        tag, content = _tagged(node)
        if tag == "o":  # an object that could not be encoded keeps its content
            return
        if type(node) is list and type(target) is list:
            kinds = set(map(type, node))
            target[:] = [self.child(item) for item in node] if dict in kinds or list in kinds else node
        elif tag == "s" and type(target) is set:
            items = _unless_hashes_collide(set, [self.child(item) for item in codec.of_type(list, content)])
            target.clear()
            target.update([items] if isinstance(items, codec.Opaque) else items)
        elif tag == "d" and type(target) is dict:
            pairs = [(self.child(key), self.child(item)) for key, item in map(_pair, codec.of_type(list, content))]
            collides = codec.have_colliding_hashes([key for key, _ in pairs])
            target.clear()
            target.update([("", codec.Opaque("mapping of keys with one hash"))] if collides else pairs)
        elif tag == "v":
            _, attributes = _pair(content)
            inside = {name: self.child(item, self._part) for name, item in codec.of_type(dict, attributes).items()}
            fill(target, inside, self._classes)
        elif tag in ("x", "y"):
            if type(target) in _ATOMIC:
                _ATOMIC[type(target)](target, self._decoded_as(type(target), node))
        elif tag not in ("t", "f"):
            raise codec.CodecError("a node of another type than its object")

    def _empty(self, node: object) -> object:
        """Return the empty object of a node."""
        tag, content = _tagged(node)
        if type(node) is list:
            return []
        if tag in _BLANK:
            return _BLANK[tag]()
        if tag == "v":
            name, attributes = _pair(content)
            return blank(codec.of_type(str, name), codec.of_type(dict, attributes), self._classes)
        if tag in ("x", "y"):
            return codec.decode(node, self._restore)
        raise codec.CodecError("no node")

    def _decoded_as(self, kind: type, node: object) -> object:
        value = codec.decode(node, self._restore)
        if type(value) is not kind:
            raise codec.CodecError("a node of another type than its object")
        return value

    def child(self, data: object, restore: codec.Restore | None = None) -> object:
        """Return the value of an encoding inside a node, or of a root."""
        if _tag(data) == "#":
            number = _number(data)
            if number >= len(self.objects):
                raise codec.CodecError("a node that is not there")
            return self.objects[number]
        return codec.decode(data, restore or self._restore)


class _Pending:
    """Placeholder for a tuple or frozenset that is not built yet."""


_PENDING = _Pending()
_BLANK: dict[str, Callable[[], object]] = {"d": dict, "s": set, "t": lambda: _PENDING, "f": lambda: _PENDING}


def _unless_hashes_collide(kind: Callable[[list[object]], T], items: list[object]) -> T | codec.Opaque:
    if kind is not tuple and codec.have_colliding_hashes(items):
        return codec.Opaque("set of members with one hash")
    return kind(items)


def _tagged(data: object) -> tuple[str, object]:
    """Return the tag of an encoding and its content; ("", None) for one without a tag."""
    if type(data) is not dict or len(data) != 1:
        return "", None
    ((tag, content),) = data.items()
    return tag, content


def _tag(data: object) -> str:
    return _tagged(data)[0]


def _number(data: object) -> int:
    number = _tagged(data)[1]
    if type(number) is not int or number < 0:
        raise codec.CodecError("a node's number")
    return number


def _pair(data: object) -> list[object]:
    pair = codec.of_type(list, data)
    if len(pair) != 2:
        raise codec.CodecError("no pair")
    return pair

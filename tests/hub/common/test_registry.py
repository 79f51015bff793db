"""The registry class: lazy imports, suggestions, double registration."""

import sys

import pytest

from hub.common.registry import Registry, UnknownName


def test_an_item_is_imported_when_it_is_first_used() -> None:
    sys.modules.pop("wave", None)
    registry: Registry[type] = Registry("reader", {"wave": "wave:Wave_read"})
    assert list(registry) == ["wave"] and "wave" in registry
    assert "wave" not in sys.modules
    assert registry["wave"].__name__ == "Wave_read"
    assert registry["wave"] is registry["wave"]


def test_create_makes_one_instance() -> None:
    registry: Registry[object] = Registry("thing", {"counter": "collections:Counter"}, create=True)
    assert registry["counter"] is registry["counter"]


def test_an_unknown_name_suggests_the_closest_or_lists_all() -> None:
    registry: Registry[int] = Registry("scorer")
    registry.register("choice", 1)
    registry.register("number", 2)
    with pytest.raises(UnknownName, match=r"^Unknown scorer 'chioce'; did you mean 'choice'\?$"):
        registry.require("chioce")
    with pytest.raises(UnknownName, match=r"^Unknown scorer 'xyz'; known are choice, number\.$"):
        registry.require("xyz")


def test_a_name_can_be_registered_once() -> None:
    registry: Registry[int] = Registry("scorer")
    registry.register("choice", 1)
    with pytest.raises(ValueError, match="registered twice"):
        registry.register("choice", 2)

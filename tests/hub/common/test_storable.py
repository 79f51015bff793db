"""Text that databases can store."""

from hub.common.storable import storable, unstorable_character


def test_nul_and_lone_surrogates_are_replaced_at_any_depth() -> None:
    assert storable({"a\x00": ["b\ud800", 1, None]}) == {"a\ufffd": ["b\ufffd", 1, None]}


def test_storable_values_are_returned_unchanged() -> None:
    value = {"text": r"\u0000", "emoji": "\U0001f600", "list": [1.5, None]}
    assert storable(value) is value


def test_first_unstorable_character_is_found() -> None:
    assert unstorable_character("a\udfff\x00") == "\udfff"
    assert unstorable_character([{"\x00": 1}]) == "\x00"
    assert unstorable_character([{r"\u0000": 1}]) == ""

"""Numbers with nouns, and suggestions for unknown names."""

from hub.common.wording import counted, suggest, unknown_name


def test_counted_uses_singular_and_thousands_separators() -> None:
    assert [counted(n, "case") for n in (0, 1, 2, 1200)] == ["0 cases", "1 case", "2 cases", "1,200 cases"]
    assert counted(2, "entry", "entries") == "2 entries"


def test_suggest_shortens_long_lists_and_is_empty_without_names() -> None:
    assert suggest("zzz", [f"name{i:02}" for i in range(25)]).endswith("name19 and 5 more")
    assert suggest("NAME", ["name", "other"]) == "did you mean 'name'?"
    assert suggest("zzz", []) == ""


def test_unknown_name_is_a_sentence_with_or_without_a_suggestion() -> None:
    assert unknown_name("model", "smal", ["small"]) == "There is no model 'smal'; did you mean 'small'?"
    assert unknown_name("model", "zzz", ["small"]) == "There is no model 'zzz'; known are small."
    assert unknown_name("run", "7", []) == "There is no run '7'; none is stored yet."

"""Word differences of two texts as HTML."""

import pytest

from hub.web.reading.word_diff import MAX_COMPARED, find_difference, word_diff


def test_words_that_only_one_text_has_are_marked() -> None:
    diff = word_diff("The sum is 4, I think.", "The sum is 5, I think.")
    assert (diff.left, diff.right) == ("The sum is <del>4</del>, I think.", "The sum is <ins>5</ins>, I think.")
    assert (diff.unit, diff.cut) == ("words", False)


def test_word_before_another_line_end_is_not_marked() -> None:
    diff = word_diff("import re\n\n\ndef f(): pass", "import re\nimport os\n\ndef f(): pass")
    assert diff.left == "import re<del>\n\n\n</del>def f(): pass"
    assert diff.right == "import re<ins>\nimport os\n\n</ins>def f(): pass"


@pytest.mark.parametrize(
    ("left", "right"), [("", "<b>x</b>"), ("<script>", "<b>"), ("<i> same & </i>", "<i> same & </i>"), ("a <u> b", "a")]
)
def test_texts_are_escaped(left: str, right: str) -> None:
    html = word_diff(left, right)
    for tag in ("<b", "<i>", "<script", "<u>"):
        assert tag not in html.left + html.right


def test_long_texts_are_compared_by_lines_and_the_longest_not_at_all() -> None:
    left = "".join(f"{i} words in this line\n" for i in range(1000))
    right = "".join(f"{i + i % 2} words in this line\n" for i in range(1000))
    assert word_diff(left, right).unit == "lines"
    lines = ("\n".join(f"{i}" for i in range(start, start + 5000)) for start in (0, 10_000))
    assert word_diff(*lines).unit == "texts"


def test_only_the_start_of_huge_texts_is_compared() -> None:
    diff = word_diff("x" * (MAX_COMPARED + 5), "y")
    assert diff.cut
    assert len(diff.left) < MAX_COMPARED + 100


def test_positions_of_a_difference_count_code_points() -> None:
    left, right = "Ça 😀 is four", "Ça 😀 is five!"
    difference = find_difference(left, right)
    assert [left[start:end] for start, end in difference.left] == ["four"]
    assert [right[start:end] for start, end in difference.right] == ["five!"]

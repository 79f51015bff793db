"""YAML as people mean it: words stay words, mistakes have lines, and hostile text is refused."""

import pytest

from hub.common.documents.yaml_source import YamlError, dotted, parse, undotted


def test_words_dates_and_times_stay_text_while_numbers_and_truth_values_do_not():
    text = "a: {on: id, off: no}\nb: [1, 2.5, 1e3, true, ~, 1:30, 2024-01-01, 010, 'x', 1.0.0]\n"
    assert parse(text).value == {
        "a": {"on": "id", "off": "no"},
        "b": [1, 2.5, 1000.0, True, None, "1:30", "2024-01-01", "010", "x", "1.0.0"],
    }


def test_every_key_path_has_its_line_and_unknown_ones_that_of_their_parent():
    document = parse("a: 1\nb:\n  - x: 1\n    y: 2\n  - z\n")
    assert document.line(("b", 0, "y")) == 4
    assert document.line(("b", 1)) == 5
    assert document.line(("b", 0, "missing")) == 3
    assert document.line(("missing",)) == 1


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "given twice"),
        ("a:\n  b: 1\n  b: 2\n", 3, "given twice"),
        ("a: [1\nb: 2\n", 1, "this [ is not closed"),
        ("a: {b: ${X}}\n", 1, "put `${...}` and text with commas in quotes"),
        ("a: 'x\nb: 1\n", 1, "the quote that opens here is not closed"),
        ("a: b: c\n", 1, "put text with a `: ` in it in quotes"),
        ("a:\n\tb: 1\n", 2, "a tab; YAML is indented with spaces"),
        ("a: @x\n", 1, "text cannot start with @"),
        ("a:\n  - b: 1\n   c: 2\n", 3, "another depth"),
        ("a: {{ x }}\n", 1, "any `{{ ... }}`, in quotes"),
        ('a: "\\d"\n', 1, r"`\d` means nothing in double quotes; use single quotes, or write `\\d`"),
        ("a: - b\n", 1, "a list begins on a line of its own"),
        ("a: *b\n", 1, "`*b` refers to nothing"),
        ("1: 2\n", 1, "not text"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "`!!python/object/apply:os.system` is a tag; leave it out"),
        ("a: 1\nb: !!python/name:os x\n", 2, "is a tag"),
        ("a: !important\n", 1, "`!important` is a tag"),
        ("a: !<x y\n", 1, "text cannot start with `!`"),
        ("a: 1\nb: !!int many\n", 2, "`!!int` is a tag"),
        ("a: 1\nb: !!timestamp soon\n", 2, "`!!timestamp` is a tag"),
        ("a: !!set {b, c}\n", 1, "`!!set` is a tag"),
        ("a: |3 b\n", 1, "the text begins on the next line"),
        ("a: > b\n", 1, "the text begins on the next line"),
        ("%YAML 3.0\n---\na: 1\n", 1, "starts with `%`"),
        ("a: 1\n<<: 3\n", 2, "`<<` takes a mapping"),
        ("a: 1\nb: {c: [\n", 3, "the file ends before a [ or { is closed"),
        ("a: [? , b]\nb: ? c\n", 2, "put text that starts with `? ` in quotes"),
        ('a: "\\xq"\n', 1, "lacks digits"),
        ('a: 1\nb: "x\\0y"\n', 2, "the character U+0000, which no database takes"),
        ('a: 1\n"\\ud800": 2\n', 2, "the character U+D800, which no database takes"),
        ("a: &a [*a]\n", 1, "values or"),
        ("a: 1\nb: \x00", 2, "the character U+0000"),
        ("a: 1\n---\nb: 1\n", 2, "a second document begins here"),
        ("[" * 3000, 1, "more than 60 levels"),
        ("a:\n" + "- x\n" * 60_000, 50_000, "more than 50,000 values"),
    ],
)
def test_what_is_wrong_has_a_line_and_a_sentence(text, line, sentence):
    with pytest.raises(YamlError) as caught:
        parse(text)
    assert caught.value.line == line
    assert sentence in caught.value.message


def test_aliases_that_unfold_into_gigabytes_are_refused_at_once():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(YamlError, match="aliases expanded"):
        parse("\n".join(lines))


def test_key_paths_are_written_and_read_back():
    path = ("scoring", "rules", 0, "type")
    assert dotted(path) == "scoring.rules[0].type"
    assert undotted(dotted(path)) == path

"""Parsing YAML: types, line numbers, errors, and limits against hostile text."""

import json

import pytest

from hub.common.documents.yaml_source import YamlError, dotted, parse, undotted


def test_dates_times_and_yaml_1_1_booleans_stay_text():
    text = "a: {on: id, off: no}\nb: [1, 2.5, 1e3, true, ~, 1:30, 2024-01-01, 010, 'x', 1.0.0]\n"
    assert parse(text).value == {
        "a": {"on": "id", "off": "no"},
        "b": [1, 2.5, 1000.0, True, None, "1:30", "2024-01-01", "010", "x", "1.0.0"],
    }


def test_json_with_escaped_pairs_of_surrogates_is_yaml():
    value = {"nom \U0001f600": ["\U0001f600\U0001f601", "é"]}
    assert parse(json.dumps(value)).value == value


def test_line_of_unknown_path_is_that_of_its_parent():
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
        ("a: [1\nb: 2\n", 2, "while parsing a flow sequence that starts on line 1: expected ',' or ']'"),
        ("a: {b: ${X}}\n", 1, "got '{'; put a text that contains `{`, such as `${NAME}`, in quotes"),
        ("a: [${X}]\n", 1, "got '{'; put a text that contains `{`, such as `${NAME}`, in quotes"),
        ("a: 'x\nb: 1\n", 3, "while scanning a quoted scalar that starts on line 1: found unexpected end of stream"),
        ("a: b: c\n", 1, "mapping values are not allowed here; put a text that contains `: ` in quotes"),
        ("a:\n\tb: 1\n", 2, "found character '\\t' that cannot start any token; indent with spaces"),
        ("a: @x\n", 1, "found character '@' that cannot start any token"),
        ("a:\n  - b: 1\n   c: 2\n", 3, "<block mapping start>'; check the indentation"),
        ("a: {{ x }}\n", 1, "any `{{ ... }}`, in quotes"),
        ('a: "\\d"\n', 1, "found unknown escape character 'd'; write a backslash as `\\\\`, or use single"),
        ("a: - b\n", 1, "sequence entries are not allowed here"),
        ("a: *b\n", 1, "found undefined alias 'b'"),
        ("1: 2\n", 1, "a key must be text"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "the tag `!!python/object/apply:os.system` is not supported"),
        ("a: 1\nb: !!python/name:os x\n", 2, "is not supported"),
        ("a: !important\n", 1, "the tag `!important` is not supported"),
        ("a: !<x y\n", 1, "while parsing a tag"),
        ("a: 1\nb: !!int many\n", 2, "the tag `!!int` is not supported"),
        ("a: 1\nb: !!timestamp soon\n", 2, "the tag `!!timestamp` is not supported"),
        ("a: !!set {b, c}\n", 1, "the tag `!!set` is not supported"),
        ("a: |3 b\n", 1, "expected a comment or a line break"),
        ("a: > b\n", 1, "expected a comment or a line break"),
        ("%YAML 3.0\n---\na: 1\n", 1, "found incompatible YAML document"),
        ("a: 1\n<<: 3\n", 2, "expected a mapping or list of mappings for merging"),
        ("a: 1\nb: {c: [\n", 3, "expected the node content, but found '<stream end>'"),
        ("a: [? , b]\nb: ? c\n", 2, "mapping keys are not allowed here"),
        ('a: "\\xq"\n', 1, "expected escape sequence of 2 hexadecimal numbers"),
        ('a: 1\nb: "x\\0y"\n', 2, "the character U+0000 cannot be stored"),
        ('a: 1\n"\\ud800": 2\n', 2, "the character U+D800 cannot be stored"),
        ('a: "\\ud83d\\ude00 \\ud83d"\n', 1, "the character U+D83D cannot be stored"),
        ("a: 1\nb: 1e999\n", 2, "the number 1e999 is too large"),
        ("a: 1\nb: [-1.0e400]\n", 2, "the number -1.0e400 is too large"),
        (f"a: 1\nb: {'9' * 5000}\n", 2, "is too large"),
        (f"a: 1\nb: 0x{'f' * 5000}\n", 2, "is too large"),
        ("a: &a [*a]\n", 1, "values or"),
        ("a: 1\nb: \x00", 2, "the character U+0000"),
        ("a: 1\n---\nb: 1\n", 2, "but found another document"),
        ("[" * 3000, 1, "more than 60 levels"),
        ("a:\n" + "- x\n" * 60_000, 50_000, "more than 50,000 values"),
    ],
)
def test_errors_have_a_line_and_the_message_of_pyyaml(text, line, sentence):
    with pytest.raises(YamlError) as caught:
        parse(text)
    assert caught.value.line == line
    assert sentence in caught.value.message


def test_nested_aliases_that_expand_to_gigabytes_are_rejected():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(YamlError, match="aliases expanded"):
        parse("\n".join(lines))


@pytest.mark.timeout(40)
@pytest.mark.parametrize("merged", ["<<: *a{0}, <<: *a{0}", "<<: [*a{0}, *a{0}]"])
def test_nested_merges_that_expand_to_gigabytes_are_rejected(merged):
    lines = ["a0: &a0 {x: 1}", *(f"a{i}: &a{i} {{{merged.format(i - 1)}}}" for i in range(1, 25))]
    with pytest.raises(YamlError, match=r"aliases expanded|given twice"):
        parse("\n".join(lines))


def test_undotted_is_the_inverse_of_dotted():
    path = ("scoring", "rules", 0, "type")
    assert dotted(path) == "scoring.rules[0].type"
    assert undotted(dotted(path)) == path

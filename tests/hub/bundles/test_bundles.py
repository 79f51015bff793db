"""Validation: all problems of a bundle at once, each with its file, line or key path and a remedy."""

import json
import random

import pytest

from hub.bundles.loader import open_bundle
from hub.bundles.reference_answers import ReferenceAnswers
from hub.bundles.validation import validate
from hub.common.documents.yaml_source import MAX_BYTES
from hub.common.problems import Problem
from hub.manifest.problems import MAX_LISTED, ProblemList
from hub.protocols.cases import CaseData
from tests.hub.bundle_files import ROWS, lines, write_bundle


def problem_lines(folder):
    return [str(problem) for problem in validate(folder).problems]


def only_problem(folder):
    (problem,) = problem_lines(folder)
    return problem


def test_valid_bundle(tmp_path):
    report = validate(write_bundle(tmp_path))
    assert (report.valid, report.slug, report.version, report.cases) == (True, "capitals", "1.0.0", 3)


def test_all_problems_are_reported_with_their_location(tmp_path):
    text = """\
spec: 1
slug: Capitals!
version: 1.0
title: Capitals
summary: Name capitals.
colour: red
category: knowledge
dataset:
  path: cases.jsonl
  fields: {input: "What is the capital of {{ contry }}?", target: captial, id: "{{ x "}
harness: {type: singel}
scoring:
  rules:
    - {type: exact_match, wat: 1}
    - {type: exact_match, weight: 0}
gold: gold.jsonl
wrong: {contnt: "x"}
"""
    files = {
        "environment.yaml": text,
        "cases.jsonl": '{"country": "France", "capital": "Paris"}\n{"country":\n',
        "gold.jsonl": '{"case": "1", "content": "Paris"}\n{"country": "Spain"}\n',
    }
    problems = problem_lines(write_bundle(tmp_path, files=files))
    expected = [
        ("environment.yaml:2 (slug)", "lower-case letters"),
        ("environment.yaml:3 (version)", "such as 1.0.0."),
        ("environment.yaml:6 (colour)", "unknown key"),
        ("environment.yaml:7 (category)", "did you mean 'domain-knowledge'?"),
        ("environment.yaml:10 (dataset.fields.id)", "does not compile"),
        ("environment.yaml:11 (harness.type)", "known are"),
        ("environment.yaml:15 (scoring.rules[1].weight)", "above 0"),
        ("environment.yaml:17 (wrong.contnt)", "Did you mean `content`?"),
        ("cases.jsonl:1 (dataset.fields.input)", "'contry' is undefined"),
        ("cases.jsonl:1 (dataset.fields.target)", "its columns are capital, country"),
        ("cases.jsonl:2", "not JSON"),
        ("gold.jsonl:2", "unknown key country"),
    ]
    for place, sentence in expected:
        assert any(problem.startswith(place) and sentence in problem for problem in problems), (place, problems)


def test_unknown_key_of_a_rule_is_rejected_with_the_known_keys(tmp_path):
    folder = write_bundle(tmp_path, scoring={"rules": [{"type": "exact_match", "tarrget": "x"}]})
    assert "scoring.rules[0].tarrget" in only_problem(folder)
    assert "target" in only_problem(folder)


def test_template_error_is_reported_with_case_and_key(tmp_path):
    folder = write_bundle(tmp_path, harness={"type": "single_turn", "prompt": "{{ capitol }}"})
    assert problem_lines(folder)[0].startswith("cases.jsonl:1 (harness): ")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"gold": "golden.jsonl"}, "environment.yaml:25 (gold)"),
        ({"dataset": {"path": "case.jsonl"}}, "environment.yaml:8 (dataset.path)"),
        ({"recordings": "judge.jsonl"}, "(recordings)"),
    ],
)
def test_missing_file_is_reported_with_the_nearest_name(tmp_path, changes, place):
    problem = only_problem(write_bundle(tmp_path, files={"gold.jsonl": ""}, **changes))
    assert place.rpartition(" ")[2] in problem
    assert "the bundle has no file" in problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"harness": {"type": "tools", "tools": "tools.py"}},
            "(harness): the bundle has no file 'tools.py'. Did you mean 'tool.py'?",
        ),
        (
            {"scoring": {"rules": [{"type": "state", "path": "check.txt"}]}},
            "(scoring.rules[0]): the bundle has no file 'check.txt'. Did you mean 'checks.txt'?",
        ),
        (
            {"scoring": {"rules": [{"type": "state", "path": "elsewhere"}]}},
            "(scoring.rules[0]): the bundle has no file 'elsewhere'.",
        ),
    ],
)
def test_missing_file_of_the_harness_or_a_rule_is_reported_with_the_nearest_name(tmp_path, changes, problem):
    files = {"tool.py": "", "checks.txt": ""}
    found = only_problem(write_bundle(tmp_path, files=files, **changes))
    assert found.startswith("environment.yaml:")
    assert found.endswith(problem)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"scoring": {"rules": [{"type": "exact_match", "ignore_case": "maybe"}]}}, "scoring.rules[0].ignore_case"),
        ({"harness": {"type": "single_turn", "system": 3}}, "harness.system"),
    ],
)
def test_fixed_option_of_a_wrong_type_is_reported_once_at_its_line_of_the_manifest(tmp_path, changes, place):
    folder = write_bundle(tmp_path, **changes)
    text = (folder / "environment.yaml").read_text().splitlines()
    line = next(number for number, content in enumerate(text, 1) if place.rpartition(".")[2] in content)
    assert only_problem(folder).startswith(f"environment.yaml:{line} ({place}): must be a valid ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ids": ["punctuation:no_coma"]}, "unknown instruction 'punctuation:no_coma'; did you mean"),
        ({"ids": ["punctuation:no_comma"], "kwargs": [{}, {}]}, "1 ids have 2 kwargs; give one mapping for each id"),
    ],
)
def test_fixed_options_that_contradict_each_other_are_reported_once(tmp_path, options, message):
    folder = write_bundle(tmp_path, scoring={"rules": [{"type": "instructions", **options}]})
    text = (folder / "environment.yaml").read_text().splitlines()
    line = next(number for number, content in enumerate(text, 1) if "type: instructions" in content)
    assert only_problem(folder).startswith(f"environment.yaml:{line} (scoring.rules[0]): {message}")


def test_options_that_contradict_each_other_in_some_rows_are_reported_there(tmp_path):
    rule = {"type": "instructions", "ids": "{{ ids }}"}
    rows = [{**ROWS[0], "ids": ["punctuation:no_comma"]}, {**ROWS[1], "ids": ["punctuation:no_coma"]}]
    files = {"cases.jsonl": lines(rows), "wrong.jsonl": lines([{"case": "France", "content": "a, b"}])}
    folder = write_bundle(tmp_path, scoring={"rules": [rule]}, files=files)
    assert only_problem(folder).startswith("cases.jsonl:2 (scoring.rules[0]): unknown instruction")


def test_rendered_option_of_a_wrong_type_is_reported_at_its_row(tmp_path):
    folder = write_bundle(tmp_path, scoring={"rules": [{"type": "exact_match", "ignore_case": "{{ capital }}"}]})
    assert [line.partition(": ")[0] for line in problem_lines(folder)] == [
        f"cases.jsonl:{number} (scoring.rules[0].ignore_case)" for number in (1, 2, 3)
    ]


def test_duplicate_case_id_is_reported_with_both_lines(tmp_path):
    rows = [{"country": "France", "capital": "Paris"}] * 2
    problem = only_problem(write_bundle(tmp_path, files={"cases.jsonl": lines(rows)}, wrong=None))
    assert problem.startswith("cases.jsonl:2 (dataset.fields.id)")
    assert "line 1" in problem


def test_id_that_is_null_is_rejected(tmp_path):
    rows = [{"country": "France", "capital": "Paris"}, {"country": None, "capital": "Lima"}]
    found = problem_lines(write_bundle(tmp_path, files={"cases.jsonl": lines(rows)}))
    assert found[0].startswith("cases.jsonl:2 (dataset.fields.id): the id is null. Give every row an id")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"id": "a"}, {}], "the row has no id, and earlier rows have one. Give every row an id"),
        ([{}, {"id": "a"}], "earlier rows have no id. Give every row an id"),
    ],
)
def test_ids_of_only_some_rows_are_rejected(tmp_path, rows, expected):
    cases = [{**row, "country": "France", "capital": "Paris"} for row in rows]
    dataset = {"path": "cases.jsonl", "fields": {"input": "country", "target": "capital"}}
    folder = write_bundle(tmp_path, files={"cases.jsonl": lines(cases)}, dataset=dataset, wrong=None)
    assert only_problem(folder).startswith(f"cases.jsonl:2 (dataset.fields.id): {expected}")


def test_answer_to_an_unknown_case_is_rejected(tmp_path):
    problem = only_problem(write_bundle(tmp_path, files={"wrong.jsonl": lines([{"case": "Atlantis", "content": "x"}])}))
    assert problem.startswith("wrong.jsonl:1: an answer names the case 'Atlantis'")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"case": "Atlantis"}, "said.jsonl:2: a recording names the case 'Atlantis', which does not exist."),
        ({}, "said.jsonl:2: `case` is missing: the id of the case to which the recording belongs."),
    ],
)
def test_recording_of_an_unknown_case_is_rejected(tmp_path, row, problem):
    rows = [{"purpose": "user", "case": "France", "content": "x"}, {"purpose": "user", "content": "x", **row}]
    folder = write_bundle(tmp_path, recordings="said.jsonl", files={"said.jsonl": lines([*rows, rows[1]])})
    assert only_problem(folder) == problem


def test_two_replies_to_one_call_are_rejected_unless_they_are_equal(tmp_path):
    row = {"purpose": "user", "case": "France", "content": "Go on."}
    rows = [row, {**row, "turn": 1}, row, {**row, "turn": 1, "content": "Stop."}]
    folder = write_bundle(tmp_path, recordings="said.jsonl", files={"said.jsonl": lines(rows)})
    assert only_problem(folder) == "said.jsonl:4: line 2 has another reply to the same call. Keep one of the two lines."


def test_file_of_another_name_is_not_suggested_because_of_its_extension(tmp_path):
    folder = write_bundle(tmp_path, gold="gold.jsonl", files={"stock.json": "{}", "old-wrong.jsonl": ""})
    assert only_problem(folder).endswith(
        "(gold): the bundle has no file 'gold.jsonl'. Add the file, or remove the key."
    )


@pytest.mark.parametrize("similar", ["golds.jsonl", "gold.json", "Gold.jsonl", "answers/gold.jsonl", "glod.jsonl"])
def test_file_of_a_similar_name_is_suggested(tmp_path, similar):
    folder = write_bundle(tmp_path, gold="gold.jsonl", files={similar: ""})
    assert only_problem(folder).endswith(f"has no file 'gold.jsonl'. Did you mean {similar!r}?")


def test_answers_are_not_reported_as_unknown_if_their_case_cannot_be_read(tmp_path):
    rows = [{"country": "France", "capital": "Paris"}, {"country": "Peru"}]
    answers = [{"case": "Peru", "content": "Cusco"}]
    problem = only_problem(write_bundle(tmp_path, files={"cases.jsonl": lines(rows), "wrong.jsonl": lines(answers)}))
    assert problem.startswith("cases.jsonl:2")


def test_answer_can_name_a_script_of_the_bundle(tmp_path):
    answer = {"case": "France", "script": "wrong/a.sh"}
    files = {"wrong.jsonl": lines([answer]), "wrong/a.sh": "echo Lyon\n"}
    with (
        open_bundle(write_bundle(tmp_path / "valid", files=files)) as bundle,
        ReferenceAnswers("wrong.jsonl", "wrong", bundle.file) as answers,
    ):
        (found,) = answers.of(CaseData(id="France", input=""))
    assert json.loads(found.messages[0]["tool_calls"][0]["function"]["arguments"]) == {"command": "echo Lyon\n"}
    files["wrong.jsonl"] = lines([{**answer, "script": "wrong/b.sh"}])
    assert "wrong/b.sh" in only_problem(write_bundle(tmp_path / "missing", files=files))
    windows = {**files, "wrong.jsonl": lines([answer]), "wrong/a.sh": "echo Lyon\r\n"}
    assert "has line ends of Windows (CRLF)" in only_problem(write_bundle(tmp_path / "windows", files=windows))
    files["wrong.jsonl"] = lines([{**answer, "content": "Lyon"}])
    assert "give either `content`" in only_problem(write_bundle(tmp_path / "both", files=files))


def test_same_mistake_on_many_rows_is_shown_a_few_times_and_counted(tmp_path):
    rows = [{"country": f"C{i}"} for i in range(1000)]
    problems = problem_lines(write_bundle(tmp_path, files={"cases.jsonl": lines(rows)}, wrong=None))
    assert len(problems) == 3
    assert "The same on 997 more lines." in problems[2]


def test_count_of_the_same_mistake_is_a_sentence_of_its_own():
    problems = ProblemList()
    problems.add(*[Problem(file="cases.jsonl", line=line, message="known are a, b") for line in (1, 2, 3, 4)])
    problems.add(*[Problem(file="wrong.jsonl", line=line, message="It is empty.") for line in range(5)])
    assert [problem.message for problem in problems.sorted()][2::3] == [
        "known are a, b. The same on 1 more line.",
        "It is empty. The same on 2 more lines.",
    ]


def test_name_of_a_file_and_of_a_folder_among_the_files_of_a_case_is_rejected(tmp_path):
    row = {"country": "France", "capital": "Paris", "files": {"src/a": "x", "src/a/b": "y", "src/ab": "z"}}
    problem = only_problem(write_bundle(tmp_path, files={"cases.jsonl": lines([row])}, wrong=None))
    assert problem.startswith("cases.jsonl:1")
    assert "'src/a' is the name of a file and the folder of 'src/a/b'; rename one of the two." in problem


def test_unknown_filter_of_a_template_is_named_in_one_line(tmp_path):
    dataset = {"path": "cases.jsonl", "fields": {"id": "country", "input": "{{ country | shout }}"}}
    problem = problem_lines(write_bundle(tmp_path, dataset=dataset, wrong=None))[0]
    assert problem.endswith("'{{ country | shout }}' does not compile: No filter named 'shout'; did you mean 'sort'?")


def test_mistakes_in_data_files_have_a_remedy_that_fits(tmp_path):
    array = b'[{"country": "France", "capital": "Paris"},\n{"country": "Peru", "capital": "Lima"}]\n'
    problem = problem_lines(write_bundle(tmp_path / "array", files={"cases.jsonl": array}, wrong=None))[0]
    assert "an array, or an object of several lines, belongs in a .json file" in problem
    files = {"cases.csv": b"country,capital\nFrance,Paris\nPeru\n"}
    dataset = {"path": "cases.csv", "fields": {"id": "country", "input": "country"}}
    problems = problem_lines(write_bundle(tmp_path / "short", dataset=dataset, files=files, wrong=None))
    assert "cases.csv:3: the row has 1 cell, the header 2. Write a comma for each empty cell, too." in problems


def test_empty_dataset_is_rejected(tmp_path):
    assert "no rows" in only_problem(write_bundle(tmp_path, files={"cases.jsonl": "\n"}, wrong=None))


def test_where_excludes_rows_and_keeps_line_numbers(tmp_path):
    dataset = {
        "path": "cases.jsonl",
        "where": "{{ capital != 'Paris' }}",
        "fields": {"input": "country", "target": "capital"},
    }
    report = validate(write_bundle(tmp_path, dataset=dataset, wrong=None))
    assert (report.valid, report.cases) == (True, 2)


def test_where_that_excludes_every_row_is_rejected(tmp_path):
    dataset = {"path": "cases.jsonl", "where": "{{ false }}", "fields": {"input": "country", "target": "capital"}}
    problem = only_problem(write_bundle(tmp_path, dataset=dataset, wrong=None))
    assert "(dataset.where): every row is left out" in problem


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"\xff\xfe", "not UTF-8"), (b"a\0b", "U+0000"), (b"x" * (MAX_BYTES + 1), "is longer than")],
)
def test_readme_that_cannot_be_stored_is_a_problem(tmp_path, content, sentence):
    problem = only_problem(write_bundle(tmp_path, files={"README.md": content}))
    assert problem.startswith("README.md")
    assert sentence in problem


@pytest.mark.parametrize("version", ["1.0.0-a..b", "1.0.0-01", "1.0.0-.", "1\u0662.0.0", "1.0.0-" + "a" * 59])
def test_versions_outside_semantic_versioning_or_too_long_to_store_are_rejected(tmp_path, version):
    assert "environment.yaml:3 (version)" in only_problem(write_bundle(tmp_path, version=version))


def test_slug_of_a_page_of_the_site_is_rejected(tmp_path):
    problem = only_problem(write_bundle(tmp_path, slug="upload"))
    assert problem.startswith("environment.yaml:2 (slug): 'upload' is the name of a page of the site")


@pytest.mark.parametrize("version", ["1.10.0", "0.0.0-0", "1.0.0-beta.11", "1.0.0-rc-1.x7", "1.0.0-" + "a" * 58])
def test_versions_of_semantic_versioning_are_valid(tmp_path, version):
    assert validate(write_bundle(tmp_path, version=version)).valid


@pytest.mark.parametrize("key", ["case", "model", "turn"])
def test_recording_with_a_list_as_a_key_is_rejected(tmp_path, key):
    row = {"purpose": "user", "case": "France", "content": "Go on.", key: []}
    folder = write_bundle(tmp_path, recordings="said.jsonl", files={"said.jsonl": lines([row])})
    assert f"said.jsonl:1: `{key}` of a recording" in only_problem(folder)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"modle": "gold"}, "unknown key modle; did you mean 'model'?"),
        ({"model": "golden"}, '`model` of a recording is the kind of answer: gold, wrong, empty (found "golden").'),
        ({"attempt": 0}, "`attempt` of a recording must be a whole number from 1 (found 0)."),
        ({"attempt": "1"}, '`attempt` of a recording must be a whole number from 1 (found "1").'),
        ({"turn": "2"}, '`turn` of a recording must be a whole number from 0 (found "2").'),
        ({"purpose": "rubric"}, "a recording of a judge names the `rule` that asks it."),
    ],
)
def test_recording_that_no_call_could_be_given_is_rejected(tmp_path, keys, problem):
    row = {"purpose": "user", "case": "France", "content": "Go on.", **keys}
    folder = write_bundle(tmp_path, recordings="said.jsonl", files={"said.jsonl": lines([row])})
    assert only_problem(folder) == f"said.jsonl:1: {problem}"


def test_answers_and_rows_to_join_may_name_decimal_ids(tmp_path):
    files = {
        "cases.jsonl": lines([{"id": 1.5, "input": "?"}]),
        "targets.jsonl": lines([{"id": 1.5, "target": "x"}]),
        "gold.jsonl": lines([{"case": 1.5, "content": "x"}]),
    }
    dataset = {"path": "cases.jsonl", "join": {"path": "targets.jsonl", "on": "id"}}
    report = validate(write_bundle(tmp_path, dataset=dataset, gold="gold.jsonl", wrong=None, files=files))
    assert (report.problems, report.cases) == ([], 1)


@pytest.mark.parametrize("text", ["[1, 2]", "just text", "", "a: [", "a: 1\na: 2\n"])
def test_manifest_that_is_not_a_mapping_is_rejected(tmp_path, text):
    problems = problem_lines(write_bundle(tmp_path, files={"environment.yaml": text}))
    assert problems
    assert all(problem.startswith("environment.yaml") for problem in problems)


def test_number_of_listed_problems_is_limited():
    found = ProblemList()
    for number in range(MAX_LISTED + 50):
        if not found.full:
            found.add(Problem(file="a", message=f"problem {number}"))
    assert len(found.sorted()) == MAX_LISTED + 1


def test_mutated_bundles_are_rejected_or_valid(tmp_path):
    rng = random.Random(11)
    good = {path.name: path.read_bytes() for path in write_bundle(tmp_path).iterdir()}
    pieces = [b"{{ x }}", b"{{", b"{%", b"- ", b": ", b"\n", b"[", b"}", b"null", b"1", b"&a", b"*a", b"!!int", b"\x00"]
    pieces += [b"\xff", b"\xed\xa0\x80", b"'", b'"', b"\t", b"1e999", b"<<: ", b"\\ud800", b"multi_turn", b"cases.csv"]
    valid = 0
    for _ in range(500):
        for name, content in good.items():
            changed = bytearray(content)
            for _ in range(rng.choice((0, 0, 1, 3))):
                at = rng.randrange(len(changed))
                changed[at : at + rng.randrange(5)] = rng.choice(pieces)
            (tmp_path / name).write_bytes(changed)
        report = validate(tmp_path)
        valid += report.valid
        assert all(str(problem) for problem in report.problems)
    assert 0 < valid < 250

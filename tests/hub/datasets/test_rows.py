"""Rows from every format, joins, mapping of rows to cases, and errors of data that cannot be read."""

import datetime
import gzip
import io
import json
import re
import resource
import sys
import tracemalloc
import types
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hub.datasets.files import read_file
from hub.datasets.mapping import CaseMapper
from hub.datasets.row_types import MAX_ROW_BYTES, DatasetError
from hub.datasets.rows import read_rows
from hub.manifest.problems import BundleError
from hub.manifest.schema import Dataset

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def opener(**files):
    """Opens the given contents by name, `__` standing for the dot."""
    contents = {name.replace("__", "."): data for name, data in files.items()}
    return lambda path: io.BytesIO(contents[path] if isinstance(contents[path], bytes) else contents[path].encode())


def read(path, content):
    return list(read_file(path, lambda _: io.BytesIO(content if isinstance(content, bytes) else content.encode())))


def parquet(rows_):
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows_), out)
    return out.getvalue()


ROWS = [{"a": 1, "b": "x\ny"}, {"a": 2, "b": "é"}]


@pytest.mark.parametrize(
    ("path", "content", "lines"),
    [
        ("d.jsonl", "\n".join(json.dumps(row) for row in ROWS), [1, 2]),
        ("d.jsonl", "\ufeff" + "\n\n".join(json.dumps(row) for row in ROWS), [1, 3]),
        ("d.json", json.dumps(ROWS, indent=1), [2, 6]),
        ("d.json", json.dumps(ROWS), [1, 1]),
        ("d.json", "\n".join(json.dumps(row) for row in ROWS), [1, 2]),
        ("d.parquet", parquet(ROWS), [1, 2]),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_every_format_yields_rows_with_line_numbers(path, content, lines, compressed):
    raw = content if isinstance(content, bytes) else content.encode()
    found = read(path + ".gz", gzip.compress(raw)) if compressed else read(path, raw)
    assert found == list(zip(lines, ROWS, strict=True))


def test_csv_cells_are_text_and_keep_quoted_line_breaks():
    assert read("d.csv", 'a,b\n1,"x\ny"\n\n2,é\n') == [(2, {"a": "1", "b": "x\ny"}), (5, {"a": "2", "b": "é"})]


def test_parquet_types_are_converted_to_json():
    row = {"when": datetime.datetime(2020, 1, 2), "price": Decimal("1.50"), "raw": b"\x00\x01", "list": [1, None]}
    (found,) = read("d.parquet", parquet([row]))
    assert found[1] == {"when": "2020-01-02T00:00:00", "price": "1.50", "raw": {"b64": "AAE="}, "list": [1, None]}


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pa.array([0, 2**62], pa.timestamp("us")), "date value out of range"),
        (pa.array([0, 2**30], pa.date32()), "days=1073741824"),
        (pa.array([b"a", b"\xff"]).view(pa.string()), "'utf-8' codec can't decode"),
    ],
)
def test_value_of_parquet_that_python_cannot_represent_is_reported_with_its_row(column, sentence):
    out = io.BytesIO()
    pq.write_table(pa.table({"a": column}), out)
    with pytest.raises(DatasetError) as caught:
        read("d.parquet", out.getvalue())
    assert str(caught.value).startswith("d.parquet:2: a value of the row cannot be read: ")
    assert sentence in str(caught.value)


def test_two_columns_of_parquet_with_one_name_are_rejected():
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), out)
    with pytest.raises(DatasetError, match="two columns are named 'a'"):
        read("d.parquet", out.getvalue())


@pytest.mark.parametrize("number", ["1e999", "-1E400"])
def test_numbers_that_are_read_as_infinity_are_rejected(number):
    (_, row), following = read("d.jsonl", f'{{"a": {number}}}\n{{"a": 1}}\n')
    assert f"the number {number} is too large" in str(row)
    assert following == (2, {"a": 1})
    with pytest.raises(DatasetError, match="is too large"):
        read("d.json", f'[{{"a": {number}}}]')


def test_invalid_rows_are_reported_and_reading_continues():
    found = read(
        "d.jsonl", '{"a": 1}\n[1]\n{"a": NaN}\n{}\n{"a": "\\u0000"}\n{"a": "\\ud800"}\n{"a": "\\\\u0000"}\n{x\n'
    )
    told = [(line, str(row)) for line, row in found if isinstance(row, DatasetError)]
    assert [line for line, _ in told] == [2, 3, 4, 5, 6, 8]
    assert all(text.startswith(f"d.jsonl:{line}: ") for line, text in told)
    assert found[6] == (7, {"a": "\\u0000"})


@pytest.mark.parametrize(
    ("path", "content", "place", "sentence"),
    [
        ("d.json", '[{"a": 1},\n {"b":]', "d.json:2", "not JSON"),
        ("d.json", '[{"a": 1},\n {"b": 1', "d.json:2", "not JSON"),
        ("d.json", '[{"a": 1}', "d.json:1", "not closed"),
        ("d.csv", "a,a\n1,2\n", "d.csv:1", "two columns"),
        ("d.csv", "a;b\n1;2\n", "d.csv:1", "Separate cells by commas instead of ';'"),
        ("d.csv", "a\tb\n1\t2\n", "d.csv:1", "Separate cells by commas"),
        ("d.csv", 'a,b\n1,"2\n', "d.csv:2", "not CSV"),
        ("d.csv.gz", "a,b\n", "d.csv.gz", "not gzip"),
        ("d.csv.gz", gzip.compress(b"a,b\n1,2\n" * 500)[:-9], "d.csv.gz", "incomplete"),
        ("d.parquet", "PAR1 and no more PAR1", "d.parquet", "not parquet"),
        ("d.jsonl", b'{"a": "\xff"}', "d.jsonl:1", "UTF-8"),
    ],
)
def test_unreadable_file_is_reported_with_line_and_reason(path, content, place, sentence):
    with pytest.raises(DatasetError) as caught:
        read(path, content)
    assert str(caught.value).startswith(place)
    assert sentence in str(caught.value)


def test_csv_row_of_many_lines_is_limited_as_other_rows(monkeypatch):
    monkeypatch.setattr("hub.datasets.text_formats.MAX_ROW_BYTES", 100)
    line = "x" * 60 + "\n"
    assert len(read("d.csv", f'a,b\n1,"{line}"\n2,"{line}"\n')) == 2
    with pytest.raises(DatasetError, match=r"d.csv:3.*the row is longer than 100 characters"):
        read("d.csv", f'a,b\n1,2\n"{line}","{line}"\n')


def test_csv_row_with_too_many_cells_is_reported():
    found = read("d.csv", "a,b\n1,2,3\n4,5\n")
    assert "3 cells, the header 2" in str(found[0][1])
    assert found[1] == (3, {"a": "4", "b": "5"})


def test_csv_row_of_another_length_than_the_columns_of_the_manifest_is_reported():
    found = list(read_file("d.csv", lambda path: io.BytesIO(b"1,2\n3\n"), columns=["a", "b"]))
    assert found[0] == (1, {"a": "1", "b": "2"})
    assert str(found[1][1]) == (
        "d.csv:2: the row has 1 cell, but `columns` names 2. Write a comma for each empty cell, too."
    )


def test_too_long_line_is_rejected_with_bounded_memory():
    class Endless(io.RawIOBase):
        def readline(self, size=-1):
            return b"x" * size

    tracemalloc.start()
    with pytest.raises(DatasetError, match="longer than"):
        list(read_file("d.jsonl", lambda _: Endless()))
    assert tracemalloc.get_traced_memory()[1] < 3 * MAX_ROW_BYTES
    tracemalloc.stop()


def test_decompression_bomb_is_rejected(monkeypatch):
    monkeypatch.setattr("hub.datasets.text_formats.MAX_DATA_BYTES", 10_000)
    with pytest.raises(DatasetError, match="more than 10,000 bytes"):
        read("d.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 2000))


def test_join_adds_columns_and_keeps_those_of_the_first_file():
    dataset = Dataset.model_validate({"path": "c.jsonl", "join": {"path": "a.csv", "on": "id"}})
    files = opener(c__jsonl='{"id": 1, "q": "one"}\n{"id": 2, "q": "two"}\n', a__csv="id,answer,q\n2,B,no\n1,A,no\n")
    assert [row for _, _, row in read_rows(dataset, files)] == [
        {"id": 1, "answer": "A", "q": "one"},
        {"id": 2, "answer": "B", "q": "two"},
    ]


def test_join_reports_unmatched_rows_and_duplicate_keys():
    dataset = Dataset.model_validate({"path": "c.jsonl", "join": {"path": "a.jsonl", "on": "id"}})
    missing = opener(c__jsonl='{"id": 1}\n{"id": 7}\n', a__jsonl='{"id": 1}\n')
    assert "no row with 7" in str(list(read_rows(dataset, missing))[1][2])
    twice = opener(c__jsonl='{"id": 1}\n', a__jsonl='{"id": 1}\n{"id": "1"}\n')
    with pytest.raises(DatasetError, match=r"a.jsonl:2.*as on line 1"):
        list(read_rows(dataset, twice))


def test_hugging_face_dataset_is_streamed_at_its_commit(monkeypatch):
    asked = {}

    def load_dataset(name, config, **options):
        asked.update(options, name=name, config=config)
        return iter([{"q": "one", "when": datetime.date(2020, 1, 1)}])

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    dataset = Dataset(hf="owner/name", config="main", split="train", revision=COMMIT)
    assert list(read_rows(dataset, opener())) == [("owner/name", 1, {"q": "one", "when": "2020-01-01"})]
    assert asked == {"name": "owner/name", "config": "main", "split": "train", "revision": COMMIT, "streaming": True}


def test_missing_datasets_package_is_reported_with_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetError, match="pip install datasets"):
        list(read_rows(Dataset(hf="owner/name", revision=COMMIT), opener()))


def test_hugging_face_dataset_without_commit_is_rejected():
    with pytest.raises(ValueError, match="40 hexadecimal digits"):
        Dataset(hf="owner/name", revision="main")


# ---- rows into cases -------------------------------------------------------------------------------------------------


def case(row, position=1, **fields):
    return CaseMapper(fields, opener()).case(row, file="d.jsonl", line=3, position=position)


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"id": None, "input": "q"}, {}),
        ({"number": None, "input": "q"}, {"id": "number"}),
        ({"input": "q"}, {"id": "{{ none }}"}),
    ],
)
def test_id_that_is_null_is_not_replaced_by_the_position(row, fields):
    with pytest.raises(BundleError, match=r"d.jsonl:3 \(dataset.fields.id\): the id is null. Give every row an id, or"):
        CaseMapper(fields, opener(), null_ids=False).case(row, file="d.jsonl", line=3, position=7)
    assert case(row, position=7, **fields).id == "7"  # in versions that are stored already


def test_fields_default_to_the_columns_of_their_names_and_the_id_to_the_position():
    made = case({"input": "q", "target": 4, "choices": ["a", 2], "metadata": {"k": 1}, "other": True}, position=9)
    assert (made.id, made.input, made.target, made.choices, made.metadata) == ("9", "q", 4, ["a", "2"], {"k": 1})
    assert made.variables()["other"] is True


def test_field_is_a_column_a_template_or_a_structure_of_templates():
    row = {"task": 7, "q": "Why?", "code": "x = 1", "labels": ["A", "B"], "odd name": "odd"}
    made = case(
        row,
        id="task",
        input="Q: {{ q }} {{ row['odd name'] }}",
        choices="{{ labels }}",
        files={"app.py": "{{ code }}"},
        metadata={"source": "made up"},
    )
    assert (made.id, made.input, made.choices) == ("7", "Q: Why? odd", ["A", "B"])
    assert (made.files, made.metadata) == ({"app.py": "x = 1"}, {"source": "made up"})


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{{ 1e999 }}", "a number that is not finite"),
        (r"{{ '\0' }}", "the character U+0000"),
        ("{{ '%c' % 0xd800 }}", "half of a surrogate pair"),
    ],
)
def test_rendered_values_that_no_database_stores_are_rejected(template, sentence):
    with pytest.raises(BundleError, match=re.escape(sentence)):
        case({"q": "x"}, target=[template])


@pytest.mark.parametrize(
    ("fields", "row", "sentence"),
    [
        ({"input": "question"}, {"q": 1}, "no column 'question'; its columns are q"),
        (
            {"input": "qestion"},
            {"question": 1},
            "its columns are question. Did you mean 'question'? Write",
        ),
        ({"input": "{{ nope }}"}, {"q": 1}, "'nope' is undefined"),
        ({}, {"input": {"a": 1}}, "must be text, or a list of messages"),
        ({}, {"id": ""}, "1 to 200 printable characters"),
        ({}, {"id": True}, "text or a number"),
        ({}, {"choices": {"text": ["a"]}}, "list of texts"),
        ({}, {"files": {"../a": "x"}}, "relative"),
        ({}, {"files": {"a": {"b64": "?"}}}, "b64"),
        ({}, {"metadata": []}, "mapping"),
    ],
)
def test_invalid_field_is_reported_with_file_line_and_remedy(fields, row, sentence):
    with pytest.raises(BundleError) as caught:
        case(row, **fields)
    assert str(caught.value).startswith("d.jsonl:3 (dataset.fields.")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "json",
        "../secrets",
        "/etc/passwd",
        "./x",
        "a/b/c",
        "owner/..",
        "owner/.hidden",
        "https://host/x",
        "a/b?c",
        "a/b\n",
        "a--b/c",
        "hf://a/b",
    ],
)
def test_hugging_face_name_that_is_a_path_url_or_loader_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="owner/name"):
        Dataset(hf=name, revision=COMMIT)


# ---- parquet that unfolds --------------------------------------------------------------------------------------------


def _unfolding(shape):
    """A parquet file of a few KiB that stands for 1,500 MB of text, or for one row of 150 MB."""
    text = "y" * 100_000
    tables = {
        "rows": lambda: pa.table(
            {
                "id": pa.array(range(15_000)),
                "text": pa.DictionaryArray.from_arrays(pa.array([0] * 15_000, pa.int32()), pa.array([text])),
            }
        ),
        "list": lambda: pa.table({"id": [1], "texts": pa.array([[text] * 1_500])}),
        "struct": lambda: pa.table({"id": [1], "deep": pa.array([[{"text": text}] * 1_500])}),
        "map": lambda: pa.table(
            {
                "id": [1],
                "map": pa.array([[(str(i), text) for i in range(1_500)]], pa.map_(pa.string(), pa.string())),
            }
        ),
        "numbers": lambda: pa.table({"id": [1], "numbers": pa.array([[7] * 2_000_000])}),
    }
    file = io.BytesIO()
    pq.write_table(tables[shape](), file, compression="zstd")
    return file.getvalue()


@pytest.mark.parametrize(
    "shape",
    ["rows", "list", *(pytest.param(shape, marks=pytest.mark.exhaustive) for shape in ("struct", "map", "numbers"))],
)
def test_parquet_beyond_the_limits_is_rejected_with_bounded_memory(shape, monkeypatch):
    monkeypatch.setattr("hub.datasets.parquet.MAX_DATA_BYTES", 64 * 1024 * 1024)
    data = _unfolding(shape)
    assert len(data) < 300_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DatasetError, match=r"the (data|row) is more than [\d,]+ bytes unpacked"):
        for _ in read_file("x.parquet", lambda path: io.BytesIO(data)):
            pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024  # KiB


def test_parquet_metadata_with_too_many_values_is_rejected_before_reading(monkeypatch):
    monkeypatch.setattr("hub.datasets.parquet.MAX_DATA_BYTES", 1_000_000)
    data = _unfolding("numbers")
    with pytest.raises(DatasetError, match=r"the data is more than 1,000,000 bytes unpacked"):
        next(iter(read_file("x.parquet", lambda path: io.BytesIO(data))))


def test_parquet_strings_and_maps_are_read():
    table = pa.table(
        {
            "a": ["x", None, "x"],
            "b": pa.array([["p", None], [], None]),
            "m": pa.array([[("k", "v")], [], None], pa.map_(pa.string(), pa.string())),
            "s": [{"t": "u"}, None, {"t": None}],
            "z": [b"1", b"", None],
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    found = [row for _, row in read_file("x.parquet", lambda path: io.BytesIO(file.getvalue()))]
    assert [row["a"] for row in found] == ["x", None, "x"]
    assert [row["b"] for row in found] == [["p", None], [], None]
    assert [row["m"] for row in found] == [[["k", "v"]], [], None]
    assert [row["s"] for row in found] == [{"t": "u"}, None, {"t": None}]
    assert [row["z"] for row in found] == [{"b64": "MQ=="}, {"b64": ""}, None]

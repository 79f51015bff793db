"""Rows out of every format, joins, and rows into cases: what is read, and what is said about what cannot be."""

import datetime
import gzip
import io
import json
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
def test_each_format_gives_its_rows_with_their_lines(path, content, lines, compressed):
    raw = content if isinstance(content, bytes) else content.encode()
    found = read(path + ".gz", gzip.compress(raw)) if compressed else read(path, raw)
    assert found == list(zip(lines, ROWS, strict=True))


def test_csv_gives_text_and_keeps_line_breaks_inside_quotes():
    assert read("d.csv", 'a,b\n1,"x\ny"\n\n2,é\n') == [(2, {"a": "1", "b": "x\ny"}), (5, {"a": "2", "b": "é"})]


def test_typed_values_of_parquet_become_json():
    row = {"when": datetime.datetime(2020, 1, 2), "price": Decimal("1.50"), "raw": b"\x00\x01", "list": [1, None]}
    (found,) = read("d.parquet", parquet([row]))
    assert found[1] == {"when": "2020-01-02T00:00:00", "price": "1.50", "raw": {"b64": "AAE="}, "list": [1, None]}


def test_wrong_rows_are_reported_one_by_one_and_reading_goes_on():
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
        ("d.csv", 'a,b\n1,"2\n', "d.csv:2", "not CSV"),
        ("d.csv.gz", "a,b\n", "d.csv.gz", "not gzip"),
        ("d.csv.gz", gzip.compress(b"a,b\n1,2\n" * 500)[:-9], "d.csv.gz", "incomplete"),
        ("d.parquet", "PAR1 and no more PAR1", "d.parquet", "not parquet"),
        ("d.jsonl", b'{"a": "\xff"}', "d.jsonl:1", "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_on_says_where_and_why(path, content, place, sentence):
    with pytest.raises(DatasetError) as caught:
        read(path, content)
    assert str(caught.value).startswith(place)
    assert sentence in str(caught.value)


def test_a_csv_row_with_too_many_cells_is_reported_in_its_place():
    found = read("d.csv", "a,b\n1,2,3\n4,5\n")
    assert "3 cells, the header 2" in str(found[0][1])
    assert found[1] == (3, {"a": "4", "b": "5"})


def test_an_endless_line_is_refused_before_it_fills_the_memory():
    class Endless(io.RawIOBase):
        def readline(self, size=-1):
            return b"x" * size

    tracemalloc.start()
    with pytest.raises(DatasetError, match="longer than"):
        list(read_file("d.jsonl", lambda _: Endless()))
    assert tracemalloc.get_traced_memory()[1] < 3 * MAX_ROW_BYTES
    tracemalloc.stop()


def test_a_compressed_file_that_unpacks_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("hub.datasets.text_formats.MAX_DATA_BYTES", 10_000)
    with pytest.raises(DatasetError, match="more than 10,000 bytes"):
        read("d.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 2000))


def test_a_join_adds_the_columns_of_the_other_file_and_the_first_file_wins():
    dataset = Dataset.model_validate({"path": "c.jsonl", "join": {"path": "a.csv", "on": "id"}})
    files = opener(c__jsonl='{"id": 1, "q": "one"}\n{"id": 2, "q": "two"}\n', a__csv="id,answer,q\n2,B,no\n1,A,no\n")
    assert [row for _, _, row in read_rows(dataset, files)] == [
        {"id": 1, "answer": "A", "q": "one"},
        {"id": 2, "answer": "B", "q": "two"},
    ]


def test_a_join_says_which_row_has_no_partner_and_which_value_comes_twice():
    dataset = Dataset.model_validate({"path": "c.jsonl", "join": {"path": "a.jsonl", "on": "id"}})
    missing = opener(c__jsonl='{"id": 1}\n{"id": 7}\n', a__jsonl='{"id": 1}\n')
    assert "no row with 7" in str(list(read_rows(dataset, missing))[1][2])
    twice = opener(c__jsonl='{"id": 1}\n', a__jsonl='{"id": 1}\n{"id": "1"}\n')
    with pytest.raises(DatasetError, match=r"a.jsonl:2.*as on line 1"):
        list(read_rows(dataset, twice))


def test_a_hub_dataset_is_streamed_at_its_commit(monkeypatch):
    asked = {}

    def load_dataset(name, config, **options):
        asked.update(options, name=name, config=config)
        return iter([{"q": "one", "when": datetime.date(2020, 1, 1)}])

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    dataset = Dataset(hf="owner/name", config="main", split="train", revision=COMMIT)
    assert list(read_rows(dataset, opener())) == [("owner/name", 1, {"q": "one", "when": "2020-01-01"})]
    assert asked == {"name": "owner/name", "config": "main", "split": "train", "revision": COMMIT, "streaming": True}


def test_without_the_datasets_package_the_error_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetError, match="pip install datasets"):
        list(read_rows(Dataset(hf="owner/name", revision=COMMIT), opener()))


def test_a_hub_dataset_without_a_commit_is_refused():
    with pytest.raises(ValueError, match="40 hexadecimal digits"):
        Dataset(hf="owner/name", revision="main")


# ---- rows into cases -------------------------------------------------------------------------------------------------


def case(row, position=1, **fields):
    return CaseMapper(fields).case(row, file="d.jsonl", line=3, position=position)


def test_fields_default_to_the_columns_of_their_names_and_the_id_to_the_position():
    made = case({"input": "q", "target": 4, "choices": ["a", 2], "metadata": {"k": 1}, "other": True}, position=9)
    assert (made.id, made.input, made.target, made.choices, made.metadata) == ("9", "q", 4, ["a", "2"], {"k": 1})
    assert made.variables()["other"] is True


def test_a_field_is_a_column_a_template_or_a_structure_of_templates():
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
    ("fields", "row", "sentence"),
    [
        ({"input": "question"}, {"q": 1}, "no column 'question'; its columns are q"),
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
def test_a_field_that_does_not_fit_is_named_with_file_line_and_remedy(fields, row, sentence):
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
def test_the_name_of_a_hugging_face_dataset_is_no_path_no_address_and_no_loader(name: str) -> None:
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


@pytest.mark.parametrize("shape", ["rows", "list", "struct", "map", "numbers"])
def test_parquet_that_unfolds_beyond_the_limits_is_refused_in_little_memory(shape, monkeypatch):
    monkeypatch.setattr("hub.datasets.parquet.MAX_DATA_BYTES", 64 * 1024 * 1024)
    data = _unfolding(shape)
    assert len(data) < 300_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DatasetError, match=r"the (data|row) is more than [\d,]+ bytes unpacked"):
        for _ in read_file("x.parquet", lambda path: io.BytesIO(data)):
            pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024  # KiB


def test_parquet_that_says_it_has_too_many_values_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr("hub.datasets.parquet.MAX_DATA_BYTES", 1_000_000)
    data = _unfolding("numbers")
    with pytest.raises(DatasetError, match=r"the data is more than 1,000,000 bytes unpacked"):
        next(iter(read_file("x.parquet", lambda path: io.BytesIO(data))))


def test_texts_and_maps_of_parquet_are_read_as_before():
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

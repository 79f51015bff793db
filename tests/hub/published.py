"""Invented rows in the formats in which known benchmarks are published."""

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HUMANEVAL = [
    {
        "task_id": "Test/0",
        "prompt": 'from typing import List\n\n\ndef largest(values: List) -> int:\n    """The largest of values."""\n',
        "entry_point": "largest",
        "canonical_solution": "    return max(values)\n",
        "test": "\n\nMETADATA = {'author': 'x'}\n\n\ndef check(candidate):\n"
        "    assert candidate([1, 3, 2]) == 3\n    assert candidate([-5]) == -5\n",
    },
    {
        "task_id": "Test/1",
        "prompt": 'def double(x):\n    return 2 * x\n\n\ndef quadruple(x):\n    """Four times x, by double."""\n',
        "entry_point": "quadruple",
        "canonical_solution": "    return double(double(x))\n",
        "test": "def check(candidate):\n    for x in range(5):\n        assert candidate(x) == double(double(x))\n",
    },
]

MBPP = [
    {
        "text": "Write a function to add two numbers.",
        "code": "def add(a, b):\r\n  return a + b",
        "task_id": number,
        "test_setup_code": "",
        "test_list": ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add(0, 0) == 0"],
        "challenge_test_list": [],
    }
    for number in (2, 11, 510, 511)
]

# Setup code that uses a class of the answer, and a class of Python as an argument, as in a few of the published tasks.
MBPP_SPECIAL = [
    {
        "text": "Write a function to count the boxes of a chain.",
        "code": "class Box:\r\n  def __init__(self, size):\r\n    self.size = size\r\n    self.inner = None\r\n"
        "def boxes(box):\r\n  return 0 if box is None else 1 + boxes(box.inner)",
        "task_id": 12,
        "test_setup_code": "outer = Box(3) \r\nouter.inner = Box(2) \r\nsingle = Box(1)",
        "test_list": ["assert boxes(outer) == 2", "assert boxes(single) == 1 "],
        "challenge_test_list": [],
    },
    {
        "text": "Write a function to keep the items of one type.",
        "code": "def keep(items, kind):\r\n  return [item for item in items if isinstance(item, kind)]",
        "task_id": 13,
        "test_setup_code": "",
        "test_list": ["assert keep((1, 2.5, 'a'), int) == [1]", "assert keep((1, 2.5, 'a'), str) == ['a']"],
        "challenge_test_list": [],
    },
]

_PLUS_ASSERTION = """import numpy as np

def assertion(out, exp, atol):
    if atol:
        np.testing.assert_allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp, f"out: {out}, exp: {exp}"

"""
HUMANEVAL_PLUS = [
    {
        **HUMANEVAL[0],
        "test": _PLUS_ASSERTION + "def check(candidate):\n    inputs = [[[1, 3, 2]], [[-5]]]\n    results = [3, -5]\n"
        "    for inp, exp in zip(inputs, results):\n        assertion(candidate(*inp), exp, 0)\n",
    }
]
MBPP_PLUS = [
    {
        "task_id": 2,
        "code": "def halves(numbers):\n  return [n / 2 for n in numbers]",
        "prompt": "Write a function to halve every number.",
        "source_file": "x.ipynb",
        "test_imports": [],
        "test_list": ["assert halves([2]) == [1]"],
        "test": _PLUS_ASSERTION + "inputs = [[[2, 4]], [[1]]]\nresults = [[1, 2], [0.5]]\n"
        "for inp, exp in zip(inputs, results):\n    assertion(halves(*inp), exp, 1e-06)\n",
    }
]

MBPP_SANITIZED = [
    {
        "source_file": "Benchmark Questions Verification V2.ipynb",
        "task_id": 17,
        "prompt": "Write a function that returns the area of a circle.",
        "code": "import math\ndef area(r):\n  return math.pi * r ** 2",
        "test_imports": ["import math"],
        "test_list": ["assert math.isclose(area(1), math.pi, rel_tol=0.001)", "assert area(0) == 0"],
    }
]

GSM8K = [
    {"question": "Ann has 3 apples and buys 4. How many?", "answer": "She has 3+4=<<3+4=7>>7 apples.\n#### 7"},
    {"question": "A car costs 1000 more than 200. How much?", "answer": "1000+200=<<1000+200=1200>>1200\n#### 1,200"},
    {"question": "What is 2 below zero?", "answer": "0-2=<<0-2=-2>>-2\n#### -2"},
]

IFEVAL = [
    {
        "key": 1,
        "prompt": "Name three colours as bullets, in lower case, without commas.",
        "instruction_id_list": [
            "detectable_format:number_bullet_lists",
            "change_case:english_lowercase",
            "punctuation:no_comma",
        ],
        "kwargs": [{"num_bullets": 3}, {}, {}],
    },
    {
        "key": 2,
        "prompt": "Write at least five words about the sea and end with the words: the end.",
        "instruction_id_list": ["length_constraints:number_words", "startend:end_checker"],
        "kwargs": [{"relation": "at least", "num_words": 5}, {"end_phrase": "the end."}],
    },
]
IFEVAL_ANSWERS = {
    "1": "* red like the evening sky\n* green like the grass in the garden\n* blue like the water of the sea",
    "2": "The sea is wide and blue until the end.",
}
IFEVAL_KEYS = ["num_bullets", "relation", "num_words", "end_phrase", "keywords", "forbidden_words"]

MMLU = [
    {"question": "What is 1 + 1?", "subject": "arithmetic", "choices": ["1", "2", "3", "4"], "answer": 1},
    {"question": "Which is a colour?", "subject": "arithmetic", "choices": ["red", "run", "ran", "rum"], "answer": 0},
]

ARC = [
    {
        "id": "School_1",
        "question": {
            "stem": "Which of these is a star?",
            "choices": [
                {"text": "the Moon", "label": "A"},
                {"text": "the Sun", "label": "B"},
                {"text": "Mars", "label": "C"},
            ],
        },
        "answerKey": "B",
    },
    {
        "id": "School_2",
        "question": {
            "stem": "What do plants need?",
            "choices": [
                {"text": "light", "label": "1"},
                {"text": "shoes", "label": "2"},
                {"text": "songs", "label": "3"},
                {"text": "paper", "label": "4"},
                {"text": "glass", "label": "5"},
            ],
        },
        "answerKey": "1",
    },
]

BFCL = [
    {
        "id": "simple_python_0",
        "question": [[{"role": "user", "content": "What is the area of a 3 by 4 rectangle?"}]],
        "function": [
            {
                "name": "geometry.area",
                "description": "The area of a rectangle.",
                "parameters": {
                    "type": "dict",
                    "properties": {
                        "width": {"type": "float", "description": "Width."},
                        "height": {"type": "integer", "description": "Height."},
                        "unit": {"type": "string", "description": "Unit, m by default."},
                    },
                    "required": ["width", "height"],
                },
            }
        ],
    },
    {
        "id": "simple_python_1",
        "question": [[{"role": "user", "content": "Find people named Ann or Bea who are 30 in Oslo."}]],
        "function": [
            {
                "name": "search",
                "description": "Find people.",
                "parameters": {
                    "type": "dict",
                    "properties": {
                        "names": {"type": "array", "items": {"type": "string"}, "description": "Names."},
                        "where": {
                            "type": "dict",
                            "description": "Conditions.",
                            "properties": {"city": {"type": "string"}, "age": {"type": "integer"}},
                        },
                        "exact": {"type": "boolean", "description": "Default false."},
                    },
                    "required": ["names", "where"],
                },
            }
        ],
    },
]
BFCL_ANSWERS = [
    {
        "id": "simple_python_0",
        "ground_truth": [{"geometry.area": {"width": [3.0, 3], "height": [4], "unit": ["", "m"]}}],
    },
    {
        "id": "simple_python_1",
        "ground_truth": [
            {
                "search": {
                    "names": [["Ann", "Bea"], ["Bea", "Ann"]],
                    "where": [{"city": ["Oslo", "Oslo, Norway"], "age": [30]}],
                    "exact": ["", False],
                }
            }
        ],
    },
]


def jsonl(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def packed(rows: list[Any]) -> bytes:
    return gzip.compress(jsonl(rows))


def parquet(rows: list[Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def mmlu_csv() -> bytes:
    """As in data.tar: no header, the answer a letter."""
    rows = ([row["question"], *row["choices"], "ABCD"[row["answer"]]] for row in MMLU)
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows).encode()


def arc_on_the_hub() -> list[dict[str, Any]]:
    """As the Hugging Face hub has them: choices as two lists."""
    return [
        {
            "id": row["id"],
            "question": row["question"]["stem"],
            "choices": {
                "text": [choice["text"] for choice in row["question"]["choices"]],
                "label": [choice["label"] for choice in row["question"]["choices"]],
            },
            "answerKey": row["answerKey"],
        }
        for row in ARC
    ]


def ifeval_on_the_hub() -> list[dict[str, Any]]:
    """As parquet makes them: every keyword argument in every mapping, null where it does not belong."""
    return [{**row, "kwargs": [{key: kw.get(key) for key in IFEVAL_KEYS} for kw in row["kwargs"]]} for row in IFEVAL]

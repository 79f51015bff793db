"""Extraction of programs: unusual fences, helpers in other blocks, prefixes with imports, prose between pieces."""

from typing import Any

import pytest

from hub.extraction import code, fences
from tests.sampling import sampled

SUM = "def total(xs):\n    return sum(xs)\n"


def runs(text: str, name: str = "total", argument: Any = (1, 2, 3), **options: Any) -> Any:
    scope: dict[str, Any] = {}
    exec(code(text, entry_point=name, **options).text, scope)
    return scope[name](argument)


# ---- fences ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"````markdown\nThe function:\n```python\n{SUM}```\nDone.\n````",
        f"```markdown\nThe function:\n```python\n{SUM}```\n```",
        f"```python {SUM}```",
        "```python def total(xs): return sum(xs)```",
        "```python\ndef total(xs):\n    return sum(xs)```\nThat is all.",
        f"> ```python\n> {SUM.replace(chr(10), chr(10) + '> ')}\n> ```",
        f"```python\n{SUM}\n```python\nprint(total([1]))\n```",
        f"```solution\n{SUM}```",
        f"{SUM}```\nThis adds them up.",
        "```python\ndef total(xs):\n\u00a0\u00a0\u00a0\u00a0return sum(xs)\n```",
        '```python\ndef total(xs):\n    """A\n    ```python\n    total()\n    ```\n    """\n    return sum(xs)\n```',
        f"```\npip install numpy\n```\n```\n{SUM}```\n```\n6\n```",
        f"```output\n6\n```\n{SUM}",
    ],
    ids=[
        "wrapped in four",
        "wrapped in three",
        "code on the opening line",
        "one line",
        "closed behind code",
        "quoted",
        "unclosed first block",
        "unknown info word",
        "closing fence alone",
        "no-break spaces",
        "fence in a docstring",
        "unmarked shell and output",
        "only the output is fenced",
    ],
)
def test_function_is_found_in_any_kind_of_fence(text: str) -> None:
    assert runs(text) == 6


@pytest.mark.parametrize("character", "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\u200b\u2060\ufeff\u00ad")
@pytest.mark.parametrize("around", ["```python\n{}```", "{}", "Here is it:\n\n{}\nDone.", "> ```python\n> {}> ```"])
def test_unusual_character_in_a_string_is_kept(character: str, around: str) -> None:
    assert runs(around.format(f"def total(xs): return 'a{character}b'\n")) == f"a{character}b"


def test_no_break_space_at_the_beginning_of_a_line_of_a_string_is_kept() -> None:
    assert runs('```python\ndef total(xs):\n    return """\n\u00a0a"""\n```') == "\n\u00a0a"


def test_invisible_character_in_code_is_removed() -> None:
    assert runs("\ufeff```python\ndef total(xs):\u200b\n\u00a0\u00a0return sum(xs)\n```") == 6


def test_no_break_spaces_at_the_end_of_lines_are_removed_unless_in_a_string() -> None:
    assert runs("```python\ndef total(xs):\u00a0\n    return sum(xs)\u00a0 \u00a0\n```") == 6
    assert runs('```python\ndef total(xs):\n    return """a\u00a0\n"""\n```') == "a\u00a0\n"


@pytest.mark.parametrize("around", ["{}", "Here it is:\n\n{}\nThat is all."])
@pytest.mark.parametrize("prefix", ["", "def total(xs):\n"])
def test_escapes_of_markdown_outside_of_fences_are_removed(around: str, prefix: str) -> None:
    source = "def total(xs):\n    my\\_sum = sum(xs) \\* 2\n    return my\\_sum\n"
    assert runs(around.format(source)) == 12
    assert runs(around.format("import math\n\ndef my\\_sum(xs):\n    return sum(xs)\n"), name="my_sum") == 6
    if prefix:
        assert runs(source.removeprefix(prefix), prefix=prefix) == 12


@pytest.mark.parametrize("fence", ["", "```"])
def test_backslash_before_an_underscore_in_a_string_is_kept(fence: str) -> None:
    assert runs(f"{fence}\ndef total(xs):\n    return r'\\_'\n{fence}") == r"\_"


def test_escape_of_markdown_in_a_fence_stays_a_mistake() -> None:
    assert "my\\_sum" in code("```python\ndef total(xs):\n    return my\\_sum(xs)\n```", entry_point="total").text


def test_statements_indented_by_no_break_spaces_are_kept() -> None:
    source = "table = []\nfor i in range(3):\n\u00a0\u00a0table.append(i)\ndef total(xs): return sum(table)\n"
    assert runs(f"```python\n{source}```") == 3


@pytest.mark.parametrize("options", [{}, {"entry_point": "total"}])
def test_chat_marker_right_behind_a_fence_is_removed(options: dict[str, str]) -> None:
    assert code(f"```python\n{SUM}```<|im_end|>\n", **options).text == SUM


@pytest.mark.parametrize("mark", ["```", "~~~"])
def test_program_without_fences_is_taken_whole_if_its_docstring_has_one(mark: str) -> None:
    text = f'def total(xs):\n    """Sum.\n\n    {mark}\n    total([1])\n    {mark}\n    """\n    return sum(xs)\n'
    assert code(text).text.strip() == text.strip()
    assert runs(text) == 6


@pytest.mark.parametrize("form", ["{}\n{}", "Here it is:\n\n{}\nExample:\n{}\nIt adds.", "```python\n{}\n{}```"])
def test_session_that_shows_the_use_of_a_function_does_not_replace_it(form: str) -> None:
    definition = "def add(a, b):\n    return a + b\n"
    text = form.format(definition, ">>> add(1, 2)\n3\n")
    assert code(text, entry_point="add").text.strip() == definition.strip()


def test_one_line_fence_is_a_block_but_inline_code_is_not() -> None:
    assert [block.text for block in fences("```py x = 1```\nand ```this``` is inline")] == ["x = 1\n"]


@pytest.mark.parametrize(
    "comment", ["# ...", "# ... rest as before", "# … (existing code) …", "# rest of the function"]
)
def test_version_with_a_comment_for_code_left_out_is_used_only_without_another(comment: str) -> None:
    whole = "def add(a, b):\n    return a + b\n"
    part = f"def add(a, b):\n    if a is None:\n        return b\n    {comment}\n"
    text = f"```python\n{part}```"
    assert code(f"```python\n{whole}```\n\nYou could also check:\n\n{text}", entry_point="add").text == whole
    assert code(text, entry_point="add").text == part
    meant = "def add(a, b):\n    # ... of course, this adds\n    return b + a\n"
    assert code(f"```python\n{whole}```\n\n```python\n{meant}```", entry_point="add").text == meant


@pytest.mark.parametrize("inline", ["add = lambda a, b: a + b", "def add(a, b): return a + b"])
def test_definition_in_inline_code_is_used_only_without_another(inline: str) -> None:
    sentence = f"The function `add` is `{inline}`, or ``{inline}``."
    found = code(sentence, entry_point="add")
    assert (found.text.strip(), found.found) == (inline, "inline")
    block = "```python\ndef add(a, b):\n    return b + a\n```"
    assert code(f"{block}\n\nIn short: `{inline}`", entry_point="add").text == "def add(a, b):\n    return b + a\n"
    assert code(sentence, entry_point="sub").text == ""


# ---- several blocks --------------------------------------------------------------------------------------------------


def test_helpers_are_joined_from_other_blocks_transitively() -> None:
    text = (
        "```python\nfrom functools import reduce\n```\n```python\ndef total(xs):\n    return fold(xs)\n```\n"
        "where\n```python\ndef fold(xs):\n    return reduce(plus, xs)\n```\n"
        "```python\ndef plus(a, b):\n    return a + b\n```\nTry it:\n```python\nxs = [1]\nprint(total(xs))\n```"
    )
    found = code(text, entry_point="total")
    assert runs(text) == 6
    assert found.found == "joined_fences"
    assert "print" not in found.text


def test_local_name_does_not_add_an_example_block() -> None:
    text = "```python\nr = undefined_thing()\n```\n```python\ndef total(xs):\n    r = sum(xs)\n    return r\n```"
    assert runs(text) == 6
    assert "undefined_thing" not in code(text, entry_point="total").text


def test_corrected_helper_is_used() -> None:
    text = (
        "```python\ndef plus(a, b):\n    return a\n```\nOops:\n```python\ndef plus(a, b):\n    return a + b\n```\n"
        "```python\ndef total(xs):\n    r = 0\n    for x in xs:\n        r = plus(r, x)\n    return r\n```"
    )
    assert runs(text) == 6


_HELPED = (
    "def plus(a, b):\n    return a\n\ndef total(xs):\n    r = 0\n    for x in xs:\n        r = plus(r, x)\n    return r"
)


@pytest.mark.parametrize(
    "corrected",
    [
        "def plus(a, b):\n    return a + b",
        "import operator\n\ndef plus(a, b):\n    return add(a, b)\n\ndef add(a, b):\n    return operator.add(a, b)",
    ],
)
def test_helper_that_a_later_block_corrects_replaces_the_earlier_one(corrected: str) -> None:
    text = f"```python\n{_HELPED}\n```\nOops, plus is wrong. Fixed:\n```python\n{corrected}\n```"
    assert runs(text) == 6
    assert code(text, entry_point="total").found == "joined_fences"


@pytest.mark.parametrize(
    "later",
    [
        "Wrong:\n```python\ndef plus(a, b):\n    return a + b\n```",
        "```python\ndef plus(a, b):\n    # ... as before\n    return a + b\n```",
        "```python\ndef plus(a, b):\n    pass\n```",
        "```python\ndef plus(a):\n    return a + 1\n```",
        "```python\ndef plus(a, b):\n    return fold(a, b)\n```",
        "```python\nclass plus:\n    def __init__(self, a, b):\n        self.a = a\n```",
        "```python\nplus = 3\n```",
        "```python\ndef plus(a, b):\n    return a\n```",
        "```text\ndef plus(a, b):\n    return a + b\n```",
        "```python\ndef plus(a, b):\n    return a + b",
    ],
)
def test_later_block_that_does_not_correct_a_helper_completely_is_not_used(later: str) -> None:
    text = f"```python\n{_HELPED}\n```\nThe helper:\n\n{later}"
    assert code(text, entry_point="total").found in ("fence", "last_fence")


@pytest.mark.parametrize(
    "later",
    [
        "total = 0\nfor x in xs:\n    total += x",
        "total = 0\nfor x in [1, 2]:\n    total += x",
        "total = total([1, 2])\nprint(total)",
        "total: int = 0",
        "for total in [1, 2]:\n    print(total)",
        "xs = list(map(int, input().split()))\ntotal = sum(xs)",
        "if __name__ == '__main__':\n    total = total([1, 2])\n    print(total)",
        "with open('total.txt') as total:\n    print(total.read())",
        "from functools import lru_cache\ntotal = lru_cache(total)",
    ],
)
def test_later_block_that_assigns_a_value_to_the_name_does_not_replace_the_function(later: str) -> None:
    function = "def total(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total"
    text = f"```python\n{function}\n```\nThis is how it is used:\n```python\n{later}\n```"
    assert runs(text) == 6


@pytest.mark.parametrize(
    "later", ["total = lambda xs: sum(xs)", "total = sum", "from functools import partial\ntotal = partial(sum)"]
)
def test_later_block_that_assigns_a_function_replaces_the_earlier_one(later: str) -> None:
    text = f"```python\ndef total(xs):\n    return 0\n```\nBetter:\n```python\n{later}\n```"
    assert runs(text) == 6


def test_last_block_that_assigns_a_wanted_value_is_used() -> None:
    text = "```python\nPRIMES = [2, 4]\n```\nBetter:\n```python\nPRIMES = [2, 3]\n```"
    assert code(text, wanted=["PRIMES"]).text.strip() == "PRIMES = [2, 3]"


def test_wanted_names_select_the_block_without_an_entry_point() -> None:
    text = f"```python\n{SUM}```\nFor example\n```python\nprint(total([1, 2]))\n```"
    assert "print" not in code(text, wanted=["total"]).text
    both = f"```python\ndef low(xs):\n    return min(xs)\n```\n```python\n{SUM}```"
    scope: dict[str, Any] = {}
    exec(code(both, wanted=["low", "total"]).text, scope)
    assert (scope["low"]([2, 1]), scope["total"]([2, 1])) == (1, 3)


def test_block_of_python_comes_before_one_of_text() -> None:
    text = f"```python\n{SUM}```\nNot like this:\n```text\ndef total(xs):\n    return 0\n```"
    assert runs(text) == 6
    assert code("```python\nprint(6)\n```\nIt prints:\n```text\nprint(0)\n```").text == "print(6)\n"
    assert runs("```text\ndef total(xs):\n    return 6\n```") == 6


def test_last_of_several_programs_is_used_alone() -> None:
    text = "First:\n```python\nprint(1)\n```\nBetter:\n```python\nprint(2)\n```"
    assert code(text).text == "print(2)\n"


@pytest.mark.parametrize("shown", ["6", "n = 5", "# O(n)", "[1, 2]\n[3]", "data = [1, 2]\nexpected = 3"])
def test_block_that_only_shows_data_is_no_program(shown: str) -> None:
    program = "n = int(input())\nprint(n + 1)\n"
    assert code(f"```python\n{program}```\nFor example:\n```python\n{shown}\n```").text == program
    assert code(f"Only this:\n```python\n{shown}\n```\n```python\n{shown}\n```").text.strip() == shown


def test_future_imports_come_first_in_joined_blocks() -> None:
    text = (
        "```python\ndef plus(a, b):\n    return a + b\n```\n```python\nfrom __future__ import annotations\n\n"
        "def total(xs: Nonsense) -> int:\n    return plus(sum(xs), 0)\n```"
    )
    assert runs(text) == 6


# ---- prose -----------------------------------------------------------------------------------------------------------


def test_code_pieces_between_prose_are_joined() -> None:
    text = (
        "First a helper.\n\ndef plus(a, b):\n    return a + b\n\nNow the function, which uses it:\n\n"
        "@staticmethod\ndef unused():\n    pass\n\ndef total(xs):\n    r = 0\n    for x in xs:\n"
        "        r = plus(r, x)\n    return r\n\nNote: this runs in linear time.\nDone."
    )
    assert runs(text) == 6
    assert "Note" not in code(text, entry_point="total").text


def test_unfenced_multiline_brackets_and_strings_are_not_split() -> None:
    text = (
        'Here:\n\nNAMES = [\n"a",\n"b",\n]\nTEXT = """\nfree text\n"""\n\n'
        "def total(xs):\n    return sum(xs) + len(NAMES)\n\nThat is it."
    )
    assert runs(text) == 8


def test_else_without_indentation_belongs_to_its_if() -> None:
    text = (
        "This is it.\n\nimport sys\nif sys:\n    def total(xs):\n        return sum(xs)\nelse:\n    total = None\n\nOk?"
    )
    assert runs(text) == 6


@pytest.mark.parametrize("text", ["I cannot help with that.", "yes", "Note: none", "", "42", "a, b"])
def test_prose_that_parses_is_not_code(text: str) -> None:
    assert code(text, entry_point="total").found == "nothing"
    assert code(text).text == ""


def test_invalid_code_in_prose_is_returned() -> None:
    assert "def total(xs:" in code("Here:\n\ndef total(xs:\n    return sum(xs)\n\nDone.", entry_point="total").text


# ---- the prefix ------------------------------------------------------------------------------------------------------

PREFIX = (
    "from math import floor\n\nSCALE = 2\n\n\ndef half(x):\n    return x / SCALE\n\n\n"
    'def total(xs):\n    """The sum of halves, rounded down."""\n'
)


@pytest.mark.parametrize(
    "text",
    [
        "```python\ndef total(xs):\n    return floor(sum(half(x) for x in xs))\n```",
        "def total(xs):\n    return floor(sum(half(x) for x in xs))\n",
        "    return floor(sum(half(x) for x in xs))",
        "return floor(sum(half(x) for x in xs))",
        "Here is the body:\n\n    return floor(sum(half(x) for x in xs))\n\nIt halves.",
        "```python\n    return floor(sum(half(x) for x in xs))\n```",
        "    r = 0\n    for x in xs:\n        r += half(x)\n    return floor(r)\n\n\nif 0:\n    print(1)\n",
        "    return floor(sum(half(x) for x in xs))\n\n\nThis function halves.\n\ndef unfinished(",
    ],
    ids=["fenced", "bare", "body", "flush", "prose around", "fenced body", "main behind", "prose and more behind"],
)
def test_imports_and_helpers_of_the_prefix_are_added(text: str) -> None:
    assert runs(text, prefix=PREFIX) == 3


def test_prefix_is_added_only_if_needed() -> None:
    assert code(f"```python\n{SUM}```", entry_point="total", prefix=PREFIX) == code(SUM.join(["```python\n", "```"]))
    found = code("```python\ndef total(xs):\n    return half(1)\n```", entry_point="total", prefix=PREFIX)
    assert (found.found, found.with_prefix) == ("fence", True)


def test_body_continues_a_prefix_that_ends_within_a_line() -> None:
    assert runs(" sum(xs)", prefix="def total(xs):\n    return") == 6


def test_body_gets_the_indentation_of_the_prefix() -> None:
    assert runs("return sum(xs)", prefix="def total(xs):\n  '''Sum.'''\n") == 6


# ---- statements that only use ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting_up",
    [
        "table = []\nfor i in range(9):\n    table.append(i)",
        "table = []\ndef fill():\n    for i in range(9):\n        table.append(i)\nfill()",
        "table = {}\nclass F:\n    def fill(self):\n        table.update(dict(enumerate(range(9))))\nF().fill()",
        "def main():\n    global table\n    table = list(range(9))\nmain()",
        "import sys\nsys.modules['m'] = list(range(9))\ntable = sys.modules['m']",
        "if True:\n    table = list(range(9))\nelse:\n    table = None",
        "try:\n    from nowhere import table\nexcept ImportError:\n    table = list(range(9))",
        "exec('table = list(range(9))')",
        "globals()['table'] = list(range(9))",
        "table = [0] * 9\ni = 0\nwhile i < 9:\n    table[i] = i\n    i += 1",
        "class Box:\n    pass\nBox.rows = list(range(9))\nsetattr(Box, 'table', Box.rows)\ntable = Box.table",
    ],
)
def test_statements_that_the_function_depends_on_are_kept(setting_up: str) -> None:
    text = (
        f"```python\n{setting_up}\n\ndef total(xs):\n    return sum(table[x] for x in xs)\n\nprint(total([1]) / 0)\n```"
    )
    found = code(text, entry_point="total")
    assert runs(text) == 6
    assert [line.partition(": ")[2] for line in found.dropped] == ["print(total([1]) / 0)"]


@pytest.mark.parametrize(
    "setting", ["sys.setrecursionlimit(10**6)", "random.seed(7)", "getcontext().prec = 50", "builtins.answer = 42"]
)
def test_settings_of_the_standard_library_are_kept(setting: str) -> None:
    text = f"import sys, random, builtins\nfrom decimal import getcontext\n{setting}\n{SUM}"
    assert setting in code(text, entry_point="total").text


@pytest.mark.parametrize(
    "tests",
    [
        "import pytest\n\ndef test_total():\n    assert total([1]) == 9",
        "import pytest\n\n@pytest.mark.parametrize('x', [1])\ndef test_total(x):\n    assert total([x]) == 9",
        "import pytest as pt\n\nclass TestTotal:\n    def test_it(self):\n        with pt.raises(TypeError):\n"
        "            total(1)\n\nif __name__ == '__main__':\n    pt.main()",
        "from hypothesis import given\n\n@given(...)\ndef test_total(x: list[int]):\n    assert total(x)",
    ],
)
@pytest.mark.parametrize("order", ["{tests}\n\n{function}", "{function}\n{tests}"])
def test_library_that_only_the_tests_of_the_answer_need_is_dropped(tests: str, order: str) -> None:
    program = code(order.format(function=SUM, tests=tests), entry_point="total").text
    assert "return sum(xs)" in program
    assert "pytest" not in program and "hypothesis" not in program


def test_test_library_that_the_function_uses_is_kept() -> None:
    program = "import pytest\n\ndef total(xs):\n    return sum(xs) == pytest.approx(6)\n"
    assert code(program, entry_point="total").text.strip() == program.strip()


def test_definition_that_reads_a_dropped_name_is_dropped() -> None:
    app = "from flask import Flask\napp = Flask(__name__)"
    text = f"```python\n{app}\n{SUM}\n@app.route('/')\ndef home():\n    return 1\n```"
    assert runs(text) == 6


def test_program_without_wanted_names_is_unchanged() -> None:
    text = "```python\nimport sys\nn = int(input())\nprint(n)\nsys.exit()\n```"
    assert code(text).text == "import sys\nn = int(input())\nprint(n)\nsys.exit()\n"


def test_dropping_statements_does_not_fix_a_wrong_program() -> None:
    for wrong in (
        "```python\ntotal = 7\n```",
        f"```python\n{SUM}\ntotal = total([1])\n```",
        "```python\nif __name__ == '__main__':\n    def total(xs):\n        return sum(xs)\n```",
        "```python\ndef total(xs):\n    return sum(xs) + offset\nprint(total([1]))\n```",
        f"```python\n{SUM}```\nBetter:\n```python\ndef total(xs)\n    return sum(xs)\n```",
    ):
        with pytest.raises((NameError, TypeError, KeyError, SyntaxError)):
            runs(wrong)


# ---- nothing stalls --------------------------------------------------------------------------------------------------

HEAPS = {
    "open brackets": "[\n" * 20_000,
    "fences": "```python\n" * 10_000,
    "decorators": "@x\n" * 10_000,
    "quotes": "'''" * 30_000,
    "indented": " " * 50_000 + "x\n" + "  y = 1\n" * 10_000,
    "functions and prose": "def f():\n  return 1\nhello there you\n" * 1000,
    "minuses": "-" * 100_000 + "1",
    "attributes": "a" + ".b" * 50_000,
    "else": "x = [\nelse\n" * 5000,
    "tags": "<code>\n" * 20_000,
    "unclosed tags": "<pre><code>x\n" * 10_000,
    "prompts": ">>> x\n" * 20_000,
    "inline code": "`total = 1` " * 20_000,
    "markers": "<|im_start|>" * 20_000,
    "quotes as fences": "'''python\n" * 10_000,
    "triple quoted JSON": '{"code": """' * 10_000,
    "entities": "&lt;" * 50_000,
    "calls": "def total(xs):\n    return xs\n" + "total(1)\n" * 3000,
    "chain": "".join(f"def f{i}():\n    f{i + 1}()\n" for i in range(1000)) + "f0()\ndef total(xs):\n    return f0\n",
}


@sampled("heap", HEAPS, each=6)
def test_repeated_fragments_neither_raise_nor_stall(heap: str) -> None:
    """With quadratic patterns this would take minutes and exceed the time limit of the tests."""
    code(HEAPS[heap], entry_point="total", prefix=PREFIX)
    code(HEAPS[heap])

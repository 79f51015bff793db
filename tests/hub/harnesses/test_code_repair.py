"""Tests of the harness `code_repair`: a project in the state of the episode, with tools to read, change and test it."""

import pytest

from hub.environments.compiled import CaseError
from hub.harnesses.base import HarnessError
from hub.protocols.cases import CaseData
from sandbox.errors import SandboxUnavailable
from tests.hub.playing import BrokenPool, assistant, calls, contents, episode

FILES = {
    "shop/cart.py": "def total(prices):\n    return sum(prices) + 1\n",
    "shop/__init__.py": "",
    "tests/test_cart.py": (
        "import unittest\nfrom shop.cart import total\n\n"
        "def test_two_prices():\n    prices = [1, 2]\n    assert total(prices) == 3\n\n"
        "class Empty(unittest.TestCase):\n    def test_nothing(self):\n        self.assertEqual(total([]), 0)\n"
    ),
    "logo.png": {"b64": "iVBORw=="},
}


def play(files=FILES, **options):
    return episode({"type": "code_repair", **options}, case=CaseData(id="c", input="Fix it.", files=files))


async def answers(playing, *named):
    return contents((await playing.step(calls(*named))).observation.messages)


def project(playing):
    return playing.environment.harness.scored_state(playing.state["harness"])["files"]


async def test_project_can_be_listed_and_read():
    playing = play()
    await playing.reset()
    listed, read, binary, missing = await answers(
        playing,
        ("list_files", {}),
        ("read_file", {"path": "shop/cart.py"}),
        ("read_file", {"path": "logo.png"}),
        ("read_file", {"path": "cart.py"}),
    )
    assert listed.splitlines()[0] == "logo.png (4 bytes)"
    assert read == FILES["shop/cart.py"]
    assert binary == "error: logo.png is a binary file"
    assert missing.startswith("error: there is no file 'cart.py'; the files are logo.png, shop/__init__.py")


async def test_visible_tests_report_both_sides_of_a_failed_comparison():
    playing = play()
    await playing.reset()
    (text,) = await answers(playing, ("run_tests", {}))
    assert "FAILED tests/test_cart.py::test_two_prices" in text
    assert "assert total(prices) == 3" in text
    assert "left: 4\n    right: 3" in text
    assert "FAILED tests/test_cart.py::Empty.test_nothing" in text
    assert "AssertionError: 1 != 0" in text
    assert text.endswith("0 passed, 2 failed")


async def test_visible_unittest_classes_run_with_their_fixtures():
    test_file = (
        "import unittest\n\n"
        "def setUpModule():\n    global tax\n    tax = 2\n\n"
        "class Cart(unittest.TestCase):\n"
        "    @classmethod\n    def setUpClass(cls):\n        cls.prices = [1, tax]\n\n"
        "    def test_prices(self):\n        self.assertEqual(self.prices, [1, 2])\n\n"
        "    @unittest.expectedFailure\n    def test_known_bug(self):\n        self.assertEqual(self.prices, [])\n\n"
        "    def test_each(self):\n"
        "        for price in self.prices:\n            with self.subTest(price=price):\n"
        "                self.assertEqual(price, 0)\n\n"
        "class Broken(unittest.TestCase):\n"
        "    @classmethod\n    def setUpClass(cls):\n        raise OSError('no shop')\n\n"
        "    def test_nothing(self):\n        pass\n\n"
        "class Stopping(unittest.TestCase):\n    def test_exit(self):\n        raise SystemExit(3)\n"
    )
    playing = play(files={"tests/test_cart.py": test_file})
    await playing.reset()
    (text,) = await answers(playing, ("run_tests", {}))
    assert "passed tests/test_cart.py::Cart.test_prices" in text
    assert "passed tests/test_cart.py::Cart.test_known_bug" in text
    assert "FAILED tests/test_cart.py::Cart.test_each" in text
    assert "AssertionError: 1 != 0" in text and "AssertionError: 2 != 0" in text
    assert "FAILED tests/test_cart.py::setUpClass (tests.test_cart.Broken)" in text and "OSError: no shop" in text
    assert "FAILED tests/test_cart.py::Stopping.test_exit" in text and "SystemExit: 3" in text
    assert text.endswith("2 passed, 3 failed")


async def test_fixed_project_passes_its_visible_tests():
    playing = play()
    await playing.reset()
    replaced, tested = await answers(
        playing, ("replace_in_file", {"path": "shop/cart.py", "old": " + 1", "new": ""}), ("run_tests", {})
    )
    assert replaced == "replaced 1 place in shop/cart.py"
    assert tested.endswith("2 passed, 0 failed")
    assert project(playing)["shop/cart.py"] == "def total(prices):\n    return sum(prices)\n"
    assert (await playing.step(assistant("Fixed."))).done


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("write_file", {"path": "../x.py", "content": ""}), "relative path inside the project"),
        (("write_file", {"path": "/x.py", "content": ""}), "relative path inside the project"),
        (("write_file", {"path": "a//x.py", "content": ""}), "relative path inside the project"),
        (("write_file", {"path": "a\nb", "content": ""}), "relative path inside the project"),
        (("write_file", {"path": "ü.py", "content": ""}), "relative path inside the project"),
        (("write_file", {"path": "shop", "content": ""}), "would have to be a folder"),
        (("write_file", {"path": "shop/cart.py/x.py", "content": ""}), "would have to be a folder"),
        (("write_file", {"path": "tests/test_cart.py", "content": ""}), "is a test; it can be read and run"),
        (("delete_file", {"path": "tests/test_cart.py"}), "is a test; it can be read and run"),
        (("write_file", {"path": "big.py", "content": "x" * 800_000}), "a project may have at most 786,432 bytes"),
        (("replace_in_file", {"path": "shop/cart.py", "old": "r", "new": "x"}), "occurs 4 times"),
        (("replace_in_file", {"path": "shop/cart.py", "old": "zz", "new": "x"}), "does not occur"),
        (("delete_file", {"path": "nothing.py"}), "there is no file"),
        (("write_file", {"path": "x.py"}), "missing argument content"),
    ],
)
async def test_invalid_change_returns_an_error_and_changes_nothing(call, said):
    playing = play()
    await playing.reset()
    (text,) = await answers(playing, call)
    assert text.startswith("error: ")
    assert said in text
    assert project(playing) == FILES


async def test_files_can_be_added_and_deleted():
    playing = play()
    await playing.reset()
    await answers(playing, ("write_file", {"path": "a/b.py", "content": "ü"}), ("delete_file", {"path": "logo.png"}))
    assert project(playing)["a/b.py"] == "ü"
    assert "logo.png" not in project(playing)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True: pass", "The run was stopped"),
        ("import os; os._exit(0)", "printed nothing"),
        ("raise SystemExit", "FAILED tests/test_cart.py"),
        ("def total(:", "SyntaxError"),
        ("print('x' * 200_000)", "[output cut]"),
    ],
)
async def test_model_is_informed_if_the_test_run_crashes(body, said):
    playing = play({**FILES, "shop/cart.py": body}, call_seconds=1 if "while" in body else 10)
    await playing.reset()
    (text,) = await answers(playing, ("run_tests", {}))
    assert said in text


async def test_project_without_visible_tests_is_reported():
    playing = play({"cart.py": "x = 1"})
    await playing.reset()
    assert await answers(playing, ("run_tests", {})) == ["error: the project has no visible tests"]


async def test_invalid_file_paths_of_a_case_are_an_environment_error():
    playing = play({"../a.py": "", "test_a.py": ""})
    await playing.reset()
    with pytest.raises(HarnessError, match="must be relative"):
        await playing.step(calls(("run_tests", {})))


async def test_case_without_files_is_an_environment_error():
    with pytest.raises(HarnessError, match="no files"):
        await play({}).reset()


async def test_sandbox_failure_is_an_error_and_not_a_wrong_answer():
    case = CaseData(id="c", input="Fix it.", files=FILES)
    playing = episode({"type": "code_repair"}, case=case, pool=BrokenPool())
    await playing.reset()
    with pytest.raises(SandboxUnavailable, match="no engine"):
        await playing.step(calls(("run_tests", {})))


HIDDEN = {"type": "python_tests", "entry_point": "shop.cart:total", "tests": [{"args": [[1, 2]], "expect": 3}]}


async def test_hidden_tests_score_the_final_files():
    for change, status in (("", "passed"), (" + 2", "failed"), (" +", "failed")):
        case = CaseData(id="c", input="Fix it.", files=FILES)
        playing = episode({"type": "code_repair"}, case=case, rules=[HIDDEN])
        await playing.reset()
        await answers(playing, ("replace_in_file", {"path": "shop/cart.py", "old": " + 1", "new": change}))
        step = await playing.step(assistant("Fixed."))
        assert step.score.status == status


async def test_invalid_options_are_rejected():
    with pytest.raises(CaseError, match="memory_mb"):
        play(memory_mb=1)

"""Tests of code that changes the arguments of a call after the call has returned: in `with` blocks and iterations."""

from textwrap import dedent

import pytest

from sandbox.client.pool import Pool
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Outcome, Status

LOG = """
from contextlib import contextmanager
@contextmanager
def f(log):
    log.append("enter")
    try:
        yield log
    except ValueError as error:
        log.append(str(error))
        raise
    finally:
        log.append("exit")
"""
TRANSACTION = """
from contextlib import contextmanager
@contextmanager
def f(database):
    work = dict(database)
    yield work
    database.clear()
    database.update(work)
"""
NESTED = """
from contextlib import contextmanager
@contextmanager
def f(data, key):
    before = data.get(key)
    data[key] = {"items": []}
    yield data[key]["items"]
    data["before"] = before
"""
WITHOUT_ARGUMENTS = """
from contextlib import contextmanager
@contextmanager
def f():
    items = []
    yield items
    items.append(len(items))
"""
CLASS = """
class f:
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append("enter")
    def __exit__(self, *error): self.log.append("exit")
"""
ASYNCHRONOUS = """
from contextlib import asynccontextmanager
@asynccontextmanager
async def f(log):
    log.append("enter")
    yield log
    log.append("exit")
"""
COROUTINE = """
import asyncio
async def f(log):
    await asyncio.sleep(0)
    log.append(1)
    return log
"""
ASYNCHRONOUS_GENERATOR = """
async def f(log):
    for i in range(2):
        log.append(i)
        yield i
"""
GENERATOR = """
def f(log):
    for i in range(2):
        log.append(i)
        yield i
    log.append("end")
"""
SENT = """
def f(log):
    try:
        given = yield
        given.sort()
        log.append(given)
        try:
            yield len(given)
        except ValueError as error:
            log.append("thrown")
            yield str(error)
    finally:
        log.append("closed")
"""
ENDING = """
def f():
    try:
        return (yield 1)
    except ValueError:
        return "thrown"
"""

PASSING = {
    "inside and after the block": (
        LOG,
        """
        log = []
        with candidate(log) as given:
            assert log == ["enter"] and given is log
            log.append("block")
        assert log == ["enter", "block", "exit"]
        """,
    ),
    "an exception of the block": (
        LOG,
        """
        log = []
        try:
            with candidate(log):
                raise ValueError("of the block")
        except ValueError:
            log.append("caught")
        assert log == ["enter", "of the block", "exit", "caught"]
        """,
    ),
    "several managers": (
        LOG,
        """
        import contextlib
        log = []
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(candidate(log))
        assert log == ["enter", "enter", "exit", "exit"]
        """,
    ),
    "an object given to the block": (
        TRANSACTION,
        """
        database = {"a": 1}
        with candidate(database) as work:
            work["b"] = [2]
            assert database == {"a": 1}
        assert database == {"a": 1, "b": [2]}
        """,
    ),
    "a part of an argument given to the block": (
        NESTED,
        """
        data = {"k": (1, 2)}
        with candidate(data, "k") as items:
            items.append(1)
            assert data == {"k": {"items": [1]}} and data["k"]["items"] is items
        assert data == {"k": {"items": [1]}, "before": (1, 2)}
        """,
    ),
    "an object given to the block without arguments": (
        WITHOUT_ARGUMENTS,
        """
        with candidate() as items:
            items.append("x")
        assert items == ["x", 1]
        """,
    ),
    "a class": (
        CLASS,
        """
        log = []
        for n in (1, 2):
            with candidate(log):
                assert log[-1] == "enter"
            assert log == ["enter", "exit"] * n
        """,
    ),
    "an asynchronous manager": (
        ASYNCHRONOUS,
        """
        import asyncio
        async def main():
            log = []
            async with candidate(log) as given:
                assert log == ["enter"] and given is log
                log.append("block")
            assert log == ["enter", "block", "exit"]
        asyncio.run(main())
        """,
    ),
    "a coroutine": (
        COROUTINE,
        """
        import asyncio
        log = []
        assert asyncio.run(candidate(log)) is log
        assert log == [1]
        """,
    ),
    "an asynchronous generator": (
        ASYNCHRONOUS_GENERATOR,
        """
        import asyncio
        async def main():
            log = []
            seen = [(item, list(log)) async for item in candidate(log)]
            assert seen == [(0, [0]), (1, [0, 1])]
        asyncio.run(main())
        """,
    ),
    "send, throw and close of a generator": (
        SENT,
        """
        log, sent = [], [3, 1]
        items = candidate(log)
        assert next(items) is None
        assert items.send(sent) == 2 and sent == [1, 3] and log == [[1, 3]] and log[0] is sent
        assert items.throw(ValueError("of the tests")) == "of the tests" and log[1:] == ["thrown"]
        items.close()
        assert log[2:] == ["closed"]
        """,
    ),
    "a generator that send and throw end": (
        ENDING,
        """
        for end in (lambda items: items.send(5), lambda items: items.throw(ValueError)):
            items = candidate()
            next(items)
            try:
                end(items)
                assert False
            except StopIteration as stop:
                assert stop.value in (5, "thrown")
        """,
    ),
    "a generator": (
        GENERATOR,
        """
        log = []
        items = candidate(log)
        assert next(items) == 0 and log == [0]
        log.append("tests")
        assert list(items) == [1]
        assert log == [0, "tests", 1, "end"]
        """,
    ),
}


def run(pool: Pool, code: str, tests: str) -> Outcome:
    body = "".join(f"    {line}\n" for line in dedent(tests).strip().splitlines())
    return pool.run(FunctionJob(code, "f", f"def check(candidate):\n{body}"))


@pytest.mark.parametrize("name", PASSING)
def test_later_change_of_an_argument_is_visible_to_tests_and_code(name: str, pool: Pool) -> None:
    code, tests = PASSING[name]
    exec(f"{code}\ncandidate = f\n{dedent(tests)}", {})  # as in plain Python

    outcome = run(pool, code, tests)

    assert outcome.status is Status.PASSED, outcome


def test_argument_that_a_manager_does_not_change_is_reported(pool: Pool) -> None:
    tests = "log = []\nwith candidate(log):\n    pass\nassert log == ['enter']"

    outcome = run(pool, CLASS.replace('.append("enter")', ".clear()"), tests)

    assert outcome.status is Status.ASSERTION
    assert outcome.failure is not None and outcome.failure.got == "['exit']"


def test_exception_of_an_assert_is_not_shown_to_the_code(pool: Pool) -> None:
    code = LOG.replace("except ValueError", "except BaseException")
    tests = """
        log = []
        try:
            with candidate(log):
                assert log == ["expected"], "secret"
        except AssertionError:
            pass
        assert log == ["enter", "", "exit"]
    """
    assert run(pool, code, tests).status is Status.PASSED


SWALLOWING = {
    "with": """
from contextlib import contextmanager
@contextmanager
def f(x):
    try:
        yield x
    except BaseException:
        pass
""",
    "async with": """
from contextlib import asynccontextmanager
@asynccontextmanager
async def f(x):
    try:
        yield x
    except BaseException:
        pass
""",
}


@pytest.mark.parametrize("statement", ["raise ValueError", "assert given == 2", "1 / 0"])
@pytest.mark.parametrize("block", SWALLOWING)
def test_exception_that_the_code_swallows_makes_no_pass(block: str, statement: str, pool: Pool) -> None:
    tests = f"""
        import asyncio
        async def main():
            {block} candidate(1) as given:
                {statement}
        caught = False
        try:
            asyncio.run(main())
        except Exception:
            caught = True
        assert caught
    """
    assert run(pool, SWALLOWING[block], tests).status is Status.UNSUPPORTED


@pytest.mark.parametrize("block", SWALLOWING)
def test_code_that_may_not_see_an_exception_does_not_fail(block: str, pool: Pool) -> None:
    code = SWALLOWING[block].replace("BaseException", "ZeroDivisionError")
    tests = f"""
        import asyncio
        async def main():
            {block} candidate(1):
                1 / 0
            return 5
        assert asyncio.run(main()) == 5
    """
    assert run(pool, code, tests).status is Status.UNSUPPORTED


def test_many_iterations_over_a_large_argument_stay_fast(pool: Pool) -> None:
    code = "def f(numbers):\n    for number in numbers:\n        yield number\n"
    tests = "numbers = list(range(20000))\nassert all(a == b for a, b in zip(candidate(numbers), numbers, strict=True))"

    outcome = run(pool, code, tests)

    assert outcome.status is Status.PASSED, outcome

"""Exceptions: raised, passed, wrapped, with attributes of their own."""

from tests.sandbox.correct_solutions.kind import Kind

FAILURES = [
    Kind(
        "raises-built-in",
        "def f(x):\n    if x < 0: raise ValueError(f'negative: {x}')\n    return x ** 0.5\n",
        """
        assert f(9) == 3
        try:
            f(-1)
            assert False, "nothing was raised"
        except ValueError as error:
            assert str(error) == "negative: -1"
        """,
        rows=[{"args": [9], "expect": 3}],
    ),
    Kind(
        "only-raises",
        "def f(x):\n    if not isinstance(x, int): raise TypeError('int wanted')\n    return x\n",
        """
        for bad in ("1", None, 2.5):
            try:
                f(bad)
                assert False
            except TypeError:
                pass
        """,
    ),
    Kind(
        "try-else",
        "def f(d, k): return d[k]\n",
        """
        try:
            f({}, "x")
        except KeyError:
            pass
        else:
            assert False, "no KeyError"
        assert f({"a": 1}, "a") == 1
        """,
        rows=[{"args": [{"a": 1}, "a"], "expect": 1}],
    ),
    Kind(
        "suppressed",
        "def f(x):\n    if x == 0: raise ZeroDivisionError\n    return 1 / x\n",
        """
        import contextlib
        with contextlib.suppress(ZeroDivisionError):
            f(0)
            assert False
        assert f(2) == 0.5
        """,
        rows=[{"args": [2], "expect": 0.5}],
    ),
    Kind(
        "raised-flag",
        "def f(x):\n    if x: raise RuntimeError('no')\n",
        """
        raised = False
        try:
            f(1)
        except RuntimeError:
            raised = True
        assert raised
        assert f(0) is None
        """,
        rows=[{"args": [0], "expect": None}],
    ),
    Kind(
        "own-exception-with-attributes",
        """
        class InsufficientFunds(Exception):
            def __init__(self, balance, wanted):
                super().__init__(f"{wanted} wanted, {balance} there")
                self.balance, self.wanted = balance, wanted
            @property
            def missing(self): return self.wanted - self.balance
        def f(balance, wanted):
            if wanted > balance: raise InsufficientFunds(balance, wanted)
            return balance - wanted
        """,
        """
        try:
            f(5, 8)
            assert False
        except InsufficientFunds as error:
            assert error.balance == 5
            assert error.wanted == 8
            assert "8 wanted" in str(error)
            assert error.missing == 3
        assert f(9, 2) == 7
        """,
    ),
    Kind(
        "exception-hierarchy",
        """
        class AppError(Exception): code = 500
        class NotFound(AppError, LookupError): code = 404
        def f(x):
            if x is None: raise NotFound("nothing")
            raise AppError("broken")
        """,
        """
        for wanted in (NotFound, LookupError, AppError, Exception):
            try:
                f(None)
                assert False
            except wanted as error:
                assert error.code == 404
        try:
            f(1)
            assert False
        except AppError as error:
            assert error.code == 500
            assert not isinstance(error, NotFound)
        """,
    ),
    Kind(
        "exception-str",
        "class Bad(Exception):\n    def __str__(self): return 'bad: ' + '/'.join(map(str, self.args))\ndef f(*a): raise Bad(*a)\n",
        """
        try:
            f(1, 2)
            assert False
        except Bad as error:
            assert str(error) == "bad: 1/2"
            assert error.args == (1, 2)
        """,
    ),
    Kind(
        "chained",
        "def f(s):\n    try:\n        return int(s)\n    except ValueError as e:\n        raise RuntimeError('not a number') from e\n",
        """
        try:
            f("x")
            assert False
        except RuntimeError as error:
            assert isinstance(error.__cause__, ValueError)
            assert "invalid literal" in str(error.__cause__)
        assert f("5") == 5
        """,
        rows=[{"args": ["5"], "expect": 5}],
    ),
    Kind(
        "exception-type-argument",
        """
        def f(call, *kinds):
            try:
                return call()
            except kinds as error:
                return type(error).__name__
        """,
        """
        assert f(lambda: 1 / 0, ZeroDivisionError) == "ZeroDivisionError"
        assert f(lambda: {}["x"], KeyError, IndexError) == "KeyError"
        assert f(lambda: 5, Exception) == 5
        """,
    ),
    Kind(
        "exception-answer",
        "def f(x):\n    try:\n        return int(x)\n    except ValueError as e:\n        return e\n",
        """
        assert f("1") == 1
        assert isinstance(f("x"), ValueError)
        assert "invalid" in str(f("x"))
        """,
    ),
    Kind(
        "exceptions-of-the-tests",
        """
        def f(times, call, kind):
            for n in range(times):
                try:
                    return call(n)
                except kind as error:
                    last = error
            raise last
        """,
        """
        class Flaky(Exception): pass
        seen = []
        def call(n):
            seen.append(n)
            if n < 2: raise Flaky(n)
            return "ok"
        assert f(3, call, Flaky) == "ok"
        assert seen == [0, 1, 2]
        try:
            f(2, call, Flaky)
            assert False
        except Flaky as error:
            assert error.args == (1,)
        """,
    ),
    Kind(
        "cleanup-on-error",
        """
        def f(log):
            try:
                log.append("work")
                raise KeyError("x")
            finally:
                log.append("cleanup")
        """,
        """
        log = []
        try:
            f(log)
            assert False
        except KeyError as error:
            assert error.args[0] == "x"
        assert log == ["work", "cleanup"]
        """,
    ),
    Kind(
        "os-error",
        "import errno\ndef f(): raise FileNotFoundError(errno.ENOENT, 'gone', 'a.txt')\n",
        """
        try:
            f()
            assert False
        except OSError as error:
            assert error.errno == 2
            assert error.filename == "a.txt"
        """,
    ),
    Kind(
        "group",
        "def f(): raise ExceptionGroup('both', [ValueError('a'), TypeError('b')])\n",
        """
        try:
            f()
            assert False
        except ExceptionGroup as group:
            assert [type(e) for e in group.exceptions] == [ValueError, TypeError]
        """,
    ),
    Kind(
        "stop-iteration-value",
        "def f():\n    yield 1\n    return 'done'\n",
        """
        g = f()
        assert next(g) == 1
        try:
            next(g)
            assert False
        except StopIteration as stop:
            assert stop.value == "done"
        """,
    ),
    Kind(
        "assertion-error-on-purpose",
        "def f(x):\n    assert x > 0, 'must be positive'\n    return x\n",
        """
        try:
            f(0)
        except AssertionError as error:
            assert "positive" in str(error)
        else:
            raise RuntimeError("accepted 0")
        assert f(1) == 1
        """,
        rows=[{"args": [1], "expect": 1}],
    ),
]

"""Tests that need the process of the code: patches, captured output, files, and fixtures of pytest."""

from tests.sandbox.correct_solutions.kind import Kind

PROCESSES = [
    Kind(
        "patched-library",
        "import random\ndef f(): return random.randint(1, 6) * 2\n",
        """
        from unittest.mock import patch
        with patch("random.randint", return_value=4):
            assert f() == 8
        """,
    ),
    Kind(
        "patched-input",
        "def f(): return int(input('n? ')) + 1\n",
        """
        from unittest.mock import patch
        with patch("builtins.input", return_value="41"):
            assert f() == 42
        """,
    ),
    Kind(
        "captured-output",
        "def f(name): print(f'Hello, {name}!')\n",
        """
        import contextlib
        import io
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            f("Ann")
        assert out.getvalue() == "Hello, Ann!\\n"
        """,
    ),
    Kind(
        "seeded-random",
        "import random\ndef f(xs):\n    xs = list(xs)\n    random.shuffle(xs)\n    return xs\n",
        """
        import random
        random.seed(7)
        a = f(range(20))
        random.seed(7)
        b = f(range(20))
        assert a == b
        assert sorted(a) == list(range(20))
        """,
    ),
    Kind(
        "environment-variable",
        "import os\ndef f(): return os.environ.get('MODE', 'none')\n",
        """
        import os
        assert f() == "none"
        os.environ["MODE"] = "fast"
        assert f() == "fast"
        del os.environ["MODE"]
        """,
    ),
]

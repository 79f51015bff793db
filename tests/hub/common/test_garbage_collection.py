"""Garbage collection: when it is off, and what it leaves out. Each in a process of its own, since it lasts."""

import subprocess
import sys

from django.conf import settings


def run(program: str) -> str:
    program = f"import gc\nfrom hub.common.garbage_collection import collect_seldom, loading\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_nothing_is_collected_while_modules_are_loaded() -> None:
    program = """
try:
    with loading():
        during = gc.isenabled()
        kept = [[] for _ in range(50_000)]
        raise ValueError
except ValueError:
    print(during, gc.isenabled(), gc.get_freeze_count() > 50_000)
"""
    assert run(program) == "False True True"


def test_objects_of_a_later_run_are_not_exempt() -> None:
    program = """
collect_seldom()
exempt = gc.get_freeze_count()
kept = [[] for _ in range(50_000)]
collect_seldom()
print(gc.isenabled(), 1_000 < exempt, gc.get_freeze_count() <= exempt)
"""
    assert run(program) == "True True True"


def test_cycles_are_collected_during_a_run() -> None:
    program = """
class Node: pass
collect_seldom()
for _ in range(100_000):
    node = Node()
    node.itself = node
print(sum(type(item) is Node for item in gc.get_objects()) < 20_000)
"""
    assert run(program) == "True"

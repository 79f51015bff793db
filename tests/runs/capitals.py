"""Small environment with the capitals of six countries, and runs of it."""

import json
from pathlib import Path
from typing import Any

from runs.config.parsing import read_config_text
from runs.config.resolve import source_for_command
from runs.config.schema import RunConfig
from runs.execution.runner import execute_run
from runs.execution.session.context import ExecutionOptions
from runs.models import Response, Run
from runs.services import config_of, create_run, resume_run
from tests.endpoint import Answer, completion
from tests.listeners import SilentListener
from tests.runs.config.resolution import find_environments

MANIFEST = """\
spec: 1
slug: capitals
version: 1.0.0
title: Capitals
summary: Name the capital.
category: domain-knowledge
dataset: {path: cases.jsonl, fields: {input: "Capital of {{ country }}?", target: capital}}
scoring: {rules: [{type: exact_match}]}
"""
CAPITALS = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi", "Norway": "Oslo", "Cuba": "Havana"}
ONE = [{"path": "capitals", "cases": ["france"]}]


def write_bundle(folder: Path) -> None:
    """Write the environment into the new folder *folder*."""
    folder.mkdir()
    (folder / "environment.yaml").write_text(MANIFEST)
    rows = [{"id": country.lower(), "country": country, "capital": city} for country, city in CAPITALS.items()]
    (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def config_text(url: str, **changes: Any) -> str:
    config: dict[str, Any] = {
        "name": "capitals",
        "environments": [{"path": "capitals"}],
        "models": [
            {
                "name": "small",
                "provider": "openai",
                "model": "m",
                "base_url": url,
                "price": {"input": 1.0, "cached_input": 0.5, "output": 10.0},
            }
        ],
        "concurrency": 4,
        "limits": {"retries": 0},
        "tracking": {"mlflow": False},
    }
    return json.dumps({**config, **changes})


def load(folder: Path, text: str) -> RunConfig:
    return read_config_text(text, source_for_command(folder, "test.yaml")).require_valid()


def start(folder: Path, text: str, *, use_cache: bool = True) -> tuple[Run, SilentListener]:
    config = load(folder, text)
    run = create_run(config=config, environments=find_environments(config))
    return execute(run, config, use_cache=use_cache)


def execute(run: Run, config: RunConfig, *, use_cache: bool = True) -> tuple[Run, SilentListener]:
    listener = SilentListener()
    options = ExecutionOptions(use_cache=use_cache)
    return execute_run(run=run, config=config, listener=listener, options=options), listener


def resume(run: Run, *, budget_usd: float | None = None) -> tuple[Run, SilentListener]:
    run = Run.objects.get(pk=run.pk)
    resume_run(run=run, budget_usd=budget_usd)
    return execute(run, config_of(run))


def answer_capital(request: dict[str, Any], _: int = 0) -> Answer:
    """Answer with the capital that the question asks for."""
    text = request["messages"][-1]["content"]
    return completion(next(city for country, city in CAPITALS.items() if country in text))


def statuses(run: Run) -> dict[str, str]:
    rows = Response.objects.filter(run_environment__run=run).values_list("case__external_id", "status")
    return dict(rows)


def all_passed(run: Run) -> bool:
    return list(statuses(run).values()) == ["passed"] * len(CAPITALS)

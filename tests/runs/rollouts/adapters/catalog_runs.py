"""Evaluations of the catalogue's gold and wrong answers, whose scores episodes must repeat."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.conf import settings

from hub.bundles.loader import open_bundle
from runs.models import Run
from tests.runs.capitals import start

CATALOG = settings.BASE_DIR / "hub" / "catalog"
SEED = 11
Lines = list[dict[str, Any]]


def read(path: Path) -> Lines:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: Lines) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def evaluated(slug: str, folder: Path) -> Run:
    """Run two models on every case: one replies with the bundle's gold answers, the other with its wrong answers.

    The n-th answer of a case is the n-th attempt. Attempts for which a case has no answer end as errored.
    """
    with open_bundle(CATALOG / slug) as bundle:
        manifest, roles = bundle.manifest, bundle.compile().roles
    assert isinstance(manifest.gold, str) and isinstance(manifest.wrong, str)
    attempts = 0
    for name in ("gold", "wrong"):
        count: Counter[str] = Counter()
        rows = []
        for row in read(CATALOG / slug / getattr(manifest, name)):
            count[str(row["case"])] += 1
            rows.append({**row, "environment": slug, "attempt": count[str(row["case"])]})
        attempts = max(attempts, *count.values())
        write(folder / f"{name}.jsonl", rows)
    config = {
        "name": slug,
        "environments": [{"path": str(CATALOG / slug)}],
        "models": [{"name": name, "provider": "replay", "responses": f"{name}.jsonl"} for name in ("gold", "wrong")],
        "roles": {role: [_recorded(role, CATALOG / slug, folder, attempts)] for role in roles},
        "attempts": attempts,
        "seed": SEED,
        "tracking": {"mlflow": False},
        "sandbox": {"accept": ["A", "B", "C"]},
    }
    return start(folder, json.dumps(config))[0]


def _recorded(role: str, bundle: Path, folder: Path, attempts: int) -> dict[str, Any]:
    """Register a model for a role that replies with the recordings of the bundle.

    A line that names no model serves both models, and one that names no attempt serves each attempt that has no line
    of its own.
    """
    recorded: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(read(bundle / "recordings.jsonl"), key=lambda row: ("attempt" in row, "model" in row)):
        for model in [row["model"]] if row.get("model") else ["gold", "wrong"]:
            for attempt in [row["attempt"]] if "attempt" in row else range(1, attempts + 1):
                call = (row["purpose"], str(row["case"]), row.get("turn"), row.get("rule"), row.get("seat"))
                recorded[(*call, model, attempt)] = {**row, "model": model, "attempt": attempt}
    write(folder / f"{role}.jsonl", list(recorded.values()))
    return {"name": role, "provider": "replay", "responses": f"{role}.jsonl"}

"""Bundles for tests: a small valid one, and functions that change it."""

import json
from pathlib import Path
from typing import Any

import yaml

MANIFEST: dict[str, Any] = {
    "spec": 1,
    "slug": "capitals",
    "version": "1.0.0",
    "title": "Capitals",
    "summary": "Name the capital.",
    "category": "domain-knowledge",
    "dataset": {
        "path": "cases.jsonl",
        "fields": {"id": "country", "input": "What is the capital of {{ country }}?", "target": "capital"},
    },
    "harness": {"type": "single_turn", "system": "Answer with the name alone."},
    "scoring": {"rules": [{"type": "exact_match"}]},
    "gold": {"content": "{{ capital }}"},
    "wrong": "wrong.jsonl",
}
ROWS: list[dict[str, Any]] = [
    {"country": "France", "capital": "Paris"},
    {"country": "Spain", "capital": "Madrid"},
    {"country": "Norway", "capital": "Oslo"},
]
WRONG = [{"case": row["country"], "content": "Lyon", "why": "not a capital"} for row in ROWS]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_bundle(folder: Path, *, files: dict[str, str | bytes] | None = None, **changes: Any) -> Path:
    """The good bundle in *folder*, with *changes* to its manifest (None takes a key out) and further *files*."""
    manifest = {key: value for key, value in {**MANIFEST, **changes}.items() if value is not None}
    contents: dict[str, str | bytes] = {
        "environment.yaml": yaml.safe_dump(manifest, sort_keys=False),
        "cases.jsonl": lines(ROWS),
        "wrong.jsonl": lines(WRONG),
        **(files or {}),
    }
    for path, content in contents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def write_bundle_with_examples(folder: Path) -> Path:
    """Write the bundle `shots`: as that of `write_bundle`, with an example before the question in the prompt."""
    roles = ("user", "assistant", "user")
    texts = ("Capital of Italy?", "Rome", "Capital of {{ country }}?")
    prompt = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    return write_bundle(folder, slug="shots", harness={"type": "single_turn", "prompt": prompt})

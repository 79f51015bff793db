"""Files that are logged as artifacts of a run."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from hub.common.output.foreign_text import clean
from runs.models import Run
from runs.reports.columns import result_json
from runs.results.counting import cell_responses
from runs.results.figures import CellResult

_COLUMNS = (
    "case__external_id",
    "attempt",
    "status",
    "score",
    "reason",
    "error_kind",
    "stop",
    "truncated",
    "refused",
    "turns",
    "input_tokens",
    "output_tokens",
    "latency_ms",
    "cost_usd",
    "role_cost_usd",
    "execution_status",
    "execution_ms",
)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), "utf-8", errors="replace")


def write_config(path: Path, run: Run) -> None:
    """Write the stored config of *run* as YAML."""
    path.write_text(yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True), "utf-8")


def write_results(path: Path, cells: Sequence[CellResult]) -> None:
    """Write a line for each result, with a column for each value in `eval --json`, such as `latency_ms.p50`."""
    rows = [dict(flatten(result_json(cell))) for cell in cells]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows([csv_field(row.get(name)) for name in columns] for row in rows)


def write_responses(path: Path, cell: CellResult) -> None:
    """Write a line for each response."""
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        table = csv.writer(file)
        table.writerow(["case", *_COLUMNS[1:]])
        rows = cell_responses(cell.run_environment, cell.run_model).values_list(*_COLUMNS)
        table.writerows([csv_field(value) for value in row] for row in rows.iterator(chunk_size=2000))


def write_tables(folder: Path, tables: Mapping[str, list[dict[str, object]]]) -> dict[str, str]:
    """Write tables in the format of MLflow's `log_table`, and return the tag by which MLflow finds them."""
    logged = []
    for name, rows in tables.items():
        columns = list(rows[0]) if rows else []
        write_json(folder / f"{name}.json", {"columns": columns, "data": [list(row.values()) for row in rows]})
        logged.append({"path": f"{name}.json", "type": "table"})
    return {"mlflow.loggedArtifacts": json.dumps(logged)} if logged else {}


def csv_field(value: object) -> object:
    """Return a value for CSV. A spreadsheet would compute text that begins like a formula, so it gets an apostrophe."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        text = clean(value)
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    return value


def flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield nested values by their path, such as `latency_ms.p50`."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{name}.")
        else:
            yield name, value

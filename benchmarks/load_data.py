"""Fill a PostgreSQL database of its own with many responses, for `benchmarks/pages.py`.

    .venv/bin/python benchmarks/load_data.py NAME [--server postgres://postgres@127.0.0.1:5432]
        [--responses 1000000] [--largest 50000] [--environments 500] [--preferences 100000] [--seed 1]

The database is created if it is missing. It must not contain runs. Environments, runs, results, pairs and preferences
are stored by the product's own services; responses, scores and model calls are copied with COPY. Equal options store
equal rows, except for their times and the keys of accounts. Archives of bundles are stored in `var/bench/NAME`.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.db.models import Model

    from hub.models import Case
    from runs.models import Run, RunEnvironment, RunModel

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

USER = "benchmark"
SERVER = "postgres://postgres@127.0.0.1:5432"
MODELS = {"model-a": 0.85, "model-b": 0.7, "model-c": 0.55, "model-d": 0.4}  # name -> share of correct answers
CATEGORIES = ("reasoning", "domain-knowledge", "instruction-following")
CASES = 25  # of an ordinary environment
# Responses of an ordinary run: 2 environments x 25 cases x 4 models x 5 attempts.
ENVIRONMENTS_OF_RUN, ATTEMPTS = 2, 5
RUN = ENVIRONMENTS_OF_RUN * CASES * len(MODELS) * ATTEMPTS
LARGEST_ATTEMPTS = 2


def use_database(name: str, server: str) -> None:
    """Set Django up for the database *name* on *server*; files are kept in `var/bench/NAME`."""
    os.environ["DATABASE_URL"] = f"{server.rstrip('/')}/{name}"
    os.environ["LLMEVAL_VAR"] = str(ROOT / "var" / "bench" / name)
    os.environ["DJANGO_SETTINGS_MODULE"] = "llmeval_site.settings"
    Path(os.environ["LLMEVAL_VAR"]).mkdir(parents=True, exist_ok=True)
    import django

    django.setup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the database")
    parser.add_argument("--server", default=SERVER)
    parser.add_argument("--responses", type=int, default=1_000_000)
    parser.add_argument("--largest", type=int, default=50_000, help="responses of the largest run")
    parser.add_argument("--environments", type=int, default=500)
    parser.add_argument("--preferences", type=int, default=100_000, help="at least so many, if there are enough pairs")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.name in ("postgres", "template0", "template1", os.environ.get("DATABASE_URL", "").rpartition("/")[2]):
        sys.exit(f"{options.name} is not a database of its own; choose another name.")
    _create_database(options.name, options.server)
    use_database(options.name, options.server)
    from django.core.management import call_command

    from runs.models import Run

    call_command("migrate", verbosity=0)
    if Run.objects.exists():
        sys.exit(f"{options.name} already contains runs; choose another name, or drop it.")
    Loader(options).load()


def _create_database(name: str, server: str) -> None:
    import psycopg
    from psycopg import sql

    with psycopg.connect(f"{server.rstrip('/')}/postgres", autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


class Loader:
    """Stores the rows. Ids of responses are counted here, because scores refer to them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.next_response = count(1)
        self.started = time.monotonic()

    def load(self) -> None:
        from django.contrib.auth.models import User
        from django.core.management.color import no_style
        from django.db import connection

        from runs.models import Response, Score

        options = self.options
        self.user = User.objects.create_superuser(USER)
        ordinary = [self.store_environment(f"bench-{i:04}", CASES) for i in range(options.environments - 1)]
        largest = self.store_environment("bench-largest", options.largest // (len(MODELS) * LARGEST_ATTEMPTS))
        self.report(f"{options.environments} environments")
        runs, stored = [], 0
        planned = max(1, (options.responses - options.largest) // RUN)
        for i in range(planned):
            slugs = [ordinary[(i * ENVIRONMENTS_OF_RUN + k) % len(ordinary)] for k in range(ENVIRONMENTS_OF_RUN)]
            run, written = self.store_run(f"bench-{i:04}", slugs, ATTEMPTS)
            runs.append(run)
            stored += written
            if i % 50 == 49:
                self.report(f"{i + 1} of {planned + 1} runs, {stored:,} responses")
        run, written = self.store_run("bench-largest", [largest], LARGEST_ATTEMPTS)
        runs.append(run)
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), [Response, Score]):
                cursor.execute(statement)
            cursor.execute("ANALYZE")
        self.report(f"{len(runs)} runs, {stored + written:,} responses")
        self.store_results(runs)
        self.store_preferences(runs[::-1])
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        self.report("all statistics of tables; done")

    def report(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:7.1f} s  {text}", flush=True)

    def store_environment(self, slug: str, cases: int) -> str:
        """Store and publish an environment with *cases* cases; return its slug."""
        from hub.models import Environment
        from hub.services import import_bundle

        with tempfile.TemporaryDirectory() as folder:
            lines = (
                json.dumps({"id": f"c{i}", "input": f"Repeat the number {i}.", "target": str(i), "level": i % 5})
                for i in range(cases)
            )
            Path(folder, "cases.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
            Path(folder, "README.md").write_text(f"# {slug}\n\nNumbers are repeated.\n", encoding="utf-8")
            Path(folder, "environment.yaml").write_text(
                f"spec: 1\nslug: {slug}\nversion: 1.0.0\ntitle: Numbers of {slug}\nsummary: Numbers are repeated.\n"
                f"category: {self.random.choice(CATEGORIES)}\ndataset: {{path: cases.jsonl}}\n"
                "scoring: {rules: [{type: number}]}\n"
            )
            import_bundle(bundle=folder)
        Environment.objects.filter(slug=slug).update(visibility=Environment.Visibility.PUBLISHED)
        return slug

    def store_run(self, name: str, slugs: Sequence[str], attempts: int) -> tuple["Run", int]:
        """Store a completed run with its responses, scores and model calls; return it and the number of responses."""
        from django.utils import timezone

        from hub.models import Case
        from runs.config.parsed import ParsedConfig
        from runs.config.parsing import read_config
        from runs.config.resolve import resolve_config, source_for_command
        from runs.models import Run
        from runs.services import create_run

        models = [
            {"name": label, "provider": "openai", "model": label, "base_url": "http://127.0.0.1:9/v1"}
            for label in MODELS
        ]
        parsed = read_config(
            {
                "name": name,
                "environments": list(slugs),
                "models": models,
                "attempts": attempts,
                "tracking": {"mlflow": False},
            },
            ParsedConfig(source_for_command(None, name)),
        )
        resolved = resolve_config(parsed)
        run = create_run(config=resolved.config, environments=resolved.environments, user=self.user)
        at = timezone.now()
        written = 0
        for environment in run.environments.all():
            cases = list(Case.objects.filter(version=environment.version_id))
            for model in run.models.filter(role=""):
                written += self.copy_responses(environment, model, cases, attempts, at)
        Run.objects.filter(pk=run.pk).update(
            status=Run.Status.COMPLETED,
            started_at=at - timedelta(seconds=60),
            finished_at=at,
            evaluated_at=at,
            seconds=60.0,
            cost_usd=written * 0.0001,
            remaining=0,
        )
        run.refresh_from_db()
        return run, written

    def copy_responses(
        self,
        environment: "RunEnvironment",
        model: "RunModel",
        cases: Sequence["Case"],
        attempts: int,
        at: datetime,
    ) -> int:
        """Copy the responses of one model in one environment; return their number."""
        from runs.models import ModelCall, Response, Score

        share = MODELS[model.label]
        responses, scores, calls = [], [], []
        for case in cases:
            for attempt in range(1, attempts + 1):
                pk = next(self.next_response)
                passed = self.random.random() < share
                text = f"The answer is {case.data['target'] if passed else 'unknown: ' + str(pk)}."
                latency = round(self.random.lognormvariate(6, 0.5), 1)
                reason = "" if passed else "The answer contains no number that equals the target."
                messages = [{"role": "user", "content": case.data["input"]}, {"role": "assistant", "content": text}]
                responses.append(
                    Response(
                        id=pk,
                        run_environment=environment,
                        run_model=model,
                        case_id=case.pk,
                        attempt=attempt,
                        status="passed" if passed else "failed",
                        score=float(passed),
                        reason=reason,
                        messages=messages,
                        text=text,
                        finish_reason="stop",
                        stop="done",
                        turns=1,
                        input_tokens=12,
                        output_tokens=8,
                        latency_ms=latency,
                        cost_usd=0.0001,
                        created_at=at,
                    )
                )
                scores.append(
                    Score(
                        id=pk,
                        response_id=pk,
                        position=0,
                        rule="number",
                        type="number",
                        value=float(passed),
                        reason=reason,
                    )
                )
                calls.append(
                    ModelCall(
                        key=hashlib.sha256(f"{self.options.seed}-{pk}".encode()).hexdigest(),
                        purpose="answer",
                        model=model.label,
                        message=messages[1],
                        finish_reason="stop",
                        usage={"input_tokens": 12, "output_tokens": 8},
                        latency_ms=latency,
                        cost_usd=0.0001,
                        paid_by=model,
                        created_at=at,
                    )
                )
        for rows in (responses, scores, calls):
            copy_rows(rows)
        return len(responses)

    def store_results(self, runs: Iterable["Run"]) -> None:
        """Store the figures of each run."""
        from runs.results.stored import store_results

        for i, run in enumerate(runs):
            store_results(run)
            if i % 100 == 99:
                self.report(f"results of {i + 1} runs")

    def store_preferences(self, runs: Iterable["Run"]) -> None:
        """Store pairs with preferences by execution, and a judgment and a decision for some of them."""
        from preferences.models import Preference
        from preferences.services import JudgeIdentity, NewPreference, record_preferences
        from review.models import Pair
        from review.services import create_pairs, record_execution_preferences

        judge = JudgeIdentity(label="judge", fingerprint="f" * 64, prompt_version="1", orders=["first", "first"])
        for run in runs:
            stored = Preference.objects.count()
            if stored >= self.options.preferences:
                break
            pairs = create_pairs(run=run, policy="all", across="both")
            record_execution_preferences(pairs=pairs)
            some = Pair.objects.filter(run=run).select_related("first", "second")[:1000]
            verdicts = [self.random.choice(["first", "second", "tie"]) for _ in some]
            record_preferences(
                [
                    NewPreference(first=pair.first, second=pair.second, verdict=verdict, **by)
                    for pair, verdict in zip(some, verdicts, strict=True)
                    for by in ({"judge": judge}, {"reviewer": self.user})
                ]
            )
            # Other pairs wait for review.
            waiting = list(Pair.objects.filter(run=run).values_list("pk", flat=True)[1000:3000])
            Pair.objects.filter(pk__in=waiting).update(overlap=1, free=1)
            self.report(f"{Preference.objects.count():,} preferences")


def copy_rows(rows: Sequence["Model"]) -> None:
    """Copy unsaved instances of one model into its table."""
    from django.db import connection

    from hub.common.fields import OrderedJSONField

    fields = rows[0]._meta.concrete_fields
    columns = ", ".join(connection.ops.quote_name(field.column) for field in fields)
    table = connection.ops.quote_name(rows[0]._meta.db_table)
    json_fields = {field.attname for field in fields if isinstance(field, OrderedJSONField)}
    names = [(field.attname, field.attname in json_fields) for field in fields]
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for values in _values(rows, names):
            copy.write_row(values)


def _values(rows: Iterable["Model"], names: Sequence[tuple[str, bool]]) -> Iterator[list[object]]:
    for row in rows:
        values = []
        for name, is_json in names:
            value = getattr(row, name)
            values.append(json.dumps(value) if is_json and value is not None else value)
        yield values


if __name__ == "__main__":
    main()

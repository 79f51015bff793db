"""Speed of the review page with 200,000 waiting pairs: loading the page, and a decision that returns the next pair.

    python benchmarks/review.py [PAIRS] [DECISIONS] [RUNS]

Prints wall time, processor time of this process, and the number of queries. Other processes on the machine affect the
first, and hardly the second. The pairs are spread over RUNS runs, every tenth of them private to another user. Each
pair has a suggestion with issues, and is decided by two people.

Uses a test database on DATABASE_URL's server (by default SQLite in a temporary folder), which is created and dropped.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations, islice
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")

SAID = "Here it is.\n\n" + "```python\ndef f(x):\n    # as asked\n    return x + 1\n```\n" * 10


class Timed:
    """Times of one kind of request."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock: list[float] = []
        self.processor: list[float] = []
        self.queries: list[int] = []

    def __call__(self, request: Callable[[], Any]) -> Any:
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            clock, processor = time.perf_counter(), time.process_time()
            answer = request()
            self.clock.append(1000 * (time.perf_counter() - clock))
            self.processor.append(1000 * (time.process_time() - processor))
        self.queries.append(len(captured))
        return answer

    def __str__(self) -> str:
        clock, processor = quantiles(self.clock, n=20), quantiles(self.processor, n=20)
        return (
            f"{self.name}: clock p50 {clock[9]:.1f} ms, p95 {clock[18]:.1f} ms; "
            f"processor p50 {processor[9]:.1f} ms, p95 {processor[18]:.1f} ms; at most {max(self.queries)} queries"
        )


def main(pairs: int, decisions: int, runs: int) -> None:
    import django

    django.setup()
    from django.db import connection
    from django.test import Client
    from django.test.utils import setup_test_environment

    setup_test_environment()
    name = connection.creation.create_test_db(verbosity=0)
    try:
        fill(pairs, runs)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")  # as autovacuum does within a minute of such a load
        client = Client()
        times = review(client, decisions)
        print(f"{connection.vendor}, {pairs:,} pairs of {runs:,} runs, {decisions} decisions")
        print(*times, sep="\n")
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def review(client: Any, decisions: int) -> list[Timed]:
    """Measure one reviewer who decides pairs as the script of the page does: each response is the next pair."""
    from tests.review.pages import reviewer

    client.force_login(reviewer())
    page, decision = Timed("page"), Timed("decision to next page")
    address = client.get("/review/", follow=True).redirect_chain[-1][0]
    for _ in range(decisions):
        answer = page(lambda: client.get(address))  # noqa: B023 - called at once
        assert answer.status_code == 200, answer.status_code
        given = {"verdict": "tie"}
        answer = decision(lambda: client.post(f"{address}decision/", given, headers={"HX-Request": "true"}))  # noqa: B023
        assert answer.status_code == 200, answer.status_code
        if "HX-Push-Url" in answer.headers:  # else a first verdict, whose suggestion was hidden
            address = answer.headers["HX-Push-Url"]
    return [page, decision, large(client)]


def large(client: Any) -> Timed:
    """A pair of two responses of 200 KB each, the most that a page is made for."""
    from tests.review.pages import waiting_pairs

    (pair,) = waiting_pairs(1, texts=(SAID * (200_000 // len(SAID)), "x = 'some words'  # remark\n" * 7_500))
    client.post(f"/review/{pair.pk}/take/")
    page = Timed("page of two responses of 200 KB")
    for _ in range(10):
        assert page(lambda: client.get(f"/review/{pair.pk}/")).status_code == 200
    return page


def fill(pairs: int, runs: int) -> None:
    """Runs of one case each, with enough responses of one model to form their share of *pairs* pairs."""
    from django.contrib.auth.models import User

    from hub.models import Environment
    from tests.factories import stored_version

    seen, hidden = stored_version("seen", cases=1), stored_version("hidden", cases=1)
    owner = User.objects.create_user("owner")
    Environment.objects.filter(slug="seen").update(visibility="published")
    Environment.objects.filter(slug="hidden").update(visibility="private", owner=owner)
    for i in range(runs):
        _fill_run(seen if i % 10 or runs == 1 else hidden, pairs // runs, i)


def _fill_run(version: Any, pairs: int, number: int) -> None:
    from preferences.models import Issue, IssueCategory, Preference
    from review.models import Pair
    from runs.models import Response, Score
    from tests.factories import stored_run

    run, case = stored_run(version), version.cases.get()
    part, model = run.environments.get(), run.models.get()
    count = next(n for n in range(2, pairs + 3) if n * (n - 1) // 2 >= pairs)
    responses = Response.objects.bulk_create(
        Response(
            run_environment=part,
            run_model=model,
            case=case,
            attempt=i + 1,
            status="passed",
            score=1.0,
            text=SAID,
            messages=[{"role": "user", "content": "Add one."}, {"role": "assistant", "content": f"{SAID}{i}"}],
        )
        for i in range(count)
    )
    Score.objects.bulk_create(
        Score(response=item, position=i, rule=f"rule-{i}", type="regex", value=1.0)
        for item in responses
        for i in (0, 1)
    )
    both = list(islice(combinations(responses, 2), pairs))
    suggestions = Preference.objects.bulk_create(
        (
            Preference(first=a, second=b, verdict="tie", source="llm", judge="j", confidence=0.7, run=run,
                       version=version, case=case, critique="They do the same.")
            for a, b in both
        ),
        batch_size=2000,
    )  # fmt: skip
    category = IssueCategory.objects.order_by("position")[0]
    Issue.objects.bulk_create(
        (
            Issue(preference=item, response=item.first, category=category, message=1, start=0, end=11, quote=SAID[:11])
            for item in suggestions
        ),
        batch_size=5000,
    )
    Pair.objects.bulk_create(
        (
            Pair(run=run, case=case, first=a, second=b, kind="both_pass", position=i * 7919 + number, overlap=2, free=2,
                 suggestion=suggestion)
            for i, ((a, b), suggestion) in enumerate(zip(both, suggestions, strict=True))
        ),
        batch_size=5000,
    )  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="llmeval-bench-") as folder:
        os.environ.setdefault("LLMEVAL_VAR", folder)
        given = [int(text) for text in sys.argv[1:4]]
        main(*(given + [200_000, 40, 200][len(given) :]))

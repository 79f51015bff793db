"""How fast the review page is with 200,000 pairs waiting: page and decision-to-next-pair, server time at p50 and p95.

    python benchmarks/review.py [PAIRS] [DECISIONS]

Uses a test database on DATABASE_URL's server (by default SQLite in a temporary folder), which is made and dropped here.
"""

import os
import sys
import tempfile
import time
from itertools import combinations, islice
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")


def main(pairs: int, decisions: int) -> None:
    import django

    django.setup()
    from django.db import connection
    from django.test import Client
    from django.test.utils import setup_test_environment

    setup_test_environment()
    name = connection.creation.create_test_db(verbosity=0)
    try:
        fill(pairs)
        from tests.review.pages import reviewer

        client = Client()
        client.force_login(reviewer())
        pages, rounds = [], []
        for _ in range(decisions):
            answer = client.get("/review/", follow=True)
            assert answer.status_code == 200, answer.status_code
            address = answer.redirect_chain[-1][0]
            start = time.perf_counter()
            client.get(address)
            pages.append(time.perf_counter() - start)
            start = time.perf_counter()
            client.post(f"{address}decision/", {"verdict": "tie"}, follow=True)
            rounds.append(time.perf_counter() - start)
        print(f"{connection.vendor}, {pairs:,} pairs, {decisions} decisions")
        for what, times in (("page", pages), ("decision to next page", rounds)):
            cuts = quantiles(times, n=20)
            print(f"{what}: p50 {1000 * cuts[9]:.1f} ms, p95 {1000 * cuts[18]:.1f} ms")
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def fill(pairs: int) -> None:
    """One case with enough responses of one model to form *pairs* pairs."""
    from hub.models import Environment
    from review.models import Pair
    from runs.models import Response
    from tests.factories import stored_run, stored_version

    version = stored_version(cases=1)
    Environment.objects.update(visibility="published")
    run, case = stored_run(version), version.cases.get()
    count = 2
    while count * (count - 1) // 2 < pairs:
        count += 1
    code = "```python\ndef f(x):\n    return x + 1  # as asked\n```\n" * 10
    part, model = run.environments.get(), run.models.get()
    Response.objects.bulk_create(
        Response(
            run_environment=part,
            run_model=model,
            case=case,
            attempt=i + 1,
            status="passed",
            score=1.0,
            text=code,
            messages=[{"role": "user", "content": "Add one."}, {"role": "assistant", "content": f"{code}{i}"}],
        )
        for i in range(count)
    )
    ids = list(Response.objects.values_list("pk", flat=True))
    wanted = islice(combinations(ids, 2), pairs)
    Pair.objects.bulk_create(
        (
            Pair(run=run, case=case, first_id=a, second_id=b, kind="both_pass", position=i, overlap=1, free=1)
            for i, (a, b) in enumerate(wanted)
        ),
        batch_size=5000,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="llmeval-bench-") as folder:
        os.environ.setdefault("LLMEVAL_VAR", folder)
        main(*(int(given) for given in [*sys.argv[1:], "200000", "40"][:2]))

"""The adapters of `llmeval_client` with the real packages, each in a virtual environment of its own.

The packages exclude each other (verifiers and OpenEnv need different versions of mcp), so the tests of
`clients/python/tests` run in a process per adapter, against the server of this test.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from hub.models import Environment
from llmeval_site.accounts.tokens import create_token
from runs.models import Response
from tests.processes import python_with
from tests.runs.rollouts.adapters.catalog_runs import evaluated

CLIENT = settings.BASE_DIR / "clients" / "python"
ENVIRONMENTS = ["word-problems", "order-desk", "changing-plans"]
SAMPLE = 3  # answers of each environment that passed, and as many that failed

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1200),  # includes the installation
]


# Each installs about a hundred packages.
all_adapters = pytest.mark.skipif("LLMEVAL_ALL_ADAPTERS" not in os.environ, reason="takes minutes: make test-adapters")
training = pytest.mark.skipif(
    "LLMEVAL_ADAPTER_TRAINING" not in os.environ, reason="needs torch: make test-adapters-training"
)


def exchange(url: str, folder: Path) -> Path:
    """Evaluate answers of the catalogue, and write address, token and the scored answers to a file."""
    answers: list[dict[str, Any]] = []
    for slug in ENVIRONMENTS:
        (folder / slug).mkdir()
        run = evaluated(slug, folder / slug)
        rows = Response.objects.filter(run_model__run=run).select_related("case").order_by("pk")
        for status in ("passed", "failed"):
            answers += [
                {
                    "environment": slug,
                    "case": row.case.external_id,
                    "attempt": row.attempt,
                    "messages": [message for message in row.messages if message["role"] == "assistant"],
                    "transcript": row.messages,
                    "score": row.score,
                    "status": row.status,
                }
                for row in rows.filter(status=status)[:SAMPLE]
            ]
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    _, token = create_token(user=User.objects.create_user("trainer"), scopes=["train"])
    path = folder / "exchange.json"
    path.write_text(json.dumps({"url": url, "token": token, "answers": answers}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "adapter",
    [
        pytest.param("openenv", marks=all_adapters),
        "trl",
        pytest.param("trl_training", marks=training),
        pytest.param("verifiers", marks=all_adapters),
    ],
)
def test_adapter_with_the_real_package(live_server: Any, tmp_path: Path, adapter: str) -> None:
    python = python_with(
        CLIENT / "requirements" / f"{adapter}.txt",
        alone=adapter != "trl_training",  # what torch needs depends on its build
    )
    environment = {
        **os.environ,
        "LLMEVAL_ADAPTER_TEST": str(exchange(live_server.url, tmp_path)),
        "PYTHONPATH": os.pathsep.join([str(CLIENT), str(settings.BASE_DIR)]),
    }
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/test_{adapter}.py"],
        cwd=CLIENT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout[-2000:])
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-4000:]

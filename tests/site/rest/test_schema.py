"""Requests that schemathesis generates from the OpenAPI schema: no 5xx and no undocumented answer."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.throttling import SimpleRateThrottle

from hub.models import Environment
from llmeval_site.accounts.tokens import create_token
from llmeval_site.models import ApiToken
from tests.processes import python_with
from tests.runs.rollouts.adapters.catalog_runs import evaluated

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1200),  # includes the installation
]
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)


@pytest.fixture
def unthrottled(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = dict.fromkeys(SimpleRateThrottle.THROTTLE_RATES)
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", rates)


@pytest.mark.usefixtures("unthrottled")
def test_generated_requests_get_documented_answers(live_server: Any, tmp_path: Path) -> None:
    evaluated("word-problems", tmp_path)
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    _, token = create_token(user=User.objects.create_superuser("root"), scopes=ApiToken.Scope.values)
    python = python_with(Path(__file__).with_name("schemathesis.txt"), alone=False)
    options = {
        "--header": f"Authorization: Token {token}",
        "--checks": CHECKS,
        "--phases": "coverage",
        "--request-timeout": "30",
        "--request-retries": "2",  # the test server closes connections whose body it did not read
        "--warnings": "off",
    }
    command = [str(python.with_name("st")), "run", f"{live_server.url}/api/v1/schema/", "--continue-on-failure"]
    command += [word for option in options.items() for word in option]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4000:]

"""A run on three workers survives killed processes and services that fail (tests/chaos)."""

import subprocess
import sys

import psycopg
import pytest
from django.conf import settings

from tests.chaos.services import has_redis_server, postgres_url
from tests.services import unavailable


@pytest.mark.exhaustive
def test_run_completes_exactly_once_while_processes_and_services_fail() -> None:
    if not has_redis_server():
        unavailable("redis", "the command redis-server is not installed")
    try:
        psycopg.connect(postgres_url(), connect_timeout=3).close()
    except psycopg.Error as error:
        unavailable("postgres", str(error))
    command = [sys.executable, "-m", "tests.chaos"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr

"""Settings for a network, and the check of the database in docker-compose.yml."""

import os
import subprocess
import sys
from pathlib import Path

import yaml
from django.conf import settings


def test_production_settings_pass_deployment_checks(tmp_path: Path) -> None:
    environment = {**os.environ, "LLMEVAL_HTTPS": "1", "LLMEVAL_VAR": str(tmp_path), "LLMEVAL_DEBUG": "0"}
    environment.pop("DATABASE_URL", None)
    environment.pop("LLMEVAL_PRIVATE_ENDPOINTS", None)
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_database_of_compose_is_healthy_only_once_it_can_be_reached_over_tcp() -> None:
    services = yaml.safe_load((settings.BASE_DIR / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    command = services["postgres"]["healthcheck"]["test"]
    assert "pg_isready" in command
    assert command[command.index("--host") + 1] == "127.0.0.1"

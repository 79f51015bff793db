"""Settings for a network pass Django's own checks for deployment."""

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings


def test_production_settings_pass_deployment_checks(tmp_path: Path) -> None:
    environment = {**os.environ, "LLMEVAL_HTTPS": "1", "LLMEVAL_VAR": str(tmp_path), "LLMEVAL_DEBUG": "0"}
    environment.pop("DATABASE_URL", None)
    environment.pop("LLMEVAL_PRIVATE_ENDPOINTS", None)
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

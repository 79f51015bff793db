"""`manage.py sandbox_check`: tiers and attacks of this machine, and exit code 3 if no tier is accepted."""

import io
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from sandbox.checks import check_isolation
from sandbox.client.options import PoolOptions
from sandbox.client.pool import Pool


def best_tier() -> str:
    with Pool.open(PoolOptions(backend="local", accept=frozenset("ABC"))) as pool:
        return pool.tier


def test_sandbox_check_prints_every_tier_and_attack() -> None:
    out = io.StringIO()
    call_command("sandbox_check", "--accept", "ABC", stdout=out)
    text = out.getvalue()
    assert "open a TCP socket" in text
    assert f"The local backend reaches tier {best_tier()}: code would run." in text
    for tier in "ABC":
        assert f"Tier {tier}" in text


def test_sandbox_check_prints_json() -> None:
    out = io.StringIO()
    call_command("sandbox_check", "--accept", "ABC", "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert (found["backend"], found["tier"], found["refused"]) == ("local", best_tier(), False)
    assert found["tiers"]["C"]["reached"] == "C"


def test_sandbox_check_exits_3_if_tier_is_not_accepted() -> None:
    weaker = {"A": "C", "B": "A", "C": "A"}[best_tier()]
    out = io.StringIO()
    with pytest.raises(SystemExit) as exit_:
        call_command("sandbox_check", "--accept", weaker, stdout=out)
    assert exit_.value.code == 3
    assert "refused" in out.getvalue()


def test_sandbox_check_exits_3_if_backend_does_not_work() -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as exit_:
        call_command("sandbox_check", "--backend", "socket", "--socket", "/nonexistent/s.sock", stdout=out)
    assert exit_.value.code == 3


def test_sandbox_check_uses_backend_of_settings(settings: Any) -> None:
    settings.SANDBOX_BACKEND, settings.SANDBOX_SOCKET = "socket", "/nonexistent/s.sock"
    out = io.StringIO()
    with pytest.raises(SystemExit) as exit_:
        call_command("sandbox_check", stdout=out)
    assert exit_.value.code == 3
    assert "does not answer at /nonexistent/s.sock" in out.getvalue()


@pytest.mark.parametrize("tiers", ["Z", "AZ", "", ","])
def test_accept_rejects_unknown_tiers(tiers: str) -> None:
    with pytest.raises(CommandError, match=r"the tiers are A, B and C"):
        call_command("sandbox_check", "--accept", tiers)


def test_deployment_check_warns_only_about_tier_c() -> None:
    warnings = check_isolation(None)
    assert bool(warnings) is (best_tier() == "C")


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="Only root can drop capabilities.")
def test_sandbox_check_says_why_root_without_capabilities_cannot_isolate_code() -> None:
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "manage.py", "sandbox_check"]
    done = subprocess.run(words, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines)) == (3, 4), done.stdout
    assert all("it cannot isolate code: " in line and "oot needs CAP_S" in line for line in lines[:3]), lines

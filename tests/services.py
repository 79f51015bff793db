"""Servers and programs that some tests need: skipped by name where missing, failed where LLMEVAL_REQUIRE says so."""

import os
from typing import NoReturn

import pytest


def unavailable(service: str, why: str) -> NoReturn:
    """Skip the running test, or fail it where LLMEVAL_REQUIRE names *service* (postgres, redis, docker, browser)."""
    required = {name.strip() for name in os.environ.get("LLMEVAL_REQUIRE", "").split(",")}
    if service in required:
        pytest.fail(f"{service} is required (LLMEVAL_REQUIRE) and not available: {why}", pytrace=False)
    pytest.skip(f"{service}: {why}")

"""Servers and programs that some tests need. Such tests are skipped if one is missing, unless it is required."""

import os
from typing import NoReturn

import pytest


def unavailable(service: str, why: str) -> NoReturn:
    """Skip the test, or fail it if LLMEVAL_REQUIRE lists *service* (postgres, redis, docker, browser)."""
    required = {name.strip() for name in os.environ.get("LLMEVAL_REQUIRE", "").split(",")}
    if service in required:
        pytest.fail(f"{service} is required (LLMEVAL_REQUIRE) but not available: {why}", pytrace=False)
    pytest.skip(f"{service}: {why}")

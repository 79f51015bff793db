"""Servers and programs that some tests need. Such tests are skipped if one is missing, unless it is required."""

import os
from typing import Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import redis
from django.conf import settings

_REDIS_DATABASES = 16  # of a Redis server with the default configuration


def unavailable(service: str, why: str) -> NoReturn:
    """Skip the test, or fail it if LLMEVAL_REQUIRE lists *service* (postgres, redis, docker, browser)."""
    required = {name.strip() for name in os.environ.get("LLMEVAL_REQUIRE", "").split(",")}
    if service in required:
        pytest.fail(f"{service} is required (LLMEVAL_REQUIRE) but not available: {why}", pytrace=False)
    pytest.skip(f"{service}: {why}")


def database_server() -> psycopg.Connection[Any]:
    """Return a connection to the PostgreSQL server of the test database, but to another database on it."""
    given = settings.DATABASES["default"]
    return psycopg.connect(
        host=given["HOST"],
        port=given["PORT"] or 5432,
        user=given["USER"],
        password=given["PASSWORD"],
        dbname="postgres",
        autocommit=True,
    )


def redis_url() -> str:
    """Return the URL of this worker's database on the Redis server of the tests.

    Workers of pytest-xdist run at the same time, and tests empty their database, so each worker has one of its own.
    """
    url = urlsplit(os.environ.get("LLMEVAL_TEST_REDIS", "redis://127.0.0.1:6379/9"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    database = (int(url.path.strip("/") or 0) + worker) % _REDIS_DATABASES
    return urlunsplit(url._replace(path=f"/{database}"))


def empty_redis_url() -> str:
    """Return the URL of this worker's database after emptying it. Without a server, the test is skipped."""
    url = redis_url()
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=2) as client:
            client.flushdb()
    except redis.ConnectionError as error:
        unavailable("redis", str(error))
    return url

"""Requests, their repetition and errors, shared by the synchronous and the asynchronous client."""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import httpx2

JSONObject = dict[str, object]
_RETRIED = {429, 502, 503, 504}
_MAX_PAUSE = 30.0
_POLL_WAIT_S = 20
_SEND_AGAIN = ("interrupted", "unavailable", "not_found")  # answers to a request for the answer of a turn


class LLMEvalError(Exception):
    """Base class of the errors of this package."""


class Unreachable(LLMEvalError):
    """The server did not answer, also after several attempts."""


class ServerError(LLMEvalError):
    """Answer with a status of 400 or above. `code` is a word for programs, such as `wrong_turn`."""

    def __init__(self, status: int, code: str, message: str, body: JSONObject) -> None:
        super().__init__(f"{status} {code}: {message}" if code else f"{status}: {message}")
        self.status = status
        self.code = code
        self.body = body


@dataclass(frozen=True, slots=True)
class Request:
    """A request that has the same effect if it is sent again."""

    method: str
    path: str
    body: JSONObject | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def starts_episodes(self) -> bool:
        """Whether the server stores new episodes. All other requests find the episode by its id, or store nothing."""
        return "Idempotency-Key" in self.headers

    def options(self) -> dict[str, Any]:
        """Return the parameters for httpx2. The body is ASCII, because a model may write lone surrogates.

        Raises ValueError if the body has a number that JSON does not have.
        """
        options: dict[str, Any] = {"params": dict(self.params), "headers": dict(self.headers)}
        if self.body is not None:
            try:
                options["content"] = json.dumps(self.body, allow_nan=False).encode("ascii")
            except ValueError as error:
                raise ValueError(
                    f"{self.method} {self.path}: the body cannot be written as JSON, which has no NaN and no "
                    f"infinities: {error}. Send -1e30 for a log-probability of -inf."
                ) from None
            options["headers"]["Content-Type"] = "application/json"
        return options


def api_url(url: str) -> str:
    """Return the address of the REST API of the server at *url*. Raises ValueError."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"url: must be the address of the server, such as http://127.0.0.1:8000, not {url!r}.")
    return f"{url.rstrip('/')}/api/v1/"


def get(path: str, **params: object) -> Request:
    """Return a GET; parameters that are None are left out."""
    return Request("GET", path, params={key: str(value) for key, value in params.items() if value is not None})


def post(path: str, **body: object) -> Request:
    """Return a POST that the server recognizes if it is repeated; keys of the body that are None are left out."""
    return Request("POST", path, _given(body), headers={"Idempotency-Key": uuid.uuid4().hex})


def post_turn(path: str, **body: object) -> Request:
    """Return a POST with a turn, by which the server recognizes it; keys of the body that are None are left out."""
    return Request("POST", path, _given(body), headers={"Prefer": "respond-async"})


def next_request(request: Request, response: httpx2.Response) -> Request | None:
    """Return the request to send after *response* to a step, or None if *response* is final.

    *request* is the step. It is followed by requests for its answer, and sent again if the server asks for that.
    """
    if response.status_code == 202:
        path = f"{request.path.rpartition('/')[0]}/turns/{read_body(response)['turn']}"
        return get(path, wait=_POLL_WAIT_S)
    polled = response.request.method == "GET" and request.method == "POST"
    return request if polled and error_body(response).get("code") in _SEND_AGAIN else None


def pause_before_next(response: httpx2.Response) -> float:
    """Return the seconds to wait before the request that follows *response* is sent."""
    given = str(response.headers.get("Retry-After", ""))
    return min(_MAX_PAUSE, float(given)) if given.isdigit() else 0.25


def pause_before_retry(request: Request, response: httpx2.Response | None, attempt: int) -> float | None:
    """Return the seconds to wait before *request* is sent again, or None if its answer is final.

    *response* is None if the connection failed.
    """
    backoff = float(min(_MAX_PAUSE, 0.25 * 2**attempt))
    if response is None:
        return backoff
    if "/turns/" in request.path and error_body(response).get("code") in _SEND_AGAIN:
        return None
    if error_body(response).get("code") == "quota_exceeded":
        return None  # until the month ends, or an administrator raises the quota
    code = error_body(response).get("code") if response.status_code == 409 else ""
    keyed = "Idempotency-Key" in request.headers and response.status_code == 409
    if response.status_code not in _RETRIED and code != "in_progress" and not keyed:
        return None
    given = str(response.headers.get("Retry-After", ""))
    return min(_MAX_PAUSE, float(given)) if given.isdigit() else backoff


def read_body(response: httpx2.Response) -> JSONObject:
    """Return the JSON object of *response*. Raises ServerError."""
    check(response)
    return cast(JSONObject, response.json()) if response.content else {}


def check(response: httpx2.Response) -> None:
    """Raise ServerError if the status of *response* is 400 or above."""
    if response.status_code >= 400:
        body = error_body(response)
        message = str(body.get("message") or _unknown_answer(response))
        errors = cast("list[dict[str, str]]", body.get("errors", []))
        others = [item for item in errors if item["message"] != message]
        details = [f"{item['path']}: {item['message']}" if item["path"] else item["message"] for item in others]
        raise ServerError(response.status_code, str(body.get("code", "")), " ".join([message, *details]), body)


@contextmanager
def missing_ignored() -> Iterator[None]:
    """Ignore that an object to delete does not exist, as after an earlier attempt whose answer was lost."""
    try:
        yield
    except ServerError as error:
        if error.code != "not_found":
            raise


@contextmanager
def replaced_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that replaces *path* at the end of the block. After an error, *path* is unchanged."""
    partial = Path(f"{path}.partial")
    try:
        with partial.open("wb") as out:
            yield out
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def error_body(response: httpx2.Response) -> JSONObject:
    """Return the body of an error; empty if there is no error, or it is not a JSON object, as that of a proxy."""
    if response.status_code < 400:  # its content may be in a file
        return {}
    try:
        body = response.json()
    except ValueError:
        return {}
    return cast(JSONObject, body) if isinstance(body, dict) else {}


def _unknown_answer(response: httpx2.Response) -> str:
    """Return the beginning of an error that is not the server's, such as that of a proxy."""
    if response.headers.get("Content-Type", "").startswith("text/html"):
        return f"{response.url} is a web page, not the REST API; check the URL."
    return response.text[:200]


def _given(body: Mapping[str, object]) -> JSONObject:
    return {key: value for key, value in body.items() if value is not None}

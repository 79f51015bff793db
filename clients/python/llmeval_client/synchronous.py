"""Synchronous client."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import httpx2

from llmeval_client import state
from llmeval_client.requests import (
    Request,
    Unreachable,
    api_url,
    check,
    get,
    missing_ignored,
    next_request,
    pause_before_next,
    pause_before_retry,
    read_body,
    replaced_file,
)
from llmeval_client.state import EpisodeState, FinishReason, assistant, delete_request
from llmeval_client.types import Case, Message, ScoredConversation, StepResult, Tokens, Usage


class Client:
    """Client of the server at *url*. Safe for several threads, and for processes that are forked.

    *token* is an API token with the scope `train`. A request whose answer was lost, or that the server asks to send
    again later, is repeated up to *retries* times; the server counts it once. *timeout* is in seconds per request.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 600.0, retries: int = 8) -> None:
        self._retries = retries
        self._connect: Callable[[], httpx2.Client] = partial(
            httpx2.Client,
            base_url=api_url(url),
            headers={"Authorization": f"Token {token}"},
            timeout=timeout,
        )
        self._connected = os.getpid(), self._connect()

    @property
    def _http(self) -> httpx2.Client:
        """Return the HTTP client of this process.

        A forked process that used the connections of its parent would read answers to the parent's requests.
        """
        process, http = self._connected
        if process != os.getpid():
            http = self._connect()
            self._connected = os.getpid(), http
        return http

    def start(self, environment: str, **which: object) -> "Episode":
        """Start an episode; *which*: case, seed, attempt, model, roles, recordings as in the REST documentation."""
        return Episode(self, self.send(state.start_request(environment, which)))

    def cases(self, environment: str, **which: object) -> list[Case]:
        """Return all cases in the order of the dataset; *which*: split, seed, roles.

        With `opened=False`, they have no messages and tools. This takes less time, because no episode is reset.
        """
        cases: list[Case] = []
        while True:
            answer: Any = self.send(state.cases_request(environment, len(cases), which))
            cases += state.listed_cases(answer)
            if not answer["cases"] or len(cases) >= answer["total"]:
                return cases

    def batch(self, environment: str, **which: object) -> "list[list[Episode]]":
        """Start groups of episodes; *which*: cases or n, group_size, split, seed, model, roles."""
        answer: Any = self.send(state.batch_request(environment, which))
        return [
            [Episode(self, item, case=group["case"], group=group["group"]) for item in group["episodes"]]
            for group in answer["groups"]
        ]

    def score(
        self, environment: str, items: Sequence[tuple[str, Sequence[Message]]], **which: object
    ) -> list[ScoredConversation]:
        """Score conversations, each the id of a case and its messages; *which*: seed, roles."""
        return state.scored(self.send(state.score_request(environment, items, which)))

    def list_episodes(self, *, done: bool | None = None, group: str | None = None) -> list[dict[str, Any]]:
        """Return up to 500 of your episodes, the latest first."""
        answer: Any = self.send(state.list_request(done, group))
        return list(answer["results"])

    def export(self, path: str | Path, **filters: object) -> None:
        """Write your finished episodes to *path*; *filters*: environment, model, since and others of the export.

        They are written as they arrive, and an existing file is replaced once all have arrived.
        """
        with replaced_file(path) as out:
            check(self._repeat(get("episodes/export", **filters), out))

    def send(self, request: Request) -> dict[str, Any]:
        """Send *request* and return its answer. Raises ServerError and Unreachable."""
        response = self._repeat(request)
        again = 0
        while (following := next_request(request, response)) is not None:
            if following is request and again == self._retries:
                break
            again += following is request
            time.sleep(pause_before_next(response))
            response = self._repeat(following)
        return read_body(response)

    def _repeat(self, request: Request, out: BinaryIO | None = None) -> httpx2.Response:
        """Send *request* until its answer is final, and return it. With *out*, the content is written there."""
        for attempt in range(self._retries + 1):
            response, failure = None, None
            try:
                response = self._send_once(request, out)
            except httpx2.TransportError as error:
                failure = error
            pause = pause_before_retry(request, response, attempt)
            if response is not None and (pause is None or attempt == self._retries):
                return response
            if attempt == self._retries:
                raise Unreachable(f"{request.method} {request.path}: {failure!r}") from failure
            time.sleep(pause or 0.0)
        raise AssertionError("unreachable code")

    def _send_once(self, request: Request, out: BinaryIO | None) -> httpx2.Response:
        if out is None:
            return self._http.request(request.method, request.path, **request.options())
        with self._http.stream(request.method, request.path, **request.options()) as response:
            if response.status_code >= 400:
                response.read()
                return response
            out.seek(0)
            out.truncate()  # what an earlier attempt has written
            for chunk in response.iter_bytes():
                out.write(chunk)
        return response

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Episode(EpisodeState):
    """One episode. As a context manager, it is deleted at the end of the block if it is not over."""

    def __init__(self, client: Client, answer: Mapping[str, Any], *, case: str = "", group: str | None = None) -> None:
        super().__init__(answer, case=case, group=group)
        self._client = client

    def step(self, message: Message | str, *, usage: Usage | None = None, tokens: Tokens | None = None) -> StepResult:
        """Send the policy's message, or its text, and return what follows."""
        said = assistant(message)
        return self.apply(self._client.send(self.step_request(said, usage, tokens)), said)

    def finish(self, reason: FinishReason) -> StepResult:
        """End the episode at a limit of yours; it is scored as truncated."""
        return self.apply(self._client.send(self.finish_request(reason)), None)

    def delete(self) -> None:
        """End and delete the episode, if it still exists. An open episode counts against the limit of the server."""
        with missing_ignored():
            self._client.send(delete_request(self.id))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self.done:
            self.delete()

"""Asynchronous client, with the same methods as the synchronous one."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import httpx2

from llmeval_client import state
from llmeval_client.requests import (
    LLMEvalError,
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


class AsyncClient:
    """Client of the server at *url*. Safe for several tasks of one event loop.

    *token* is an API token with the scope `train`. A request whose answer was lost, or that the server asks to send
    again later, is repeated up to *retries* times; the server counts it once. *timeout* is in seconds per request.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 600.0, retries: int = 8) -> None:
        self._retries = retries
        self._http = httpx2.AsyncClient(
            base_url=api_url(url), headers={"Authorization": f"Token {token}"}, timeout=timeout
        )

    async def start(self, environment: str, **which: object) -> "AsyncEpisode":
        """Start an episode; *which*: case, seed, attempt, model, roles, recordings as in the REST documentation.

        If it is cancelled while the server answers, the new episode is deleted first. So are those of `batch`.
        """
        return AsyncEpisode(self, await self.send(state.start_request(environment, which)))

    async def cases(self, environment: str, **which: object) -> list[Case]:
        """Return all cases in the order of the dataset; *which*: split, seed, roles.

        With `opened=False`, they have no messages and tools. This takes less time, because no episode is reset.
        """
        cases: list[Case] = []
        while True:
            answer: Any = await self.send(state.cases_request(environment, len(cases), which))
            cases += state.listed_cases(answer)
            if not answer["cases"] or len(cases) >= answer["total"]:
                return cases

    async def batch(self, environment: str, **which: object) -> "list[list[AsyncEpisode]]":
        """Start groups of episodes; *which*: cases or n, group_size, split, seed, model, roles."""
        answer: Any = await self.send(state.batch_request(environment, which))
        return [
            [AsyncEpisode(self, item, case=group["case"], group=group["group"]) for item in group["episodes"]]
            for group in answer["groups"]
        ]

    async def score(
        self, environment: str, items: Sequence[tuple[str, Sequence[Message]]], **which: object
    ) -> list[ScoredConversation]:
        """Score conversations, each the id of a case and its messages; *which*: seed, roles."""
        return state.scored(await self.send(state.score_request(environment, items, which)))

    async def list_episodes(self, *, done: bool | None = None, group: str | None = None) -> list[dict[str, Any]]:
        """Return up to 500 of your episodes, the latest first."""
        answer: Any = await self.send(state.list_request(done, group))
        return list(answer["results"])

    async def export(self, path: str | Path, **filters: object) -> None:
        """Write your finished episodes to *path*; *filters*: environment, model, since and others of the export.

        They are written as they arrive, and an existing file is replaced once all have arrived.
        """
        with replaced_file(path) as out:
            check(await self._repeat(get("episodes/export", **filters), out))

    async def send(self, request: Request) -> dict[str, Any]:
        """Send *request* and return its answer. Raises ServerError and Unreachable."""
        response = await self._repeat(request)
        again = 0
        while (following := next_request(request, response)) is not None:
            if following is request and again == self._retries:
                break
            again += following is request
            await asyncio.sleep(pause_before_next(response))
            response = await self._repeat(following)
        return read_body(response)

    async def _repeat(self, request: Request, out: BinaryIO | None = None) -> httpx2.Response:
        """Send *request* until its answer is final, and return it. With *out*, the content is written there."""
        for attempt in range(self._retries + 1):
            response, failure = None, None
            try:
                response = await self._send_once(request, out)
            except httpx2.TransportError as error:
                failure = error
            pause = pause_before_retry(request, response, attempt)
            if response is not None and (pause is None or attempt == self._retries):
                return response
            if attempt == self._retries:
                raise Unreachable(f"{request.method} {request.path}: {failure!r}") from failure
            await asyncio.sleep(pause or 0.0)
        raise AssertionError("unreachable code")

    async def _send_once(self, request: Request, out: BinaryIO | None) -> httpx2.Response:
        if request.starts_episodes:
            return await self._send_start(request)
        if out is None:
            return await self._http.request(request.method, request.path, **request.options())
        async with self._http.stream(request.method, request.path, **request.options()) as response:
            if response.status_code >= 400:
                await response.aread()
                return response
            out.seek(0)
            out.truncate()  # what an earlier attempt has written
            async for chunk in response.aiter_bytes():
                await asyncio.to_thread(out.write, chunk)
        return response

    async def _send_start(self, request: Request) -> httpx2.Response:
        """Send a request that starts episodes. If it is cancelled, wait for its answer and delete the episodes.

        The server would start them nevertheless, and nobody would know their ids.
        """
        sending = asyncio.create_task(self._http.request(request.method, request.path, **request.options()))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            with suppress(LLMEvalError, httpx2.TransportError):
                for started in state.started_ids(read_body(await sending)):
                    await self.send(delete_request(started))
            raise

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


class AsyncEpisode(EpisodeState):
    """One episode. As a context manager, it is deleted at the end of the block if it is not over."""

    def __init__(
        self, client: AsyncClient, answer: Mapping[str, Any], *, case: str = "", group: str | None = None
    ) -> None:
        super().__init__(answer, case=case, group=group)
        self._client = client

    async def step(
        self, message: Message | str, *, usage: Usage | None = None, tokens: Tokens | None = None
    ) -> StepResult:
        """Send the policy's message, or its text, and return what follows."""
        said = assistant(message)
        return self.apply(await self._client.send(self.step_request(said, usage, tokens)), said)

    async def finish(self, reason: FinishReason) -> StepResult:
        """End the episode at a limit of yours; it is scored as truncated."""
        return self.apply(await self._client.send(self.finish_request(reason)), None)

    async def delete(self) -> None:
        """End and delete the episode, if it still exists. An open episode counts against the limit of the server."""
        with missing_ignored():
            await self._client.send(delete_request(self.id))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if not self.done:
            await self.delete()

"""The package llmeval_client against the server over HTTP."""

import asyncio
import itertools
import json
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth.models import User

from hub.models import Environment
from hub.services import import_bundle
from llmeval_client import AsyncClient, Client, EpisodeEnvironment, ServerError, Unreachable
from llmeval_client.requests import check, get, pause_before_retry, post, post_turn
from llmeval_client.state import assistant
from llmeval_site.accounts.tokens import create_token
from runs.models import EpisodeSession
from runs.rollouts import batches, creation
from runs.web.api import episodes
from tests.processes import wait_until

CLIENT = settings.BASE_DIR / "clients" / "python"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def token(folder: Path) -> str:
    import_bundle(bundle=folder / "capitals")
    Environment.objects.update(visibility=Environment.Visibility.PUBLISHED)
    return create_token(user=User.objects.create_user("trainer"), scopes=["train"])[1]


@pytest.fixture
def client(live_server: Any, token: str) -> Iterator[Client]:
    with Client(live_server.url, token) as client:
        yield client


def test_groups_are_played_scored_listed_and_exported(client: Client, tmp_path: Path) -> None:
    ((one, two),) = client.batch("capitals", cases=["peru"], group_size=2, model="step-1")
    result = one.step("Lima", tokens={"prompt_ids": [1], "completion_ids": [2], "logprobs": [-0.1]})
    assert (result.reward, result.terminated, result.status, one.done, one.turn) == (1.0, True, "passed", True, 1)
    assert [message["role"] for message in one.messages] == ["user", "assistant"]
    two.step({"content": "Cusco"}, usage={"prompt_tokens": 5, "completion_tokens": 1})
    assert (one.reward, two.reward, one.group == two.group is not None) == (1.0, 0.0, True)
    assert len(client.list_episodes(done=True, group=one.group)) == 2
    client.export(tmp_path / "out.jsonl", model="step-1")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["reward"], row["group"]) for row in rows] == [(1.0, one.group), (0.0, one.group)]
    client.export(str(tmp_path / "again.jsonl"), model="step-1")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    scores = client.score("capitals", [("peru", one.messages), ("atlantis", one.messages)])
    assert [(score.reward, bool(score.error)) for score in scores] == [(1.0, False), (None, True)]


def test_messages_with_any_characters_are_sent(live_server: Any, client: Client, token: str) -> None:
    said = "Lima \ud800 \0 \u2028 😀"
    stored = "Lima \ufffd \ufffd \u2028 😀"
    episode = client.start("capitals", case="peru")
    episode.step(said)

    async def step() -> None:
        async with AsyncClient(live_server.url, token) as other:
            await (await other.start("capitals", case="peru")).step(said)

    asyncio.run(step())
    transcripts = [row.state["messages"] for row in EpisodeSession.objects.all()]
    assert [messages[-1]["content"] for messages in transcripts] == [stored, stored]


def test_cases_of_all_pages_are_listed(client: Client) -> None:
    listed = client.cases("capitals", limit=2)
    assert [case.id for case in listed] == [case.id for case in client.cases("capitals", opened=False)]
    assert len(listed) > 2
    assert listed[0].messages == client.start("capitals", case=listed[0].id).messages


def test_episode_can_be_finished_and_open_one_is_deleted(client: Client) -> None:
    result = client.start("capitals", case="peru").finish("tokens")
    assert (result.truncated, result.stop, result.done) == (True, "tokens", True)
    with pytest.raises(ZeroDivisionError), client.start("capitals"):
        raise ZeroDivisionError
    assert EpisodeSession.objects.count() == 1


def test_lost_answers_are_requested_again_and_count_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    send = httpx2.Client.request
    sent: list[str] = []

    def lose_every_second(http: httpx2.Client, *args: Any, **kwargs: Any) -> httpx2.Response:
        response = send(http, *args, **kwargs)
        sent.append(args[1])
        if len(sent) % 2:
            raise httpx2.ReadError("The connection was reset.")
        return response

    monkeypatch.setattr(httpx2.Client, "request", lose_every_second)
    episode = client.start("capitals", case="peru")
    assert episode.step("Lima").reward == 1.0
    assert len(sent) == 4
    session = EpisodeSession.objects.get()
    assert (session.revision, session.state["turns"]) == (1, 1)


def test_deletion_whose_answer_was_lost_succeeds(
    live_server: Any, client: Client, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, send_later = httpx2.Client.request, httpx2.AsyncClient.request
    lost: list[str] = []

    def lose_first(http: httpx2.Client, method: str, *args: Any, **kwargs: Any) -> httpx2.Response:
        response = send(http, method, *args, **kwargs)
        if method == "DELETE" and not lost:
            lost.append(method)
            raise httpx2.ReadError("The connection was reset.")
        return response

    async def lose_first_later(http: httpx2.AsyncClient, method: str, *args: Any, **kwargs: Any) -> httpx2.Response:
        response = await send_later(http, method, *args, **kwargs)
        if method == "DELETE" and len(lost) == 1:
            lost.append(method)
            raise httpx2.ReadError("The connection was reset.")
        return response

    async def delete() -> None:
        async with AsyncClient(live_server.url, token) as other, await other.start("capitals"):
            pass

    monkeypatch.setattr(httpx2.Client, "request", lose_first)
    monkeypatch.setattr(httpx2.AsyncClient, "request", lose_first_later)
    with client.start("capitals") as episode:
        pass
    asyncio.run(delete())
    assert len(lost) == 2
    assert not EpisodeSession.objects.exists()
    episode.delete()  # it no longer exists


@pytest.mark.parametrize("retries", [0, 2])
def test_step_that_always_fails_in_the_background_raises_the_error_of_the_server(
    live_server: Any, token: str, retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def respond(http: object, method: str, url: str, **options: Any) -> httpx2.Response:
        sent.append(method)
        status, body = (202, {"turn": 0}) if method == "POST" else (503, {"code": "unavailable", "message": "No box."})
        request = httpx2.Request(method, "http://site/")
        return httpx2.Response(status, json=body, headers={"Retry-After": "0"}, request=request)

    async def respond_later(http: object, method: str, url: str, **options: Any) -> httpx2.Response:
        return respond(http, method, url, **options)

    async def step() -> None:
        async with AsyncClient(live_server.url, token, retries=retries) as other:
            later = await other.start("capitals", case="peru")
            monkeypatch.setattr(httpx2.AsyncClient, "request", respond_later)
            await later.step("Lima")

    with Client(live_server.url, token, retries=retries) as client:
        episode = client.start("capitals", case="peru")
        monkeypatch.setattr(httpx2.Client, "request", respond)
        with pytest.raises(ServerError, match=r"503 unavailable: No box\."):
            episode.step("Lima")
    assert sent == ["POST", "GET"] * (retries + 1)
    with pytest.raises(ServerError, match=r"503 unavailable: No box\."):
        asyncio.run(step())
    assert sent == ["POST", "GET"] * 2 * (retries + 1)


def test_errors_have_status_and_code(client: Client) -> None:
    with pytest.raises(ServerError, match="atlantis") as error:
        client.start("atlantis")
    assert (error.value.status, error.value.code) == (400, "invalid")
    episode = client.start("capitals")
    episode.turn = 7
    with pytest.raises(ServerError) as error:
        episode.step("Lima")
    assert (error.value.code, error.value.body["expected_turn"]) == ("wrong_turn", 0)
    assert str(error.value) == "409 wrong_turn: `turn` is 7; the next turn of this episode is 0."
    with pytest.raises(ValueError, match=r"step: the body cannot be written as JSON, .* Send -1e30"):
        episode.step("Lima", tokens={"prompt_ids": [1], "completion_ids": [2], "logprobs": [float("-inf")]})
    with pytest.raises(Unreachable), Client("http://127.0.0.1:9", "lle_none", retries=1) as nowhere:
        nowhere.list_episodes()


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "localhost:8000", "ftp://127.0.0.1", "http://", "", "http://[x"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_url_that_is_no_address_of_a_server_is_reported_at_once(kind: type[Client | AsyncClient], url: str) -> None:
    with pytest.raises(ValueError, match=r"url: must be the address of the server, such as http://127.0.0.1:8000, not"):
        kind(url, "lle_none")


def test_page_in_place_of_an_answer_is_not_quoted(live_server: Any) -> None:
    with pytest.raises(ServerError) as error, Client(f"{live_server.url}/wrong/", "lle_none") as client:
        client.start("capitals")
    assert (
        str(error.value)
        == f"404: {live_server.url}/wrong/api/v1/episodes/ is a web page, not the REST API; check the URL."
    )


def test_errors_of_no_key_are_written_without_a_path() -> None:
    errors = [{"path": "", "message": "There is no reply."}, {"path": "case", "message": "It is missing."}]
    body = {"message": "The request is invalid.", "code": "invalid", "errors": errors}
    with pytest.raises(ServerError) as error:
        check(httpx2.Response(400, json=body))
    assert str(error.value) == "400 invalid: The request is invalid. There is no reply. case: It is missing."


@pytest.mark.parametrize("action", [5, None, ["Lima"], b"Lima"])
def test_action_that_is_no_message_is_reported(action: Any) -> None:
    with pytest.raises(TypeError, match=f"an assistant message or its text, not {type(action).__name__}"):
        assistant(action)


def test_episode_has_its_attempt(client: Client) -> None:
    assert [client.start("capitals").attempt, client.start("capitals", attempt=3).attempt] == [1, 3]
    ((_, second),) = client.batch("capitals", n=1, group_size=2)
    assert second.attempt == 2


def test_environment_has_reset_and_step_of_gymnasium(client: Client) -> None:
    environment = EpisodeEnvironment(client, "capitals", case="france")
    observation, info = environment.reset(seed=3)
    assert (observation["messages"][0]["content"], info["case"]) == ("Capital of France?", "france")
    observation, reward, terminated, truncated, info = environment.step("Paris")
    assert (observation["messages"], reward, terminated, truncated, info["status"]) == ([], 1.0, True, False, "passed")
    environment.reset()
    environment.close()
    assert EpisodeSession.objects.count() == 1


def test_reset_without_a_seed_keeps_the_seed_of_the_environment(client: Client) -> None:
    drawn = {seed: client.start("capitals", seed=seed).case for seed in range(1, 9)}
    default = client.start("capitals").case
    seed = next(seed for seed, case in drawn.items() if case != default)
    environment = EpisodeEnvironment(client, "capitals", seed=seed)
    assert environment.reset()[1]["case"] == drawn[seed]
    other = next(other for other, case in drawn.items() if case != drawn[seed])
    assert environment.reset(seed=other)[1]["case"] == drawn[other]


@pytest.mark.parametrize(("method", "options", "count"), [("start", {}, 1), ("batch", {"n": 2, "group_size": 2}, 4)])
def test_cancelled_start_leaves_no_episode(
    live_server: Any, token: str, monkeypatch: pytest.MonkeyPatch, method: str, options: dict[str, int], count: int
) -> None:
    create, creating, created = creation.create_rollout, threading.Event(), []

    def create_slowly(*given: Any, **which: Any) -> Any:
        creating.set()
        time.sleep(0.2)
        created.append(create(*given, **which))
        return created[-1]

    async def cancel() -> None:
        async with AsyncClient(live_server.url, token) as client:
            task = asyncio.create_task(getattr(client, method)("capitals", **options))
            await asyncio.to_thread(creating.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    for module in (batches, episodes):
        monkeypatch.setattr(module, "create_rollout", create_slowly)
    asyncio.run(cancel())
    wait_until(lambda: len(created) == count)
    assert not EpisodeSession.objects.exists()


def test_asynchronous_client_plays_a_group_concurrently(live_server: Any, token: str) -> None:
    async def play() -> list[float]:
        async with AsyncClient(live_server.url, token) as client:
            ((one, two),) = await client.batch("capitals", cases=["peru"], group_size=2)
            results = await asyncio.gather(one.step("Lima"), two.step("Cusco"))
            assert "peru" in {case.id for case in await client.cases("capitals")}
            (score,) = await client.score("capitals", [("peru", one.messages)])
            return [*(result.reward for result in results), score.reward or 0.0]

    assert asyncio.run(play()) == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("status", "code", "retry_after", "pause"),
    [
        (429, "limit", "7", 7.0),
        (503, "unavailable", None, 0.5),
        (409, "in_progress", "2", 2.0),
        (409, "wrong_turn", None, None),
        (400, "invalid", None, None),
        (422, "environment_failed", None, None),
    ],
)
def test_only_temporary_errors_are_repeated(status: int, code: str, retry_after: str | None, pause: float) -> None:
    headers = {"Retry-After": retry_after} if retry_after else {}
    response = httpx2.Response(status, json={"code": code}, headers=headers)
    assert pause_before_retry(post_turn("episodes/1/step"), response, 1) == pause
    assert pause_before_retry(get("episodes/"), None, 0) == 0.25
    assert "Idempotency-Key" in post("episodes/").headers


@contextmanager
def _large_export(megabytes: int) -> Iterator[str]:
    """Serve an answer of this size in chunks at every path; the first one ends early. Yield the address."""
    requests = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cut = next(requests) == 0
            self.send_response(200)
            self.send_header("Content-Length", str(megabytes << 20))
            self.end_headers()
            for _ in range(1 if cut else megabytes):
                self.wfile.write(b"x" * (1 << 20))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_export_is_written_as_it_arrives(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text("earlier")

    async def export(url: str) -> None:
        async with AsyncClient(url, "token") as client:
            await client.export(two)

    with _large_export(32) as url, Client(url, "token") as client:
        tracemalloc.start()
        try:
            client.export(one)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    with _large_export(32) as url:
        asyncio.run(export(url))
    assert one.stat().st_size == two.stat().st_size == 32 << 20
    assert peak < 16 << 20
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["one.jsonl", "two.jsonl"]


def test_failed_export_keeps_the_earlier_file(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("earlier")
    with pytest.raises(ServerError):
        client.export(path, environment="atlantis")
    assert path.read_text() == "earlier"
    assert not Path(f"{path}.partial").exists()


_FORK = """
import os
import sys
from llmeval_client import Client

client = Client(sys.argv[1], "token")
client.list_episodes()
client.list_episodes()
child = os.fork()
if child == 0:
    client.list_episodes()
    client.list_episodes()
    os._exit(0)
os.waitpid(child, 0)
client.list_episodes()
"""


def test_forked_process_has_connections_of_its_own() -> None:
    ports: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("Content-Length", "15")
            self.end_headers()
            self.wfile.write(b'{"results": []}')

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            subprocess.run([sys.executable, "-c", _FORK, url], cwd=CLIENT, check=True, timeout=60)
        finally:
            server.shutdown()
    parent, _, child, _, _ = ports
    assert ports == [parent, parent, child, child, parent]
    assert parent != child

"""Reviewers, API clients and live pages at the same time, while a large run is executed; on PostgreSQL and Redis.

    .venv/bin/python benchmarks/load.py [--seconds 300] [--reviewers 50] [--clients 200] [--watchers 20]
        [--postgres URL] [--run 60000] [--nice 0]

First one user of each kind for 15 seconds, with nothing else; then all of them, while a worker executes a run of text
cases against a local endpoint that answers after half a second:
  reviewers  decide a pair every five seconds (the page of the next pair is the answer)
  clients    read one of several REST lists and objects every two seconds, each with a token of its own
  watchers   have the page of the run in progress open, which asks for its progress every two to ten seconds
Prints requests, errors, p50 and p95 in milliseconds for each kind, the ratio of p95 under load to p95 before, and how
many cores the web server, all of PostgreSQL, the worker and the simulated users took. With `--reviewers 1 --clients 1
--watchers 100` that is the cost of 100 watchers. With `--nice 10` the worker gets less of the processor than the site.

The web server is gunicorn with the product's settings; the users are simulated by this process, on the same machine.
Needs redis-server, and a PostgreSQL server where a database may be created.
"""

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any, NamedTuple

import httpx2 as httpx
from processes import processor_seconds, processor_seconds_of
from scaling import PER_WORKER, PYTHON, ROOT, Installation, free_port

REVIEW_EVERY_S, ASK_EVERY_S, WATCH_EVERY_S = 5.0, 2.0, 2.0
PAIRS_PER_REVIEWER_AND_MINUTE = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="under load")
    parser.add_argument("--reviewers", type=int, default=50)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--watchers", type=int, default=20)
    parser.add_argument(
        "--run", type=int, default=60_000, help="cases of the run in progress; it has to last longer than the load"
    )
    parser.add_argument("--nice", type=int, default=0, help="niceness of the worker: 10 lets the site go first")
    parser.add_argument("--postgres", default="postgres://postgres@127.0.0.1:5432/postgres")
    options = parser.parse_args()
    with Installation.start(options.postgres) as installation:
        keys = _fill(installation, options)
        with (
            _web(installation) as web,
            installation.workers(1, niceness=options.nice) as workers,
            _run_in_progress(installation, options) as run,
        ):
            users = Users(web.address, keys, run)
            for seconds in (5, 15):  # the first requests import modules
                one = asyncio.run(users.use(seconds=seconds, reviewers=1, clients=1, watchers=1))
            run.start()
            before = _processor_times(web, workers)
            many = asyncio.run(
                users.use(
                    seconds=options.seconds,
                    reviewers=options.reviewers,
                    clients=options.clients,
                    watchers=options.watchers,
                )
            )
            after = _processor_times(web, workers)
            still_running = run.in_progress()
    print(f"{options.seconds} s, {options.reviewers} reviewers, {options.clients} clients, {options.watchers} watchers")
    print(f"The run of {options.run:,} cases was {'still' if still_running else 'not'} in progress at the end.\n")
    print("| users | requests | errors | p50 ms | p95 ms | p95 of one user alone, ms | ratio |")
    print("|---|---|---|---|---|---|---|")
    for kind, times in many.items():
        print(f"| {kind} | {times.row()} | {one[kind].p95:.0f} | {times.p95 / one[kind].p95:.1f} |")
    cores = (f"{name} {(after[name] - before[name]) / options.seconds:.2f}" for name in after)
    print(f"\nCores used on average: {', '.join(cores)}.")
    for kind, times in many.items():
        for error, number in times.errors.items():
            print(f"{kind}: {number} times {error}")


def _processor_times(web: "Web", workers: list[int]) -> dict[str, float]:
    """Return the processor time in seconds so far of the parts that share the machine."""
    own = os.times()
    return {
        "web server": processor_seconds(web.pid),
        "PostgreSQL": processor_seconds_of("postgres"),
        "worker": sum(map(processor_seconds, workers)),
        "simulated users": own.user + own.system,
    }


# ---- data ------------------------------------------------------------------------------------------------------------


@dataclass
class Keys:
    """Session cookies of the reviewers, tokens of the clients, and session cookies of the watchers."""

    reviewers: list[str]
    clients: list[str]
    watchers: list[str]


def _fill(installation: Installation, options: argparse.Namespace) -> Keys:
    """Store runs, pairs and users, in a process of its own with the settings of the installation."""
    per_reviewer = PAIRS_PER_REVIEWER_AND_MINUTE * (options.seconds + 60) // 60
    users = f"{options.reviewers}, {options.clients}, {options.watchers}"
    program = f"import load; load.fill({users}, {options.reviewers * per_reviewer})"
    done = subprocess.run(
        [*PYTHON, "-c", program],
        cwd=ROOT / "benchmarks",
        env=installation.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return Keys(*(keys.split(",") for keys in done.stdout.strip().rpartition("\n")[2].split(" ")))


def fill(reviewers: int, clients: int, watchers: int, pairs: int) -> None:
    """Store the data and print the sessions and the tokens."""
    sys.path.insert(0, str(ROOT))  # before this folder, which has a module `sandbox` too
    os.environ["DJANGO_SETTINGS_MODULE"] = "llmeval_site.settings"
    import django

    django.setup()
    from django.contrib.auth.models import Group, User
    from django.db import connection
    from django.test import Client
    from load_data import Loader

    from llmeval_site.accounts.tokens import create_token
    from review.models import Pair

    loader = Loader(argparse.Namespace(responses=30_000, largest=20_000, environments=40, preferences=5_000, seed=1))
    loader.load()
    # Every verdict is possible for pairs that the tests do not decide.
    Pair.objects.update(overlap=0, free=0)
    open_pairs = Pair.objects.exclude(kind=Pair.Kind.ONE_PASSES).order_by("pk")
    waiting = list(open_pairs.values_list("pk", flat=True)[:pairs])
    Pair.objects.filter(pk__in=waiting).update(overlap=1, free=1)
    group = Group.objects.get(name="Reviewer")

    def sign_in(name: str) -> str:
        user = User.objects.create_user(name)
        user.groups.add(group)
        client = Client()
        client.force_login(user)
        return client.cookies["sessionid"].value

    sessions = [sign_in(f"reviewer-{i}") for i in range(reviewers)]
    watching = [sign_in(f"watcher-{i}") for i in range(watchers)]
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")  # as a database in use does from time to time
    tokens = [create_token(user=User.objects.create_user(f"c-{i}"), scopes=["read"])[1] for i in range(clients)]
    print(",".join(sessions), ",".join(tokens), ",".join(watching))


# ---- servers ---------------------------------------------------------------------------------------------------------


class Web(NamedTuple):
    """A running web server: its address and the process id of its parent process."""

    address: str
    pid: int


@contextmanager
def _web(installation: Installation) -> Iterator[Web]:
    port = free_port()
    command = [*PYTHON, "-m", "gunicorn", "llmeval_site.wsgi", "--bind", f"127.0.0.1:{port}", "--log-level", "warning"]
    command += ["--config", str(ROOT / "gunicorn.conf.py"), "--chdir", str(ROOT)]
    process = subprocess.Popen(command, env=installation.environment, cwd=installation.folder)
    address = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                httpx.get(f"{address}/healthz", timeout=5)
                break
            except httpx.HTTPError:
                time.sleep(0.2)
        yield Web(address, process.pid)
    finally:
        process.terminate()
        process.wait()


class RunInProgress:
    """The large run. `pk` is that of a finished run until it has started."""

    def __init__(self, installation: Installation, config: str) -> None:
        self._installation = installation
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None
        self.pk = self._latest()

    def _latest(self) -> int:
        return int(self._installation.query("SELECT max(id) FROM runs_run WHERE id > %s", 0)[0])

    def start(self) -> None:
        earlier = self.pk
        command = [*PYTHON, str(ROOT / "manage.py"), "eval", "--config", self._config, "--enqueue"]
        self._process = subprocess.Popen(
            command,
            cwd=self._installation.folder,
            env=self._installation.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while (latest := self._latest()) == earlier:
            time.sleep(0.5)
        self.pk = latest
        self._installation.execute("UPDATE hub_environment SET visibility = 'published'")

    def in_progress(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


@contextmanager
def _run_in_progress(installation: Installation, options: argparse.Namespace) -> Iterator[RunInProgress]:
    run = RunInProgress(installation, installation.write_config("load", options.run, PER_WORKER * 4))
    try:
        yield run
    finally:
        run.stop()


# ---- users -----------------------------------------------------------------------------------------------------------


@dataclass
class Times:
    """Milliseconds of the requests of one kind of user, and its errors."""

    milliseconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def p95(self) -> float:
        return quantiles(self.milliseconds, n=20)[18]

    def row(self) -> str:
        p50 = quantiles(self.milliseconds, n=2)[0]
        return f"{len(self.milliseconds):,} | {sum(self.errors.values())} | {p50:.0f} | {self.p95:.0f}"


class Users:
    """Simulated users of the site at *address*."""

    def __init__(self, address: str, keys: Keys, run: RunInProgress) -> None:
        self._address = address
        self._keys = keys
        self._run = run

    async def use(self, *, seconds: float, reviewers: int, clients: int, watchers: int) -> dict[str, Times]:
        """Let the users work for *seconds*, and return their times."""
        self._times = {"reviewers": Times(), "clients": Times(), "watchers": Times()}
        self._until = time.monotonic() + seconds
        work = [self._review(session) for session in self._keys.reviewers[:reviewers]]
        work += [self._ask(token) for token in self._keys.clients[:clients]]
        work += [self._watch(session) for session in self._keys.watchers[:watchers]]
        await asyncio.gather(*work)
        return self._times

    def _client(self, **options: Any) -> httpx.AsyncClient:
        """Return the client of one user, with cookies and connections of its own. The address needs no certificate."""
        return httpx.AsyncClient(base_url=self._address, timeout=60, verify=False, **options)

    async def _every(self, seconds: float, act: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Act every *seconds* or as soon as the last act has ended, beginning at a random moment."""
        at = time.monotonic() + random.uniform(0, seconds)
        while at < self._until:
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            await act()
            at = max(at + seconds, time.monotonic())

    async def _timed(self, kind: str, request: Coroutine[Any, Any, httpx.Response]) -> httpx.Response | None:
        times = self._times[kind]
        started = time.perf_counter()
        try:
            answer = await request
        except httpx.HTTPError as error:
            times.errors[repr(error)] += 1
            return None
        times.milliseconds.append(1000 * (time.perf_counter() - started))
        if answer.status_code not in (200, 204):
            times.errors[f"{answer.status_code} {answer.request.method} {answer.request.url.path}"] += 1
            return None
        return answer

    async def _review(self, session: str) -> None:
        async with self._client(cookies={"sessionid": session}) as http:
            page = await http.get("/review/", follow_redirects=True)
            pair = page.url.path

            async def decide() -> None:
                nonlocal pair
                headers = {"X-CSRFToken": http.cookies["csrftoken"], "HX-Request": "true"}
                verdict = {"verdict": random.choice(["a", "b", "tie"])}
                answer = await self._timed("reviewers", http.post(f"{pair}decision/", data=verdict, headers=headers))
                if answer is None:
                    return
                if "HX-Push-Url" not in answer.headers:
                    self._times["reviewers"].errors[f"decision not stored: {pair}"] += 1
                    return
                pair = answer.headers["HX-Push-Url"].partition("?")[0]

            await self._every(REVIEW_EVERY_S, decide)

    async def _ask(self, token: str) -> None:
        addresses = [
            "/api/v1/runs/",
            f"/api/v1/runs/{self._run.pk}/",
            f"/api/v1/runs/{self._run.pk}/responses/",
            "/api/v1/environments/",
            "/api/v1/environments/bench-0001/versions/1.0.0/cases/",
            "/api/v1/models/",
        ]
        async with self._client(headers={"Authorization": f"Token {token}"}) as http:
            await self._every(ASK_EVERY_S, lambda: self._timed("clients", http.get(random.choice(addresses))))

    async def _watch(self, session: str) -> None:
        """Request the progress as the page does: with the version that it shows, when the server tells it to."""
        seen, pause_s = "0", WATCH_EVERY_S
        await asyncio.sleep(random.uniform(0, pause_s))
        async with self._client(cookies={"sessionid": session}) as http:
            while time.monotonic() < self._until:
                address = f"/runs/{self._run.pk}/progress/?done=0&seen={seen}"
                answer = await self._timed("watchers", http.get(address))
                if answer is not None and (version := re.search(r'seen=(\w+)" hx-trigger="every (\d+)s', answer.text)):
                    seen, pause_s = version[1], float(version[2])
                await asyncio.sleep(pause_s)


if __name__ == "__main__":
    main()

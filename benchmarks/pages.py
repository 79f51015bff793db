"""Time of every page, list over REST and export with the rows of `benchmarks/load_data.py`.

    .venv/bin/python benchmarks/pages.py NAME [--server postgres://postgres@127.0.0.1:5432] [--times 20] [--only TEXT]

Requests go through Django's test client, so the figures are the time of the server without the network. Prints two
tables in Markdown: for each page the median and the 95th percentile in milliseconds, queries and bytes; for each export
the seconds in all and until the first byte, and the memory that its process gained at its peak. Each export is made in
a process of its own.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_data import SERVER, USER, use_database

HOST = "localhost"
_FORM, _CHANGE = "a form without rows of runs", "changes something, or redirects"
_EPISODES = "the data has no episodes of trainers"
# Addresses of tests/site/accounts/access_table.py that are not measured, by the name of their view.
EXCLUDED = {
    "llmeval_site.pages.icon.favicon": "an icon",
    **dict.fromkeys(("login", "logout", "password_reset", "password_reset_done", "runs:endpoint_new"), _FORM),
    **dict.fromkeys(("password_reset_complete", "password_reset_confirm", "hub:upload", "hub:defect"), _FORM),
    **dict.fromkeys(("openid_start", "openid_callback", "openid_signed_out"), "needs an OpenID provider"),
    **dict.fromkeys(("hub:publish", "hub:retire", "hub:gates", "hub:discard", "hub:move"), _CHANGE),
    **dict.fromkeys(("runs:endpoint_edit", "runs:endpoint_test"), _CHANGE),
    **dict.fromkeys(
        ("runs:cancel", "runs:resume", "runs:rescore", "runs:describe", "runs:delete", "runs:move"), _CHANGE
    ),
    **dict.fromkeys(("api-run-cancel", "api-run-resume", "api-run-rescore", "api-pair-decision"), _CHANGE),
    **dict.fromkeys(("review:take", "review:decide", "review:skip", "review:draft", "review:undo"), _CHANGE),
    **dict.fromkeys(("api-episodes", "api-episode", "api-episode-step", "api-episode-finish"), _EPISODES),
    **dict.fromkeys(("api-episode-turn", "api-episodes-export"), _EPISODES),
    **dict.fromkeys(("api-episodes-batch", "api-episodes-cases", "api-score"), "computes what a trainer sends"),
    **dict.fromkeys(("api-docs", "api-schema", "manual", "hub:starter"), "does not depend on rows"),
    **dict.fromkeys(("hub:draft", "hub:draft_bundle"), "the data has no drafts"),
    "api-bundle": "the same file as that of the page",
    "api-run-events": "a stream without end",
    "hub:environment": "the same page as hub:version",
    "metrics": "for Prometheus, with a token of its own",
    "runs:compared_failures": "the export of failures, with the cases of compare",
    **dict.fromkeys(
        ("teams", "team", "api-teams", "api-team", "api-team-members", "api-team-member"), "the data has no teams"
    ),
    **dict.fromkeys(("team-add", "team-remove", "team-promote", "team-demote"), _CHANGE),
    **dict.fromkeys(
        ("webhooks", "webhook", "api-webhooks", "api-webhook", "api-webhook-deliveries"), "the data has no webhooks"
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the database")
    parser.add_argument("--server", default=SERVER)
    parser.add_argument("--times", type=int, default=20, help="requests of each page, at least 2")
    parser.add_argument("--only", default="", help="only pages whose name contains this text")
    parser.add_argument("--export", help=argparse.SUPPRESS)  # the process of one export
    options = parser.parse_args()
    if options.times < 2:
        parser.error("--times must be at least 2")
    use_database(options.name, options.server)
    from django.conf import settings

    import llmeval_site.wsgi  # noqa: F401 - prepares the process as that of the web server

    settings.ALLOWED_HOSTS = [HOST]
    settings.DEBUG = False
    if options.export:
        print(json.dumps(measure_export(options.export)))
        return
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print("| page | median ms | p95 ms | queries | KiB |\n| --- | --- | --- | --- | --- |")
    for name, path in pages().items():
        if options.only in name:
            print(f"| {name} | {measure_page(path, options.times)} |", flush=True)
    print("\n| export | s | s to the first byte | MiB sent | MiB of memory |\n| --- | --- | --- | --- | --- |")
    for name, path in exports().items():
        if options.only in name:
            command = [sys.executable, __file__, options.name, "--server", options.server, "--export", path]
            found = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if found.returncode:
                print(f"| {name} | failed | | | |", flush=True)
                continue
            figures = json.loads(found.stdout.splitlines()[-1])
            print(f"| {name} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |", flush=True)


def pages() -> dict[str, str]:
    """Return the path of each page and list, by its name in the table."""
    from django.urls import reverse

    from hub.models import Environment
    from preferences.models import Preference
    from review.models import Pair
    from runs.models import Response, Run, RunEnvironment

    largest = Run.objects.get(name="bench-largest")
    first, other = Run.objects.order_by("id")[:2]
    same = Run.objects.filter(environments__version__in=first.environments.values("version"))
    second = same.exclude(pk=first.pk).order_by("id").first() or other  # few runs have no environment in common
    environment = RunEnvironment.objects.select_related("version__environment").filter(run=largest)[0]
    slug, version = environment.version.environment.slug, environment.version.version
    response = Response.objects.filter(run_environment=environment)[0]
    preference = Preference.objects.all()[0].pk
    run = reverse("runs:run", args=[largest.pk])
    waiting = Pair.objects.filter(free__gt=0).order_by("id")[0].pk
    chosen = list(Environment.objects.order_by("slug").values_list("slug", flat=True)[:100])
    compared = f"?a={largest.pk}&model_a=model-a&b={largest.pk}&model_b=model-b&environment={slug}"
    paths = {
        "account": reverse("account"),
        "dashboard": reverse("dashboard"),
        "search": reverse("search") + "?q=bench",
        "hub": reverse("hub:catalogue"),
        "hub, filtered": reverse("hub:catalogue") + "?category=reasoning",
        "environment": reverse("hub:version", args=[slug, version]),
        "environment, files": reverse("hub:files", args=[slug, version]),
        "environment, case": reverse("hub:case", args=[slug, version, "c1"]),
        "environment, changes": reverse("hub:changes", args=[slug, version]),
        "environment, bundle": reverse("hub:bundle", args=[slug, version]),
        "environment, file": reverse("hub:file", args=[slug, version]),
        "environment, certificate": reverse("hub:certificate", args=[slug, version]),
        "environment, cases": reverse("runs:environment_cases", args=[slug, version]),
        "environment, hardest cases": reverse("runs:environment_cases", args=[slug, version]) + "?sort=passed",
        "environment, results": reverse("runs:environment_results", args=[slug, version]),
        "start a run": reverse("runs:start", args=[slug]),
        "new run": reverse("runs:new") + "?" + "&".join(f"environment={name}" for name in chosen),
        "new run, like another": reverse("runs:new") + f"?run={first.pk}",
        "runs": reverse("runs:list"),
        "runs, completed": reverse("runs:list") + "?status=completed",
        "run of 50,000": run,
        "run, failed responses": run + "?status=failed",
        "run, search": run + "?q=unknown",
        "run, slices": reverse("runs:slices", args=[largest.pk]),
        "run, grid": reverse("runs:grid", args=[largest.pk]),
        "run, case": reverse("runs:case", args=[largest.pk, response.case_id]),
        "run of 1,000": reverse("runs:run", args=[first.pk]),
        "run, progress": reverse("runs:progress", args=[largest.pk]),
        "response": reverse("runs:response", args=[response.pk]),
        "response, raw": reverse("runs:raw", args=[response.pk]),
        "response, pairs": reverse("review:of_response", args=[response.pk]),
        "compare two runs": reverse("runs:compare") + f"?a={first.pk}&b={second.pk}",
        "compare models of a run": reverse("runs:compare")
        + f"?a={largest.pk}&model_a=model-a&b={largest.pk}&model_b=model-b",
        "compare, cases": reverse("runs:compared_cases") + compared,
        "compare, one case": reverse("runs:compared_case") + compared + "&case=c1",
        "models": reverse("runs:models"),
        "model": reverse("runs:model", args=["model-a"]),
        "best results": reverse("runs:best_results"),
        "review": reverse("review:next"),
        "review of a run": reverse("review:of_run", args=[largest.pk]),
        "review of a pair": reverse("review:pair", args=[waiting]),
        "preferences": reverse("preferences:list"),
        "preference": reverse("preferences:preference", args=[preference]),
        "preference, calls of the judge": reverse("review:judge_calls", args=[preference]),
        "agreement": reverse("preferences:agreement"),
        "ranking": reverse("preferences:ranking"),
        "REST environments": reverse("api-environments"),
        "REST environment": reverse("api-environment", args=[slug]),
        "REST version": reverse("api-version", args=[slug, version]),
        "REST cases": reverse("api-cases", args=[slug, version]),
        "REST models": reverse("api-models"),
        "REST runs": reverse("api-runs"),
        "REST run": reverse("api-run", args=[largest.pk]),
        "REST compare": reverse("api-compare") + f"?a={first.pk}&b={second.pk}",
        "REST pair": reverse("api-pair", args=[waiting]),
        "REST next pair": reverse("api-pair-next"),
        "REST responses": reverse("api-run-responses", args=[largest.pk]),
        "REST preferences": reverse("api-preferences"),
        "REST agreement": reverse("api-agreement"),
    }
    return paths | {f"admin, {name}": path for name, path in _admin_lists().items()}


def _admin_lists() -> dict[str, str]:
    from django.apps import apps
    from django.contrib import admin
    from django.urls import reverse

    labels = ("hub", "runs", "preferences", "review")
    models = [model for label in labels for model in apps.get_app_config(label).get_models()]
    metas = [model._meta for model in models if admin.site.is_registered(model)]
    return {
        str(meta.verbose_name_plural): reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist") for meta in metas
    }


def exports() -> dict[str, str]:
    """Return the path of each export, by its name in the table."""
    from django.urls import reverse

    from runs.models import Run

    largest = Run.objects.get(name="bench-largest").pk
    return {
        "failures, jsonl": reverse("runs:failures", args=[largest]),
        "rollouts, jsonl": reverse("runs:rollouts", args=[largest]),
        "report": reverse("runs:report", args=[largest]),
        "REST failures, jsonl": reverse("api-run-failures", args=[largest]),
        "REST rollouts, jsonl": reverse("api-run-rollouts", args=[largest]),
        "REST report": reverse("api-run-report", args=[largest]),
        "preferences, jsonl": reverse("preferences:export") + "?format=jsonl",
        "REST preferences, jsonl": reverse("api-preferences-export") + "?format=jsonl",
    }


def _client():
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(SERVER_NAME=HOST, raise_request_exception=False)
    client.force_login(User.objects.get(username=USER), backend="django.contrib.auth.backends.ModelBackend")
    return client


def measure_page(path: str, times: int) -> str:
    """Return the cells of one page: median and p95 in ms, queries, KiB. The first two requests are not timed."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = _client()
    client.get(path)
    with CaptureQueriesContext(connection) as queries:
        response = client.get(path)
    executed = len(queries)  # later requests clear the log
    if response.status_code not in (200, 302):
        return f"status {response.status_code} | | |"
    clock = []
    for _ in range(times):
        start = time.perf_counter()
        response = client.get(path)
        size = len(b"".join(response.streaming_content)) if response.streaming else len(response.content)
        clock.append((time.perf_counter() - start) * 1000)
    p95 = quantiles(clock, n=20, method="inclusive")[-1]
    note = " (redirected)" if response.status_code == 302 else ""
    return f"{median(clock):.0f} | {p95:.0f} | {executed} | {size / 1024:.0f}{note}"


def measure_export(path: str) -> list[float]:
    """Return seconds, seconds until the first byte, MiB sent, and MiB by which the peak memory of this process grew."""
    client = _client()
    client.get("/runs/")  # imports and connections are not part of the export
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    response = client.get(path)
    if response.status_code != 200:
        sys.exit(f"{path}: status {response.status_code}")
    first, size = time.perf_counter() - start, 0
    for part in response.streaming_content if response.streaming else [response.content]:
        size += len(part)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [seconds, first, size / 2**20, (peak - before) / 1024]


if __name__ == "__main__":
    main()

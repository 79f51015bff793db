"""A site with the recorded run of `configs/eval_v1.yaml`, for commands that look at its pages."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.site.server.web_server import environment_of, web_server

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "var" / "demo-site"
CHROMIUM = os.environ.get("LLMEVAL_CHROMIUM", "/usr/bin/chromium")
_PASSWORD = "for-this-site-only"  # of a site on this machine that runs for a minute


@contextmanager
def demo_site() -> Iterator[str]:
    """Run the site, with the run evaluated on first use, and yield its address."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmeval_site.settings")
    environment = environment_of(FOLDER, {"DJANGO_SUPERUSER_PASSWORD": _PASSWORD})
    if not (FOLDER / "ready").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        for arguments in (
            ["eval", "--config", "configs/eval_v1.yaml"],
            ["createsuperuser", "--noinput", "--username", "ann", "--email", "ann@example.test"],
        ):
            command = [sys.executable, str(ROOT / "manage.py"), *arguments]
            subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=sys.stderr)
        (FOLDER / "ready").touch()
    with web_server(FOLDER, environment) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def chromium_on_port(port: int) -> Iterator[BrowserContext]:
    """Run a browser that other programs can use through *port*, and yield its context, which they share."""
    with TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=["--no-sandbox", f"--remote-debugging-port={port}"]
        )
        yield context
        context.close()


def sign_in(browser: Browser, address: str, *, width: int = 1280, height: int = 820) -> BrowserContext:
    """Return a context in which the user of the site is signed in."""
    context = browser.new_context(base_url=address, viewport={"width": width, "height": height})
    sign_in_to(context, address)
    return context


def sign_in_to(context: BrowserContext, address: str) -> None:
    """Sign the user of the site in."""
    page = context.new_page()
    page.goto(f"{address}/login/")
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill(_PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{address}/")
    page.close()


def main_pages(context: BrowserContext, address: str) -> dict[str, str]:
    """Return the addresses of the main pages by name."""
    page = context.new_page()
    page.goto(f"{address}/runs/")
    run = page.get_by_role("link", name="eval-v1").first.get_attribute("href") or ""
    page.goto(f"{address}{run}")
    response = page.get_by_role("link", name="First failure").first.get_attribute("href") or ""
    page.goto(f"{address}/review/")  # leads to a pair
    review = page.url.removeprefix(address)
    page.close()
    return {
        "hub": "/hub/",
        "environment": "/hub/python-functions/",
        "run": run,
        "response": response,
        "compare": f"/compare/?a={run.strip('/').rpartition('/')[2]}",
        "review": review,
    }

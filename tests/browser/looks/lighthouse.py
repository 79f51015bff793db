"""`make lighthouse`: scores of the main pages in Lighthouse, for accessibility and best practices.

    make lighthouse                     hub, environment, run, response, compare and review
    make lighthouse ARGS="run review"   some of them

It needs node and npm, and installs Lighthouse into var/lighthouse. The exit code is 1 if a score is below 100; the
audits that failed are then listed.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.browser.looks.demo_site import ROOT, chromium_on_port, demo_site, main_pages, sign_in_to
from tests.site.server.web_server import free_port

PACKAGE = "lighthouse@12.8.2"
FOLDER = ROOT / "var" / "lighthouse"
CATEGORIES = ["accessibility", "best-practices"]


def main() -> int:
    """Print the scores and return the exit code."""
    program = _install()
    below = False
    print(f"{'page':14}{'screen':10}" + "".join(f"{name:>16}" for name in CATEGORIES))
    port = free_port()
    with demo_site() as address, chromium_on_port(port) as context:
        sign_in_to(context, address)
        pages = main_pages(context, address)
        for name, path in ((name, pages[name]) for name in sys.argv[1:] or pages):
            for screen in ("mobile", "desktop"):
                report = _audit(program, f"{address}{path}", port, screen)
                scores = {key: round(100 * report["categories"][key]["score"]) for key in CATEGORIES}
                print(f"{name:14}{screen:10}" + "".join(f"{scores[key]:16}" for key in CATEGORIES), flush=True)
                below = below or min(scores.values()) < 100
                for line in _failed(report):
                    print(f"    {line}")
    return int(below)


def _install() -> Path:
    """Return the program, installed if it is missing."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("Lighthouse needs node and npm.")
    program = FOLDER / "node_modules" / ".bin" / "lighthouse"
    if not program.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(FOLDER), PACKAGE]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return program


def _audit(program: Path, url: str, port: int, screen: str) -> dict[str, Any]:
    """Return the report on *url* in the browser on *port*, in which the user is signed in."""
    command = [
        *[str(program), url, "--quiet", "--output=json", "--output-path=stdout", f"--port={port}"],
        *[f"--only-categories={','.join(CATEGORIES)}", "--disable-storage-reset"],
        *(["--preset=desktop"] if screen == "desktop" else []),
    ]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(found.stdout)
    if report["finalDisplayedUrl"].partition("?")[0].endswith("/login/"):
        sys.exit(f"{url}: the browser was not signed in.")
    return report


def _failed(report: dict[str, Any]) -> list[str]:
    """Return the audits that failed, with their first items."""
    lines = []
    for key in CATEGORIES:
        for reference in report["categories"][key]["auditRefs"]:
            audit = report["audits"][reference["id"]]
            if reference["weight"] and audit["score"] is not None and audit["score"] < 1:
                items = audit.get("details", {}).get("items", [])[:3]
                lines.append(f"{audit['id']}: {audit['title']} {json.dumps(items)[:400]}")
    return lines


if __name__ == "__main__":
    sys.exit(main())

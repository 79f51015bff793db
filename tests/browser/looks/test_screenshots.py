"""Pages as images. `make screenshots` writes the images anew after an intended change; look at them before committing.

Data, time and font are fixed. A few pixels may differ, because versions of Chromium draw edges differently.
"""

import io
import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from review.queue import assignments
from tests.browser.conftest import Visit
from tests.browser.looks.docs_images import write_small
from tests.browser.looks.full_site import build_site
from tests.services import unavailable

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, reset_sequences=True)]

IMAGES = Path(__file__).parent / "images"
FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")  # Debian package fonts-dejavu-core
STYLE = ':root { --sans: "DejaVu Sans"; --mono: "DejaVu Sans Mono"; } *, *::before { transition: none !important; }'
NOW = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
# By name: address in the access table, width, colour scheme.
PAGES = {
    "hub": ("/hub/", 1280, "light"),
    "environment": ("/hub/sums/", 1280, "dark"),
    "run": ("/runs/1/", 1280, "light"),
    "response": ("/responses/1/", 390, "dark"),
    "compare": ("/compare/", 1280, "light"),
    "review": ("/review/1/", 1280, "light"),
}
_DIFFERENT = 48  # of 255, in one colour: more than the reduction to 128 colours and smoothed edges make
_SHARE = 0.001  # of the pixels may be different: a changed word is more


class FixedDatetime(datetime):
    """A clock for the filter naturaltime, which does not use Django's."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW


@pytest.mark.exhaustive
def test_pages_look_as_before(visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not FONT.exists():
        unavailable("browser", f"there is no {FONT}")
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    monkeypatch.setattr("django.contrib.humanize.templatetags.humanize.datetime", FixedDatetime)
    monkeypatch.setattr(assignments, "_draw", lambda what, pair, user: 0.99)
    site = build_site(tmp_path)
    page = visit("/", site.user, bypass_csp=True)
    changed = []
    for name, (sample, width, scheme) in PAGES.items():
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(site.address(sample))
        page.add_style_tag(content=STYLE)
        page.wait_for_load_state("networkidle")
        image = page.screenshot(caret="hide", animations="disabled")
        if os.environ.get("LLMEVAL_WRITE_SCREENSHOTS"):
            write_small(image, IMAGES / f"{name}.png")
        elif share := different_pixels(image, IMAGES / f"{name}.png"):
            now = tmp_path / f"{name}.png"
            now.write_bytes(image)
            changed.append(f"{name}: {share:.2%} of the pixels differ; compare {now} with {IMAGES / now.name}")
    assert not changed, "\n".join([*changed, "If this is intended, run `make screenshots`."])


def different_pixels(image: bytes, expected: Path) -> float:
    """Return the share of different pixels, or 0 if it is small enough to be the browser's."""
    now, before = Image.open(io.BytesIO(image)).convert("RGB"), Image.open(expected).convert("RGB")
    if now.size != before.size:
        return 1.0
    bands = ImageChops.difference(now, before).split()
    largest = ImageChops.lighter(ImageChops.lighter(bands[0], bands[1]), bands[2])
    share = sum(largest.histogram()[_DIFFERENT:]) / (now.width * now.height)
    return share if share > _SHARE else 0.0


@pytest.mark.exhaustive
def test_a_changed_word_is_a_difference(visit: Visit, tmp_path: Path) -> None:
    page = visit("/login/")
    write_small(page.screenshot(), tmp_path / "before.png")
    assert different_pixels(page.screenshot(), tmp_path / "before.png") == 0
    page.evaluate("document.querySelector('h1').textContent = 'Something else'")
    assert different_pixels(page.screenshot(), tmp_path / "before.png") > 0

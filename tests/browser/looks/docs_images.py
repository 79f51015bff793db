"""`make docs-images`: take the images of README.md and the tutorial anew, of the site with the recorded run."""

import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import BrowserContext

from tests.browser.looks.demo_site import ROOT, chromium, demo_site, main_pages, sign_in

IMAGES = ROOT / "docs" / "images"


def main() -> None:
    """Write the images."""
    with demo_site() as address, chromium() as browser:
        context = sign_in(browser, address)
        pages = main_pages(context, address)
        for name in ("run", "compare", "review"):
            _take(context, pages[name], IMAGES / f"{name}.png")


def _take(context: BrowserContext, path: str, target: Path) -> None:
    page = context.new_page()
    page.goto(path)
    page.wait_for_load_state("networkidle")
    write_small(page.screenshot(), target)
    page.close()
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1000} kB")


def write_small(png: bytes, target: Path) -> None:
    """Write a PNG of 128 colours, which is about a third of the size."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(target, optimize=True)


if __name__ == "__main__":
    main()

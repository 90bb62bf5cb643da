"""Render the extension's icons from their SVG sources: `python tests/extension/render_icons.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ICONS = Path(__file__).parents[2] / "extension" / "icons"
SIZES = {"agent": (128,)}
"""The sizes in which an icon is used, where they are not those of the toolbar."""
TOOLBAR_SIZES = (16, 32, 48, 128)
PAGE = "<style>*{{margin:0}}svg{{display:block;width:{size}px;height:{size}px}}</style>{svg}"


def main() -> None:
    """Write `<name>-<size>.png` beside every `<name>.svg`."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), chromium_sandbox=False)
        for source in sorted(ICONS.glob("*.svg")):
            for size in SIZES.get(source.stem, TOOLBAR_SIZES):
                page = browser.new_page(viewport={"width": size, "height": size})
                page.set_content(PAGE.format(size=size, svg=source.read_text()))
                page.screenshot(path=ICONS / f"{source.stem}-{size}.png", omit_background=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()

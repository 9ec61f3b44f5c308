# SPDX-License-Identifier: Apache-2.0
"""Take pictures of the built site with a headless Chromium: screens and phones, light and dark.

make docs-pictures    # in build/site-pictures
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))

from report_browser import Page, browser, find_browser  # noqa: E402

SITE = ROOT / "build" / "site"
PICTURES = ROOT / "build" / "site-pictures"
WIDTHS = {1280: 900, 390: 844}
"""The width of each screen and its height, in pixels."""
QUERY = "workspace"


def wait(page: Page, condition: str) -> None:
    """Wait until a condition of JavaScript holds; raise AssertionError after ten seconds."""
    done = page.evaluate(
        "new Promise(done => { let left = 200; const look = () => "
        f"({condition}) ? done(true) : left-- ? setTimeout(look, 50) : done(false); look(); }})"
    )
    assert done, f"not true after ten seconds: {condition}"


def search(page: Page) -> None:
    """Open the search and enter a query."""
    page.evaluate("document.querySelector('.search-button__button, .search-button-field').click()")
    wait(page, "document.querySelector('dialog[open] input[type=search]')")
    page.evaluate("document.querySelector('dialog[open] input[type=search]').focus()")
    page.send("Input.insertText", text=QUERY)
    page.key("End")  # the theme looks for results after a key
    wait(page, "document.querySelectorAll('dialog[open] ul.search li').length > 3")
    page.evaluate("new Promise(done => setTimeout(done, 1200))")  # the summaries of the results


def drawer(page: Page) -> None:
    """Open the navigation of a phone."""
    page.evaluate("document.querySelector('button.primary-toggle').click()")
    page.evaluate("new Promise(done => setTimeout(done, 600))")  # the animation


def table(page: Page) -> None:
    """Scroll to the first table with a header below the top."""
    page.evaluate("document.querySelectorAll('article table')[0].scrollIntoView({block: 'center'})")


def code(page: Page) -> None:
    """Scroll to a block of code."""
    page.evaluate("document.querySelectorAll('article div.highlight')[2].scrollIntoView({block: 'center'})")


def nothing(_: Page) -> None:
    """Take the page as it is."""


SCENES: tuple[tuple[str, str, Callable[[Page], None]], ...] = (
    ("home", "index.html", nothing),
    ("overview", "overview.html", nothing),
    ("guide", "getting-started.html", nothing),
    ("guide-code", "getting-started.html", code),
    ("commands", "command-line.html", nothing),
    ("manifest", "manifest.html", table),
    ("wide-table", "benchmarks/index.html", table),
    ("example", "examples/vibration/index.html", nothing),
    ("source", "source/schemas/device-manifest.schema.json.html", nothing),
    ("search", "getting-started.html", search),
    ("results", f"search.html?q={QUERY}", nothing),
)
"""The name of each picture, its page, and what is done before it is taken."""


def open_page(page: Page, address: str) -> None:
    """Open a page of the site by its address, which may have a query."""
    path, _, query = address.partition("?")
    page.open(SITE / path)
    if query:
        page.events.clear()
        page.send("Page.navigate", url=f"{(SITE / path).as_uri()}?{query}")
        wait(page, "document.querySelectorAll('ul.search li').length > 3")


def main() -> int:
    """Take all pictures; print the pages that are wider than the screen."""
    executable = find_browser()
    if executable is None or not (SITE / "index.html").is_file():
        reason = "no Chromium in PATH" if executable is None else "build/site is missing: run `make docs`"
        print(f"site_pictures: error: {reason}", file=sys.stderr)
        return 1
    PICTURES.mkdir(parents=True, exist_ok=True)
    too_wide = []
    with browser(executable) as page:
        for width, height in WIDTHS.items():
            for dark in (False, True):
                page.screen(width, height, dark=dark)
                scenes = [*SCENES, *([("drawer", "getting-started.html", drawer)] if width < 600 else [])]
                for name, address, act in scenes:
                    open_page(page, address)
                    act(page)
                    page.picture(PICTURES / f"{name}-{width}-{'dark' if dark else 'light'}.png", whole=False)
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        too_wide.append(f"{address} at {width} px")
    for place in dict.fromkeys(too_wide):
        print(f"site_pictures: error: wider than the screen: {place}", file=sys.stderr)
    print(PICTURES)
    return bool(too_wide)


if __name__ == "__main__":
    sys.exit(main())

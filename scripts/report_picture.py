# SPDX-License-Identifier: Apache-2.0
"""Create the README's pictures of the two_npus report, light and dark, with a headless Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))

from opwest.cli.main import main as opwest  # noqa: E402
from report_browser import browser, find_browser  # noqa: E402

WIDTH = 1280
IMAGES = ROOT / "docs" / "images"
LAST = "document.querySelector('section[aria-labelledby$=schedule] .inspector').getBoundingClientRect().top + scrollY"


def main() -> int:
    """Write docs/images/report.png and report-dark.png: the page down to the schedule."""
    executable = find_browser()
    if executable is None:
        print("report_picture: error: no Chromium in PATH", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, browser(executable) as page:
        report = Path(work) / "report.html"
        if opwest(["report", str(ROOT / "examples" / "two_npus" / "manifest.yaml"), "-o", str(report)]):
            return 1
        for name, dark in (("report.png", False), ("report-dark.png", True)):
            page.screen(WIDTH, 2000, dark=dark)
            page.open(report)
            height = round(page.evaluate(LAST))
            page.picture(IMAGES / name, whole=False, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
    return 0


if __name__ == "__main__":
    sys.exit(main())

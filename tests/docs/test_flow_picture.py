# SPDX-License-Identifier: Apache-2.0
"""The picture of the flow: current, readable in light and dark, on the index page."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
PICTURES = ("flow.svg", "flow-dark.svg", "flow-narrow.svg", "flow-narrow-dark.svg")
PAGES = {"light": ("#ffffff",), "dark": ("#0d1117", "#14181e")}
"""The backgrounds of the pages that contain the pictures: GitHub's and the site's."""
SVG = "{http://www.w3.org/2000/svg}"
sys.path.insert(0, str(ROOT / "tests" / "report"))

from report_browser import browser, find_browser  # noqa: E402
from wcag import contrast  # noqa: E402


def texts(name):
    """Yield each text of a picture, its colour, and the colour of the smallest rectangle around it."""
    root = ET.parse(IMAGES / name).getroot()
    sides = ("x", "y", "width", "height")
    boxes = [(*(float(box.attrib[key]) for key in sides), box.attrib["fill"]) for box in root.iter(f"{SVG}rect")]
    for text in root.iter(f"{SVG}text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        around = [(w * h, fill) for left, top, w, h, fill in boxes if left < x < left + w and top < y < top + h]
        yield text.text or "", text.attrib["fill"], min(around)[1] if around else None


def test_pictures_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "flow_picture.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PICTURES)
def test_contrast_of_texts_and_lines(name: str) -> None:
    pages = PAGES["dark" if "dark" in name else "light"]
    found = list(texts(name))
    assert len(found) > 30
    for text, colour, box in found:
        for background in (box,) if box else pages:
            assert contrast(colour, background) >= 4.5, (text, colour, background)
    (line,) = set(re.findall(r'<path [^>]*stroke="(#\w+)"', (IMAGES / name).read_text(encoding="utf-8")))
    assert all(contrast(line, page) >= 3 for page in pages)


def test_variants_contain_the_same_texts() -> None:
    words = [sorted(text for text, _, _ in texts(name)) for name in PICTURES]
    joined = [sorted(" ".join(found).split()) for found in words]
    assert all(found == joined[0] for found in joined)
    for item in ("Operators", "Manifest", "inspect", "check", "plan", "render", "west", "QEMU", "boards"):
        assert item in joined[0]


def test_index_shows_the_picture() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    picture = re.search(r"<picture>.*?flow\.svg.*?</picture>", index, re.DOTALL)[0]
    assert set(re.findall(r"[\w-]+\.svg", picture)) == set(PICTURES)


@pytest.mark.needs("chromium")
def test_texts_fit_their_boxes_and_do_not_overlap(tmp_path: Path) -> None:
    """Measured in a browser with its own fonts; the size on a phone is at least 12 pixels."""
    executable = find_browser()
    assert executable is not None
    measure = """(() => {
      const box = e => { const r = e.getBBox(); return [r.x, r.y, r.width, r.height]; };
      return [[...document.querySelectorAll('rect')].map(box),
              [...document.querySelectorAll('text')].map(e => [e.textContent, ...box(e)])]; })()"""
    with browser(executable) as page:
        for name in PICTURES:
            width = 390 if "narrow" in name else 1280
            document = tmp_path / f"{name}.html"
            document.write_text((IMAGES / name).read_text(encoding="utf-8"), encoding="utf-8")
            page.screen(width)
            page.open(document)
            rects, lines = page.evaluate(measure)
            for number, (text, x, y, w, h) in enumerate(lines):
                around = [r for r in rects if r[0] < x + w / 2 < r[0] + r[2] and r[1] < y + h / 2 < r[1] + r[3]]
                if around:
                    left, top, wide, high = min(around, key=lambda r: r[2] * r[3])
                    assert left + 2 <= x and x + w <= left + wide - 2, (name, text)
                    assert top <= y and y + h <= top + high, (name, text)
                for other, x2, y2, w2, h2 in lines[number + 1 :]:
                    apart = x + w <= x2 or x2 + w2 <= x or y + h - 4 <= y2 or y2 + h2 - 4 <= y
                    assert apart, (name, text, other)
    narrow = (IMAGES / "flow-narrow.svg").read_text(encoding="utf-8")
    assert min(int(size) for size in re.findall(r'font-size="(\d+)"', narrow)) * 358 / 390 >= 12

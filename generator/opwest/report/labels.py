# SPDX-License-Identifier: Apache-2.0
"""Select labels that fit into rectangles. CSS shows the label for the width of the screen.

A plot has the width of the page. Each class of widths therefore has its own label, which fits into the narrowest plot
of the class. Labels use a fixed-width font with an advance of 0.6 of its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opwest.records import dataclass
from opwest.report.words import visible

ADVANCE: Final = 6.7
"""Pixels of one character at 11 pixels, rounded up."""
LINE: Final = 14
PAD: Final = 10
LEAST: Final = 7
"""The minimum number of characters of a shortened name."""

TIERS: Final = {"t0": 210.0, "t1": 250.0, "t2": 430.0, "t3": 700.0, "t4": 1000.0}
"""The narrowest plot, in pixels, on screens below 360 (from 320), 600, 900 and 1,200 pixels, and on wider ones."""
TIERS_FULL: Final = {"t0": 266.0, "t1": 306.0, "t2": 506.0, "t3": 806.0, "t4": 1106.0}
"""The same for plots without an axis."""


@dataclass(frozen=True, slots=True)
class Label:
    """A text and the classes of widths in which it is shown."""

    text: str
    classes: str
    vertical: bool
    second: str | None = None
    """A second line."""


def labels(name: str, second: str, width: float, height: float, tiers: dict[str, float] = TIERS) -> tuple[Label, ...]:
    """Return labels for a rectangle: width as a fraction of the plot's, height in pixels."""
    name = visible(name)
    chosen: dict[tuple[str, bool, str | None], list[str]] = {}
    for tier, plot in tiers.items():
        found = _fitting(name, second, width * plot, height)
        if found:
            chosen.setdefault(found, []).append(tier)
    return tuple(Label(text, " ".join(names), vertical, more) for (text, vertical, more), names in chosen.items())


def _fitting(name: str, second: str, width: float, height: float) -> tuple[str, bool, str | None] | None:
    horizontal = int((width - PAD) / ADVANCE)
    if len(name) <= horizontal and height >= LINE:
        more = second if height >= 2 * LINE + 4 and len(second) <= horizontal else None
        return name, False, more
    vertical = int((height - PAD) / ADVANCE)
    if len(name) <= vertical and width >= LINE + 2:
        return name, True, None
    if horizontal >= LEAST and height >= LINE:
        return shortened(name, horizontal), False, None
    if vertical >= LEAST and width >= LINE + 2:
        return shortened(name, vertical), True, None
    return None


def shortened(name: str, most: int) -> str:
    """Return a name with limited length; a long name is cut in the middle, since names differ at their ends."""
    name = visible(name)
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def part(value: float) -> str:
    """Return a fraction of 1 as SVG text: `12.5%`."""
    return f"{value * 100:.4f}".rstrip("0").rstrip(".") + "%"


def pixels(value: float) -> str:
    """Return pixels as SVG text, rounded to hundredths."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def path(rectangles: Sequence[tuple[float, float, float, float]], width: int, height: int) -> str:
    """Return rectangles (x, y, width, height as fractions of 1) as one SVG path in an area of the given size."""
    return "".join(
        f"M{round(x * width)} {round(y * height)}h{max(round(w * width), 1)}v{max(round(h * height), 1)}"
        f"h-{max(round(w * width), 1)}z"
        for x, y, w, h in rectangles
    )

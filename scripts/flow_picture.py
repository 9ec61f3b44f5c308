# SPDX-License-Identifier: Apache-2.0
"""Write the pictures of the flow through opwest, docs/images/flow*.svg: wide and for phones, light and dark.

The text is in `CONTENT`; each layout places it. `--check` compares the files instead of writing them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"

PALETTES = {
    "": {
        "card": "#f6f8fa",
        "edge": "#8c959f",
        "text": "#1f2328",
        "muted": "#4d5661",
        "line": "#57606a",
        "own": "#5b2a9d",
        "own edge": "#5b2a9d",
        "own text": "#ffffff",
        "stage": "#f3ecfd",
        "app": "#ffffff",
        "target": "#e6f4ea",
        "target edge": "#3b7d4f",
    },
    "-dark": {
        "card": "#21262d",
        "edge": "#6e7681",
        "text": "#f0f3f6",
        "muted": "#b3bdc8",
        "line": "#9aa5b1",
        "own": "#5b2a9d",
        "own edge": "#b794f4",
        "own text": "#ffffff",
        "stage": "#2b1d45",
        "app": "#161b22",
        "target": "#12301d",
        "target edge": "#57ab6e",
    },
}


@dataclass(frozen=True)
class Item:
    """A card: its title, the lines below it, and whether the title is a name of a file or a command."""

    title: str
    lines: tuple[str, ...] = ()
    mono: bool = False


INPUTS = (
    Item("Operators", (".o  .a  .ll  .c", "from any compiler")),
    Item("Trained models", ("TFLite, ONNX, Vela,", "microTVM's archives")),
    Item("Manifest", ("signatures, steps,", "memory, devices")),
)
STAGES = (
    Item("inspect", ("symbols, ABI, state",), True),
    Item("check", ("errors with hints",), True),
    Item("plan", ("memory, schedule",), True),
    Item("render", ("C or LLVM IR",), True),
)
PARTS = (
    Item("models/<m>", ("metadata, registry,", "context, run"), True),
    Item("modules/opwest", ("runtime, drivers",), True),
    Item("src, prj.conf", ("yours, merged",), True),
    Item("tests/<m>", ("suite for twister",), True),
)
TARGETS = (
    Item("native_sim", ("a process",), True),
    Item("QEMU", ("Arm, RISC-V",)),
    Item("boards", ("flash, serial",)),
)
FEEDBACK = (
    Item("opwest run", ("results, cycles",), True),
    Item("opwest report", ("memory, changes",), True),
    Item("opwest tune", ("fastest variants",), True),
)
LABEL = "The flow through opwest: inputs, stages, application, targets, and the feedback of runs"


@dataclass
class Drawing:
    """An SVG picture under construction, in pixels."""

    colours: dict[str, str]
    size: int
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, w: float, h: float, fill: str, edge: str) -> None:
        """Add a rectangle with round corners."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="8" fill="{self.colours[fill]}"'
            f' stroke="{self.colours[edge]}"/>'
        )

    def text(self, x: float, y: float, text: str, colour: str, *, mono: bool = False, bold: bool = False) -> None:
        """Add a line of text with its middle at `x` and its base line at `y`."""
        family = f' font-family="{MONO}"' if mono else ""
        weight = ' font-weight="600"' if bold else ""
        size = self.size + 1 if bold and not mono else self.size
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}"{family}{weight} fill="{self.colours[colour]}"'
            f' text-anchor="middle" xml:space="preserve">{escape(text)}</text>'
        )

    def card(self, item: Item, place: tuple[float, float, float, float], fill: str, edge: str) -> None:
        """Add a card with its text in the middle."""
        x, y, w, h = place
        self.box(x, y, w, h, fill, edge)
        pitch = self.size + 5
        base = y + h / 2 - pitch * len(item.lines) / 2 + self.size * 0.36
        self.text(x + w / 2, base, item.title, "text", mono=item.mono, bold=True)
        for number, line in enumerate(item.lines, 1):
            self.text(x + w / 2, base + number * pitch, line, "muted", mono=line.startswith("."))

    def arrow(self, *points: tuple[float, float]) -> None:
        """Add a line through points, with a head at the last one."""
        path = " ".join(f"{'L' if number else 'M'}{x:g} {y:g}" for number, (x, y) in enumerate(points))
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{self.colours["line"]}" stroke-width="2"'
            ' stroke-linejoin="round" marker-end="url(#head)"/>'
        )

    def finish(self, width: float, height: float) -> str:
        """Return the file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
            f' height="{height:g}" role="img" font-family="{SANS}">'
        )
        marker = (
            '<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7"'
            f' orient="auto"><path d="M0 0L10 5L0 10z" fill="{self.colours["line"]}"/></marker></defs>'
        )
        comment = "<!-- written by scripts/flow_picture.py -->"
        return "\n".join([head, comment, f"<title>{escape(LABEL)}</title>", marker, *self.parts, "</svg>", ""])


def column(x: float, y: float, w: float, h: float, count: int, gap: float) -> list[tuple[float, float, float, float]]:
    """Return the places of `count` cards, one below the other, in a rectangle."""
    each = (h - gap * (count - 1)) / count
    return [(x, y + number * (each + gap), w, each) for number in range(count)]


def row(x: float, y: float, w: float, h: float, count: int, gap: float) -> list[tuple[float, float, float, float]]:
    """Return the places of `count` cards, one beside the other, in a rectangle."""
    each = (w - gap * (count - 1)) / count
    return [(x + number * (each + gap), y, each, h) for number in range(count)]


def cards(
    drawing: Drawing, items: Sequence[Item], places: Sequence[tuple[float, float, float, float]], kind: str
) -> None:
    """Add cards of one kind."""
    fill, edge = {"input": ("card", "edge"), "stage": ("stage", "own edge"), "part": ("card", "edge")}.get(
        kind, ("target", "target edge")
    )
    for item, place in zip(items, places, strict=True):
        drawing.card(item, place, fill, edge)


def wide(colours: dict[str, str]) -> str:
    """Return the picture for screens: columns from left to right."""
    drawing = Drawing(colours, 14)
    top, height = 10.0, 324.0
    cards(drawing, INPUTS, inputs := column(10, top, 172, height, 3, 18), "input")
    for _, y, _, h in inputs:
        drawing.arrow((184, y + h / 2), (227, y + h / 2))
    drawing.box(230, top, 182, height, "own", "own edge")
    drawing.text(321, top + 25, "opwest", "own text", bold=True)
    cards(drawing, STAGES, column(240, top + 38, 162, height - 48, 4, 8), "stage")
    drawing.arrow((414, top + height / 2), (457, top + height / 2))
    drawing.box(460, top, 192, height, "app", "edge")
    drawing.text(556, top + 25, "Application", "text", bold=True)
    cards(drawing, PARTS, column(470, top + 38, 172, height - 48, 4, 8), "part")
    cards(drawing, TARGETS, targets := column(738, top, 142, height, 3, 18), "target")
    drawing.text(694, top + height / 2 - 26, "west", "text", mono=True)
    drawing.text(694, top + height / 2 - 9, "build", "text", mono=True)
    middle = top + height / 2
    for _, y, _, h in targets:
        drawing.arrow((654, middle), (720, middle), (720, y + h / 2), (735, y + h / 2))
    lane = top + height + 46
    drawing.arrow((809, top + height), (809, lane), (321, lane), (321, top + height + 3))
    cards(drawing, tuple(reversed(FEEDBACK)), row(345, lane - 25, 440, 50, 3, 12), "part")
    return drawing.finish(890, lane + 35)


def narrow(colours: dict[str, str]) -> str:
    """Return the picture for phones: from top to bottom, the feedback on the right."""
    drawing = Drawing(colours, 15)
    left, width, lane = 6.0, 352.0, 378.0
    middle = left + width / 2
    y = 6.0
    cards(drawing, INPUTS[:2], row(left, y, width, 80, 2, 10), "input")
    cards(drawing, INPUTS[2:], [(left + 81, y + 90, 190, 80)], "input")
    for x in (left + 40, middle, left + width - 40):
        drawing.arrow((x, y + (172 if x == middle else 82)), (x, y + 201))
    y += 204
    own = y
    drawing.box(left, y, width, 164, "own", "own edge")
    drawing.text(middle, y + 24, "opwest", "own text", bold=True)
    cards(drawing, STAGES[:2], row(left + 10, y + 36, width - 20, 54, 2, 10), "stage")
    cards(drawing, STAGES[2:], row(left + 10, y + 100, width - 20, 54, 2, 10), "stage")
    drawing.arrow((middle, y + 166), (middle, y + 195))
    y += 198
    drawing.box(left, y, width, 196, "app", "edge")
    drawing.text(middle, y + 24, "Application", "text", bold=True)
    cards(drawing, PARTS[:2], row(left + 10, y + 36, width - 20, 70, 2, 10), "part")
    cards(drawing, PARTS[2:], row(left + 10, y + 116, width - 20, 70, 2, 10), "part")
    drawing.arrow((middle, y + 198), (middle, y + 239))
    drawing.text(middle + 58, y + 223, "west build", "text", mono=True)
    y += 242
    cards(drawing, TARGETS, row(left, y, width, 58, 3, 8), "target")
    drawing.arrow((middle, y + 60), (middle, y + 89))
    y += 92
    drawing.box(left, y, width, 186, "app", "edge")
    cards(drawing, FEEDBACK, column(left + 70, y + 10, 212, 166, 3, 8), "part")
    drawing.arrow((left + width + 1, y + 93), (lane, y + 93), (lane, own + 82), (left + width + 3, own + 82))
    return drawing.finish(390, y + 192)


def pictures() -> dict[str, str]:
    """Return the content of each file."""
    layouts = {"flow": wide, "flow-narrow": narrow}
    return {f"{name}{dark}.svg": draw(PALETTES[dark]) for name, draw in layouts.items() for dark in PALETTES}


def main(arguments: Sequence[str]) -> int:
    """Write or compare the files."""
    late = []
    for name, content in pictures().items():
        path = IMAGES / name
        if "--check" not in arguments:
            path.write_text(content, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != content:
            late.append(name)
    if late:
        print(f"flow_picture: error: {', '.join(late)} in docs/images: run scripts/flow_picture.py", file=sys.stderr)
    return bool(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

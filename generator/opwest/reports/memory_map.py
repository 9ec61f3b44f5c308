# SPDX-License-Identifier: Apache-2.0
"""The geometry of a memory map: steps to the right, offsets upwards. All positions are fractions of 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opwest.base.frozen_dataclass import dataclass
from opwest.reports import data, words


def live_bytes(buffers: Sequence[data.Buffer], steps: int) -> list[int]:
    """Return the bytes of a pool that are in use in every step."""
    starts: list[list[data.Buffer]] = [[] for _ in range(steps + 1)]
    for buffer in buffers:
        starts[min(buffer.first, steps)].append(buffer)
    live: list[data.Buffer] = []
    sizes = []
    for step in range(steps):
        live = [buffer for buffer in live if buffer.last >= step] + starts[step]
        size = end = 0
        for buffer in sorted(live, key=lambda buffer: buffer.offset):  # in-place results overlap their arguments
            end = max(end, buffer.offset)
            size += max(buffer.offset + buffer.reserved - end, 0)
            end = max(end, buffer.offset + buffer.reserved)
        sizes.append(size)
    return sizes


MAX_BUFFERS: Final = 400
"""The maximum number of buffers drawn individually per pool; those with the largest area (bytes x steps) are drawn."""
MAX_LIVE: Final = 600
"""The maximum number of bars in the chart of live bytes; each shows the maximum of its steps."""
MAX_TICKS: Final = 16


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of the map: `x` and `width` of its width, `y` (from above) and `height` of its height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: its position and label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """The map of one pool."""

    pool: data.Pool
    steps: int
    buffers: tuple[tuple[data.Buffer, Rectangle], ...]
    """Buffers drawn individually, in the order of their lifetimes."""
    others: tuple[tuple[str, Rectangle], ...]
    """All other buffers, with only their roles."""
    peak: Rectangle
    """The step of the peak, with the height of its live bytes."""
    bound: float
    """The position of the lower bound, from above."""
    live: tuple[Rectangle, ...]
    """Live bytes by step."""
    sizes: tuple[Tick, ...]
    times: tuple[Tick, ...]


def lay_out(model: data.Model, pool: data.Pool) -> MemoryMap:
    """Return the map of a pool of a model."""
    steps, size = max(len(model.steps), 1), max(pool.planned, 1)
    held = [buffer for buffer in model.buffers if buffer.pool == pool.name]
    by_area = sorted(held, key=lambda b: (-b.reserved * (b.last - b.first + 1), b.first, b.name))
    shown = sorted(by_area[:MAX_BUFFERS], key=lambda b: (b.first, b.offset, b.name))
    return MemoryMap(
        pool=pool,
        steps=steps,
        buffers=tuple((buffer, _rectangle(buffer, steps, size)) for buffer in shown),
        others=tuple((buffer.role, _rectangle(buffer, steps, size)) for buffer in by_area[MAX_BUFFERS:]),
        peak=Rectangle(pool.peak.step / steps, 1 - pool.peak.bytes / size, 1 / steps, pool.peak.bytes / size),
        bound=1 - pool.lower_bound / size,
        live=tuple(
            Rectangle(first / steps, 1 - most / size, (end - first) / steps, most / size)
            for first, end, most in _live(held, steps)
        ),
        sizes=size_ticks(pool.planned),
        times=step_ticks(steps),
    )


def _rectangle(buffer: data.Buffer, steps: int, size: int) -> Rectangle:
    return Rectangle(
        buffer.first / steps,
        1 - (buffer.offset + buffer.reserved) / size,
        (buffer.last - buffer.first + 1) / steps,
        buffer.reserved / size,
    )


def _live(held: list[data.Buffer], steps: int) -> list[tuple[int, int, int]]:
    """Return runs of steps with the same live bytes: first, end, bytes; long models in bins with their maxima."""
    live = live_bytes(held, steps)
    width = -(-steps // MAX_LIVE)
    runs: list[tuple[int, int, int]] = []
    for first in range(0, steps, width):
        end = min(first + width, steps)
        most = max(live[first:end])
        if runs and runs[-1][2] == most:
            runs[-1] = (runs[-1][0], end, most)
        else:
            runs.append((first, end, most))
    return [run for run in runs if run[2]]


def size_ticks(size: int) -> tuple[Tick, ...]:
    """Return three to six marks at round sizes, from the bottom; none near the label of the size at the top."""
    if size <= 0:
        return ()
    gap = 1
    while size / gap > 5:
        gap *= 2
    marks = [mark for mark in range(0, size, gap) if size - mark >= 0.4 * gap]
    return tuple(Tick(1 - mark / size, words.short_size(mark) if mark else "0") for mark in marks)


def step_ticks(steps: int) -> tuple[Tick, ...]:
    """Return marks in the middle of every step, or of steps at a regular interval."""
    gap = 1
    while steps / gap > MAX_TICKS:
        gap = gap * 5 // 2 if str(gap)[0] == "2" else gap * 2
    return tuple(Tick((step + 0.5) / steps, words.number(step)) for step in range(0, steps, gap))

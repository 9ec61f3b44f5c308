# SPDX-License-Identifier: Apache-2.0
"""Text for numbers and buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opwest.base.diagnostics import printable
from opwest.reports import data

MAX_ROWS: Final = 200
"""The maximum number of rows of a table; the JSON contains all."""


def visible(text: str) -> str:
    """Return text without control characters, which XML forbids and which can change the text direction."""
    return printable(text, keep="\n")


def number(value: int | None) -> str:
    """Return an integer with thousands separators: `12,288`; a dash for None."""
    return "–" if value is None else f"{value:,}"


def counted(count: int, what: str) -> str:
    """Return `1 step`, `2 steps`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Return bytes in a short form: `96 bytes`, `12 KiB`, `1.5 MiB`."""
    if count < 1024:
        return counted(count, "byte")
    value, unit = (count / 1024, "KiB") if count < 1 << 20 else (count / (1 << 20), "MiB")
    return f"{value:.0f} {unit}" if value == int(value) else f"{value:,.1f} {unit}"


def short_count(count: int) -> str:
    """Return a number with at most three digits and a unit: `640`, `2.36 M`."""
    for unit, scale in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return str(count)


def short_size(count: int) -> str:
    """Return bytes in the shortest form, for axes: `96 B`."""
    return f"{count} B" if count < 1024 else size(count)


def change(before: float, after: float) -> str:
    """Return the change of a number: `+96 (+12.5 %)`."""
    difference = after - before
    text = f"{difference:+,.0f}" if abs(difference) >= 1000 else f"{difference:+,.6g}"
    if before:
        text += f" ({(after - before) / before:+.1%})".replace("%", " %")
    return text.replace("-", "−")


def percent(part: int, whole: int) -> str:
    """Return a part in percent: `37.5 %`."""
    return f"{part / whole:.1%}".replace("%", " %") if whole else "0 %"


def seconds(nanoseconds: float) -> str:
    """Return a time in its natural unit."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= scale:
            return f"{nanoseconds / scale:,.3f} {unit}"
    return f"{nanoseconds:.0f} ns"


def span(first: int, last: int) -> str:
    """Return a range of steps: `step 3`, `steps 3 to 5`."""
    return f"step {first}" if first == last else f"steps {first} to {last}"


def tensor(dtype: str, shape: Sequence[int]) -> str:
    """Return a tensor type: `int8 [1, 64]`."""
    return f"{dtype} {list(shape)}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names, and the number of the others: `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def steps_of(model: data.Model, indexes: Sequence[int], most: int = 4) -> str:
    """Return steps with their operators: `3 conv, 4 dense`; steps of an import with the name of the layer."""
    return listed([f"{i} {_operator(model, i)}" if i < len(model.steps) else str(i) for i in indexes], most)


def _operator(model: data.Model, step: int) -> str:
    layer = model.layers[step] if step < len(model.layers) else None
    return layer.kind if layer is not None and layer.name else model.steps[step].operator


def buffer(model: data.Model, item: data.Buffer) -> str:
    """Return the description of a buffer."""
    padding = f" ({number(item.reserved - item.bytes)} of them padding)" if item.reserved > item.bytes else ""
    parts = [
        f"{counted(item.reserved, 'byte')} at offset {number(item.offset)}{padding}",
        span(item.first, item.last),
        f"{item.role}, {tensor(item.dtype, item.shape)}",
    ]
    if item.takes_over is not None:
        parts.append(f"in place of {model.titles.get(item.takes_over, item.takes_over)}")
    if item.role == "scratch":
        parts.append(f"used by {steps_of(model, item.writers)}")
    else:
        parts += [f"written by {steps_of(model, item.writers)}"] if item.writers else []
        parts += [f"read by {steps_of(model, item.readers)}"] if item.readers else []
    return "; ".join(parts)


def programs_of(model: data.Model, device: data.Device) -> list[str]:
    """Return the programs that a device runs, its own first."""
    used = [device.program, *(step.program for step in model.steps if step.device == device.name)]
    return list(dict.fromkeys(program for program in used if program is not None))

# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's signal operators that keep samples as C functions, which change their states in place."""

from __future__ import annotations

from opwest.compiler.emission.expressions import clamped
from opwest.compiler.emission.function import Call, Lines, call_of, emits
from opwest.compiler.ir.signal import Delay, Frames, OverlapAdd, Stack


def _copy(lines: Lines, to: str, source: str, count: int, function: str = "memcpy") -> None:
    """Append a copy of elements, unless there are none."""
    if count > 0:
        lines.add(f"{function}({to}, {source}, {count} * sizeof(*data));")


def _after(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name


def _push(lines: Lines, state: str, kept: int, count: int) -> None:
    """Append the move of `count` elements of the data into a state of `kept`, whose oldest elements leave it."""
    if count < kept:
        _copy(lines, state, f"{state} + {count}", kept - count, "memmove")
        _copy(lines, f"{state} + {kept - count}", "data", count)
    else:
        _copy(lines, state, _after("data", count - kept), kept)


@emits(Frames)
def frames(operation: Frames) -> Call:
    """Return the call."""
    numbers, lines = operation.numbers, Lines()
    size, step, kept = numbers.size, numbers.step, numbers.kept
    has_count = numbers.missing > 0
    if has_count:
        lines.add("const int32_t before = *seen;", "")
        lines.add(f"valid[0] = before >= {numbers.missing};")
        most = numbers.missing - numbers.frames
        if most > 0:
            lines.add(f"*seen = before < {most} ? before + {numbers.frames} : {numbers.missing};")
        else:
            lines.add(f"*seen = {numbers.missing};")
    else:
        lines.add("valid[0] = 1;")
    head = f"for (int row = 0; row < {numbers.rows}; row++)"
    with lines.block(head):
        with lines.loop("frame", numbers.frames):
            if has_count:
                with lines.block(f"if (before + frame < {numbers.missing})"):
                    lines.add(f"memset(frames, 0, {size} * sizeof(*frames));")
                with lines.block("else"):
                    _frame(lines, size, kept)
            else:
                _frame(lines, size, kept)
            _push(lines, "samples", kept, step)
            lines.add(f"data += {step};", f"frames += {size};")
        if kept:
            lines.add(f"samples += {kept};")
    names = ("data", *(("samples",) if kept else ()), *(("seen",) if has_count else ()))
    return call_of(
        operation,
        "frames",
        lines,
        names,
        states=names[1:],
        results=("frames", "valid"),
        headers=("string.h",),
    )


def _frame(lines: Lines, size: int, kept: int) -> None:
    """Append the copy of a frame: elements of the state, then of the data."""
    _copy(lines, "frames", "samples", min(size, kept))
    _copy(lines, _after("frames", kept), "data", size - kept)


@emits(OverlapAdd)
def overlap_add(operation: OverlapAdd) -> Call:
    """Return the call."""
    data, step = operation.inputs[0], operation.step
    size, lines, kind = data.shape[-1], Lines(), data.dtype
    kept, count, rows = size - step, data.shape[-2], data.size // (data.shape[-2] * size)

    def total(place: str) -> str:
        if kind == "float32":
            return f"sums[{place}] + data[{place}]"
        return clamped(f"sums[{place}] + data[{place}]", -32768, 32767, "int16")

    def alone(place: str) -> str:
        # The sum with 0 of tflite-micro: it changes -0.
        return f"0.0f + data[{place}]" if kind == "float32" else f"data[{place}]"

    def part(low: int, high: int, target: str, place: str, text: str) -> None:
        if low < high:
            with lines.block(f"for (int i = {low}; i < {high}; i++)"):
                lines.add(f"{target}[i] = {text.format(place)};")

    with lines.repeat("row", rows):
        with lines.repeat("frame", count):
            both, one = total("{0}"), alone("{0}")
            part(0, min(step, kept), "result", "i", both)
            part(kept, step, "result", "i", one)
            part(0, kept - step, "sums", f"i + {step}", both)
            part(max(kept - step, 0), kept, "sums", f"i + {step}", one)
            if rows * count > 1:
                lines.add(f"data += {size};", f"result += {step};")
        if kept and rows > 1:
            lines.add(f"sums += {kept};")
    names = ("data", "sums")[: 1 + (kept > 0)]
    helpers = () if kind == "float32" else ("clamp",)
    return call_of(operation, "overlap_add", lines, names, states=names[1:], helpers=helpers)


@emits(Stack)
def stack(operation: Stack) -> Call:
    """Return the call."""
    numbers, lines = operation.numbers, Lines()
    channels, kept = numbers.channels, numbers.channels * (numbers.frames - 1)
    with lines.block("if (*seen == 0)"):
        with lines.block(f"for (int i = 0; i < {kept}; i += {channels})"):
            lines.add(f"memcpy(frames + i, data, {channels} * sizeof(*data));")
        lines.add(f"*seen = {numbers.left + 1};")
    lines.add(f"valid[0] = *seen == {numbers.frames};")
    with lines.block("if (valid[0])"):
        _copy(lines, "stack", "frames", kept)
        _copy(lines, f"stack + {kept}", "data", channels)
        lines.add(f"*seen -= {numbers.step};")
    with lines.block("else"):
        lines.add(f"memset(stack, 0, {kept + channels} * sizeof(*stack));")
    lines.add("*seen += 1;")
    _push(lines, "frames", kept, channels)
    names = ("data", "frames", "seen")
    return call_of(
        operation, "stack", lines, names, states=names[1:], results=("stack", "valid"), headers=("string.h",)
    )


@emits(Delay)
def delay(operation: Delay) -> Call:
    """Return the call."""
    data, samples = operation.inputs
    rows, kept = samples.shape
    length, lines = data.size // rows, Lines()
    with lines.repeat("row", rows):
        _copy(lines, "result", "samples", min(kept, length))
        _copy(lines, _after("result", kept), "data", length - kept)
        _push(lines, "samples", kept, length)
        if rows > 1:
            lines.add(f"data += {length};", f"result += {length};", f"samples += {kept};")
    names = ("data", "samples")
    return call_of(operation, "delay", lines, names, states=names[1:], headers=("string.h",))

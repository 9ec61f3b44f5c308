# SPDX-License-Identifier: Apache-2.0
"""Assembly for a GEMM tile of 2 rows by 4 channels: rows of scratch memory times packed weights.

All 8 even registers are sums; a step of 16 products for each of them is 14 instructions. Odd registers hold pointers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.convolution import folded
from opwest.compiler.emission.matrix import bound_of
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.mve.epilogue import (
    Assembly,
    Epilogue,
    add_steps,
    epilogue_of,
    finish,
    gather_sums,
    narrow,
    scale,
    start,
    sums_of,
)
from opwest.compiler.kernels.scaling import flat_weights

ITEMS = {"int8": 1, "int16": 2}
"""The bytes of elements."""


def is_single(operation: Convolution) -> bool:
    """Whether the data is one window, hence one row of a matrix product."""
    data, window, (results, kh, kw, depth) = operation.inputs[0], operation.window, operation.weights.shape
    if data.size != kh * kw * depth or operation.results[0].size != results:
        return False
    image = (data.shape[1], data.shape[2]) if len(data.shape) == 4 else (1, 1)
    return image == (kh, kw) and not window.is_padded(image)


def layer_of(operation: Convolution) -> tuple[Any, Any, Epilogue] | None:
    """Return weights [o,k], biases and the end of a layer; None for other dtypes and ends.

    Sums have 32 bits: those of int16 data have to fit.
    """
    data, result = operation.inputs[0], operation.results[0]
    weights = flat_weights(operation)
    dtype = data.dtype
    if dtype not in ITEMS or result.dtype != dtype or str(weights.dtype) != "int8":
        return None
    bias = folded(weights, operation.bias, operation.zero, dtype)
    bias = np.zeros(len(weights), np.int64) if bias is None else bias
    bounds = bounds_of(weights, bias, dtype)
    ending = None if bounds is None else epilogue_of(operation.finish, len(weights), bounds, dtype)
    return None if ending is None else (weights, bias, ending)


def sums_layer_of(operation: Convolution) -> tuple[Any, Any, Epilogue] | None:
    """Return weights [o,k], biases and the end of a layer whose results are its int32 sums; None for other dtypes."""
    weights = flat_weights(operation)
    if (operation.inputs[0].dtype, operation.results[0].dtype, str(weights.dtype)) != ("int8", "int32", "int8"):
        return None
    return weights, folded(weights, operation.bias, operation.zero, "int8"), sums_of(len(weights))


def bounds_of(weights: Any, bias: Any, dtype: str) -> Any:
    """Return the greatest magnitude of the sums of each channel: weights [o, ...]. None: int16 data of 64-bit sums."""
    if dtype == "int8":
        return bound_of(weights, bias, "int8")
    # The bounds of int8 data without a bias, for data of 8 bits more.
    bounds = bound_of(weights, None, "int8") * 256 + np.abs(bias)
    return bounds if bounds.max() < 1 << 31 else None


UNROLLED = 9
"""Rows of more vectors are loops."""
STORES = {1: "b", 2: "h", 4: "w"}
"""The letter of stores by the bytes of a result."""
SAVED = 24
"""Bytes of the stack for pointers."""


def padded(length: int) -> int:
    """Return the bytes of a row in scratch memory with some bytes of data: whole vectors."""
    return -(-length // 16) * 16


def packed(weights: Any, bias: Any, ending: Epilogue, fill: int, item: int, *, has_nibbles: bool = False) -> Any:
    """Return numbers, then for each 4 channels weights [step][channel][lane] and the numbers of the channels, as int32.

    The last group has the last 4 channels, so that some of them are computed twice. With nibbles a byte has the weights
    of two neighbouring channels, that of the first one in its low half.
    """
    channels, length = weights.shape
    wide = np.pad(weights, ((0, 0), (0, padded(length * item) // item - length)))
    parts = [ending.numbers(fill).view(np.int8)]
    for places in groups(channels):
        chosen = np.stack([wide[place] if place >= 0 else np.zeros_like(wide[0]) for place in places])
        vectors = chosen.reshape(4, -1, 16 // item).transpose(1, 0, 2)
        if has_nibbles:
            vectors = vectors[:, 1::2] << 4 | vectors[:, 0::2] & 15
        parts += [vectors.reshape(-1), ending.group(bias, places)]
    return np.concatenate(parts).view(np.int32)


def groups(channels: int) -> list[list[int]]:
    """Return the channels of each group of 4."""
    if channels < 4:
        return [[channel if channel < channels else -1 for channel in range(4)]]
    starts = [*range(0, channels - 3, 4), *([channels - 4] if channels % 4 else [])]
    return [list(range(first, first + 4)) for first in starts]


@dataclass(frozen=True)
class Taps:
    """Rows of windows with all channels, of which some words of each element of the window are read."""

    words: int
    """The words of an element: 1 or 2."""
    step: int
    """The bytes from one element to the next."""
    row: int
    """The bytes from one row to the next."""

    @property
    def turn(self) -> int:
        """The bytes from a vector to the next one: gathers have offsets up to 508."""
        return 4 // self.words * self.step

    def places(self, code: Assembly) -> None:
        """Append the places of 4 words less a turn, as q6; r0, r2, r4 and r6 are changed."""
        words = [number // self.words * self.step + number % self.words * 4 - self.turn for number in range(4)]
        for register, place in zip(("r0", "r2", "r4", "r6"), words, strict=True):
            code.constant(register, place & 0xFFFFFFFF)
        code.add("vmov q6[2], q6[0], r0, r4", "vmov q6[3], q6[1], r2, r6")


def is_unrolled(steps: int, row: int) -> bool:
    """Whether the products of rows `row` bytes apart are no loop: the second row is loaded with offsets up to 508."""
    return steps <= UNROLLED and row + 16 * (steps - 1) <= 508


def function_of(
    length: int,
    channels: int,
    ending: Epilogue,
    item: int,
    pitch: int = 0,
    taps: Taps | None = None,
    row: int = 0,
    *,
    has_nibbles: bool = False,
) -> tuple[str, str]:
    """Return the name and the definition of void f(rows, numbers, result, count): `count` rows of `length` products.

    `item` is the bytes of an element: sums of int16 data have 32 bits as well. `pitch`: the elements from one row of
    the result to the next; 0: they follow each other. `taps`: the rows are those of windows with further channels.
    `row`: the bytes from one row to the next, 0 for those of the products. Rows of few vectors must be `is_unrolled`.
    `has_nibbles`: weights of 4 bits, of int8 data.
    """
    words = ["16" * (item == 2), f"pitch{pitch}" * (pitch > 0), f"row{row}" * (row > 0)]
    words += [f"taps{taps.words}x{taps.step}_{taps.row}"] if taps else []
    words += ["nibbles" * has_nibbles]
    name = "_".join([f"mve_rows_{length}x{channels}_{ending.name}", *filter(None, words)])
    step = pitch or channels
    steps = padded(length * item) // 16
    row = taps.row if taps else row or 16 * steps
    out = 4 if ending.is_sums else item
    advance = (channels & ~3 if channels > 3 else 4) * out
    is_loop = steps > UNROLLED
    saved = SAVED + (16 if taps else 0)
    code = Assembly()
    pushes = [f"sub sp, #{saved}", "mov r7, r2", "mov r9, r0"]
    start(code, ending, ["vpush {d12-d15}" if taps else "", *pushes, "ldr r2, [r1]", "mov r5, r1"], "r5", item)
    if taps:
        code.add("mov r10, r2")
        taps.places(code)
        code.add(f"vstrw.32 q6, [sp, #{SAVED}]", "mov r2, r10")
    code.add("adds r5, #16", "strd r3, r5, [sp, #16]")
    if not is_loop:
        code.add("mov r1, r2")
    else:
        code.add("str r2, [sp, #8]")
    code.constant("r3", step * out)
    code.add("add r3, r7", "2:")
    # A pair of rows; the second of a last single row is written first, to the same place.
    code.add("ldrd r0, r5, [sp, #16]", "cmp r0, #1", "it eq", "moveq r3, r7")
    if is_loop:
        code.add("mov r1, r9")
        code.plus("r1", row)
        code.add("strd r9, r1, [sp]", "mov r0, r7")
        code.plus("r0", advance, "r2")
        code.add("str r0, [sp, #12]")
    else:
        code.add("mov r11, r7")
        code.plus("r11", advance)
    # The bytes of 4 channels in the stream.
    size = (32 if has_nibbles else 64 // item) * steps + ending.group_bytes
    code.add("3:")
    if taps:
        code.add(f"vldrw.32 q6, [sp, #{SAVED}]", "vadd.i32 q6, q6, r9")
        code.constant("r0", row)
        code.add("vadd.i32 q7, q6, r0")
    _products(code, steps, is_loop, (row, 0 if has_nibbles else item), taps)
    gather_sums(code)
    if is_loop:
        code.add("ldrd r9, r1, [sp]", "ldrd r0, r2, [sp, #8]")
    scale(code, ending, ["q0", "q1"], "r5", ("q2", "q3"))
    if not ending.is_sums:
        code.add("vqmovnb.s32 q0, q0", "vqmovnt.s32 q0, q1")
        narrow(code, ending, "q0", "r0" if is_loop else "r1", item)
        code.add("vshr.u32 q1, q0, #16")
    store, moved = f"vstr{STORES[out]}", 4 * out
    if channels < 4:
        code.add(f"movs r4, #{channels}", "vctp.32 r4", "vpstt")
        code.add(f"{store}t.32 q1, [r3], #{moved}", f"{store}t.32 q0, [r7], #{moved}")
    else:
        code.add(f"{store}.32 q1, [r3], #{moved}", f"{store}.32 q0, [r7], #{moved}")
        code.add(f"cmp r7, {'r2' if is_loop else 'r11'}", "bne 3b")
        if channels % 4:
            _last_channels(code, channels, (len(groups(channels)) * size, out), is_loop)
    code.add("mov r7, r3")
    code.plus("r7", (step - channels + min(channels - 4, 0)) * out)
    code.constant("r3", step * out)
    code.add("add r3, r7")
    code.plus("r9", 2 * row)
    code.add("ldr r0, [sp, #16]", "subs r0, #2", "str r0, [sp, #16]", "bgt 2b")
    finish(code, ending, saved, "vpop {d12-d15}" if taps else "")
    parameters = ["const int8_t *rows", "const int32_t *numbers", f"int{8 * out}_t *result", "int count"]
    comment = f"Rows of {length} elements times {channels} channels of packed weights."
    return name, code.function(name, parameters, comment)


def _last_channels(code: Assembly, channels: int, sizes: tuple[int, int], is_loop: bool) -> None:
    """Append the way back to the last 4 channels, unless they are done: the end of the stream tells.

    `sizes`: the bytes of the stream and of a result.
    """
    size, out = sizes
    rest, back = channels % 4 * out, (4 - channels % 4) * out
    code.add("ldr r0, [sp, #20]")
    code.plus("r0", size, "r2")
    code.add("cmp r5, r0", "beq 4f", f"subs r7, #{back}", f"subs r3, #{back}")
    if is_loop:
        code.add("ldr r0, [sp, #12]", f"adds r0, #{rest}", "str r0, [sp, #12]")
    else:
        code.add(f"adds r11, #{rest}")
    code.add("b 3b", "4:")


def _products(code: Assembly, steps: int, is_loop: bool, sizes: tuple[int, int], taps: Taps | None) -> None:
    """Append the sums of 4 channels by 2 rows; `sizes`: the bytes of a row and of an element, 0 for nibbles."""
    row, item = sizes
    rows = ["vldrw.32 q0, [r9], #16", "vldrw.32 q1, [r1], #16"]
    if taps:
        rows = [f"vldrw.u32 q{number}, [q{6 + number}, #{taps.turn}]!" for number in range(2)]
    if not is_loop:
        for step in range(steps):
            places = [f"vldrw.32 q0, [r9, #{16 * step}]", f"vldrw.32 q1, [r9, #{row + 16 * step}]"]
            _step(code, rows if taps else places, item, step == 0)
        return
    add_steps(code, steps, range(3, 10), 14, partial(_step, code, rows, item))


def _step(code: Assembly, rows: list[str], item: int, is_first: bool) -> None:
    """Append the products of a vector of each row; `item`: the bytes of an element, 0 for weights of 4 bits."""
    if not item:
        _nibbles(code, rows, "vmladav" if is_first else "vmladava")
        return
    name = f"vmladav{'' if is_first else 'a'}.s{8 * item}"
    weights = "vldrw.32 {}, [r5], #16" if item == 1 else "vldrb.s16 {}, [r5], #8"
    code.add(*rows, weights.format("q2"), f"{name} r0, q0, q2", weights.format("q3"), f"{name} r2, q1, q2")
    code.add(f"{name} r4, q0, q3", weights.format("q2"), f"{name} r6, q1, q3", f"{name} r8, q0, q2")
    code.add(weights.format("q3"), f"{name} r10, q1, q2", f"{name} r12, q0, q3", f"{name} lr, q1, q3")


def _nibbles(code: Assembly, rows: list[str], name: str) -> None:
    """Append the products of weights of two channels in each byte."""
    code.add(*rows)
    for one, two, three, four in (("r0", "r2", "r4", "r6"), ("r8", "r10", "r12", "lr")):
        code.add("vldrw.32 q2, [r5], #16", "vshr.s8 q3, q2, #4", "vshl.i8 q2, q2, #4", "vshr.s8 q2, q2, #4")
        code.add(f"{name}.s8 {one}, q0, q2", f"{name}.s8 {two}, q1, q2")
        code.add(f"{name}.s8 {three}, q0, q3", f"{name}.s8 {four}, q1, q3")

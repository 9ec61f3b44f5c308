# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions of any window: gathers of 4 words of taps times weights, 4 channels of 2 results at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from opwest.compiler.emission.convolution import folded, plain_weights
from opwest.compiler.emission.depthwise import can_replace
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_for, emits
from opwest.compiler.ir.operations import Depthwise
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import (
    COPY,
    FILL,
    NUMBERS,
    Assembly,
    Epilogue,
    epilogue_of,
    gather_sums,
    narrow,
    scale,
)
from opwest.compiler.kernels.mve.pairs import ITEMS, bounds_of
from opwest.compiler.kernels.mve.words import (
    LANES,
    VECTOR,
    WORD,
    Words,
    add_part,
    add_planes,
    add_row,
    columns_function,
    words_function,
    words_of,
)
from opwest.compiler.semantics.windows import Window

UNROLLED = 8
"""Windows of more vectors are loops."""
WORDS, RESULT, COLUMNS, ZERO, STREAM, CHANNELS, OFFSETS, PITCH, LAST, TAP = range(0, 40, 4)
"""The places of pointers and numbers on the stack."""
SAVED = 40
ARGUMENTS = SAVED + 64 + 36
"""The bytes from the stack pointer to the arguments on the stack."""


@emits(Depthwise, "mve-gathers", has_pitch=True)
def render(operation: Depthwise) -> Call | None:
    """Return the call; None for other dtypes, ends that differ, sums of more than 32 bits, and large strides.

    None also for windows that do not reach the columns of the data.
    """
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    weights = plain_weights(operation.weights, operation.weight_zero)
    if data.dtype not in ITEMS or result.dtype != data.dtype or str(weights.dtype) != "int8":
        return None
    shape = data.shape
    if shape[2] == window.size[1] == 1 and (window.before[1], window.result[1]) == (0, 1):
        # A single column has the order of a row.
        shape, weights = (shape[0], 1, shape[1], shape[3]), weights.transpose(1, 0, 2)
        window = Window(*((places[1], places[0]) for places in dataclasses.astuple(window)))
    item, results = ITEMS[data.dtype], weights.shape[2]
    flat = weights.reshape(-1, results).T
    bias = folded(flat, operation.bias, operation.zero, data.dtype)
    bias = np.zeros(results, np.int64) if bias is None else bias
    bounds = bounds_of(flat, bias, data.dtype)
    ending = None if bounds is None else epilogue_of(operation.finish, results, bounds, data.dtype)
    words = words_of(shape, window, results, item)
    if words is not None and words.is_flat and result.pitch:
        # The results of a row do not follow each other.
        return None
    if ending is None or words is None or not words.has_data:
        return None
    name, text = row_function(words, ending, (words.run if words.is_flat else results) % LANES > 0)
    ends = [min(words.channels, results - start) for start in words.starts]
    columns = [] if words.is_joined else [columns_function(words, ends[0]), columns_function(words, ends[-1])]
    interleave = words_function(item, words.rest)
    lines = Lines()
    streams = [_stream(words, weights, bias, ending, start) for start in words.starts]
    sizes = (len(streams[0]), result.row)
    _body(lines, words, [name, interleave[0], *(one[0] for one in columns)], ends, sizes)
    head = np.concatenate([ending.numbers(operation.zero), np.asarray(words.offsets(), np.int32)])
    arguments = {"data": data, "numbers": np.concatenate([head, *streams])}
    if words.multiplier > 1:
        arguments["places"] = _places(words)
    is_in_place = not result.pitch and words.parts == 1 and can_replace(shape, window, results)
    scratch = [Parameter("rows", "int32", "scratch", elements=-(-words.scratch // WORD))]
    definitions = [NAKED, *([FILL] if "mve_fill" in str(lines) else []), *([COPY] if "mve_copy" in str(lines) else [])]
    definitions += dict.fromkeys([*(one[1] for one in columns), interleave[1], text])
    in_place = ("data",) if is_in_place else ()
    return call_for(operation, "depthwise", lines, arguments, in_place, scratch, definitions=tuple(definitions))


def _stream(words: Words, weights: Any, bias: Any, ending: Epilogue, start: int) -> Any:
    """Return for each 4 channels of a block weights [vector][channel][tap] and the numbers of the channels."""
    results = weights.shape[2]
    parts = []
    for plane in words.planes:
        chosen = weights[plane.row : plane.row + plane.down, : plane.columns]
        wide = np.pad(chosen, ((0, plane.down - len(chosen)), (0, plane.uses * plane.over - plane.columns), (0, 0)))
        # [row,use,column,o] to [o,use,row,column]: the words of a window.
        split = wide.reshape(plane.down, plane.uses, plane.over, results)
        parts.append(split.transpose(3, 1, 0, 2).reshape(results, -1))
    flat = np.concatenate(parts, axis=1)
    flat = np.pad(flat, ((0, 0), (0, words.vectors * LANES * words.taps - flat.shape[1])))
    taps = flat.reshape(results, words.vectors, -1)
    found = []
    for first in range(start, min(start + words.channels, results), LANES):
        places = [place if place < results else -1 for place in range(first, first + LANES)]
        if words.is_flat:
            places = [lane % results for lane in range(LANES)]
        chosen = np.stack([taps[place] if place >= 0 else np.zeros_like(taps[0]) for place in places])
        found.append(chosen.transpose(1, 0, 2).reshape(-1))
        if words.is_short:
            found.append(np.asarray([weights[-1, -1, place] if place >= 0 else 0 for place in places], np.int8))
        found.append(ending.group(bias, places))
    return np.concatenate(found).view(np.int32)


def _places(words: Words) -> Any:
    """Return for each channel of the result, in whole vectors, the channel of the data from the first of its block."""
    lanes = VECTOR // words.item
    found = []
    for start in words.starts:
        channels = np.arange(start, start + -(-words.channels // lanes) * lanes)
        found.append(np.minimum(channels, words.results - 1) // words.multiplier - start // words.multiplier)
    return np.concatenate(found).astype(f"int{8 * words.item}").view(np.int8)


def _body(lines: Lines, words: Words, names: list[str], ends: list[int], sizes: tuple[int, int]) -> None:
    """Append the loops over images, blocks of channels and rows of results.

    `sizes`: the numbers of a block, the elements of a pixel of the result.
    """
    images, height, width, depth = words.data
    (rows, columns), (stride, _) = words.window.result, words.window.stride
    item, (size, pitch), blocks = words.item, sizes, len(words.starts)
    kind = c_type(f"int{8 * item}")
    source = "data" if item == 1 else "(const int8_t *)data"
    head = len(NUMBERS) + words.vectors * LANES
    (kh, kw), dilation = words.window.size, words.window.dilation[1]
    last = f", r{kh - 1} + {(kw - 1) * dilation * words.column}" if words.is_short else ""
    is_padded = words.window.is_padded((height, width)) or words.columns > width or words.parts > 1
    if words.ring:
        lines.add("int8_t *ring = (int8_t *)rows;", f"int8_t *words = ring + {words.ring};")
    else:
        lines.add("int8_t *words = (int8_t *)rows;")
    if is_padded:
        lines.add(f"const int fill = numbers[{NUMBERS.index('fill')}];")
    if is_padded and words.parts == 1:
        # Without a ring, the columns of the padding are words that no row changes.
        filled = words.ring + (len(words.planes) * words.plane if words.is_direct else 0)
        lines.add("", f"mve_fill((int8_t *)rows, fill, {filled});")
    lines.add("")
    with lines.repeat("n", images), lines.repeat("part", words.parts), lines.repeat("block", blocks):
        image, target, stream, channels = source, "result", f"numbers + {head}", f"{ends[0]}"
        if images > 1:
            image += f" + n * {height * width * depth * item}"
            target += f" + n * {rows * columns * pitch}"
        if words.parts > 1:
            add_part(lines, words)
            target += f" + x * {pitch}"
        if blocks > 1:
            shift = f"block * {words.column}"
            if words.multiplier > 1:
                shift = f"block * {words.channels} / {words.multiplier} * {item}"
            image += f" + {shift}"
            target += f" + block * {words.channels}"
            stream += f" + block * {size}"
            if ends[0] != ends[-1]:
                channels = f"block < {blocks - 1} ? {ends[0]} : {ends[-1]}"
        lines.add(f"const int8_t *image = {image};", f"{kind} *y = {target};")
        lines.add(*([] if words.is_direct else ["int next = 0;"]), "")
        if words.parts > 1:
            lines.add(f"mve_fill(ring, fill, {words.ring});")
        with lines.loop("oy", rows):
            if not words.is_direct:
                if stride > words.rows:
                    lines.add(f"next = oy * {stride};")
                with lines.block(f"for (; next < oy * {stride} + {words.rows}; next++)"):
                    add_row(lines, words, names[2:])
            add_planes(lines, words, names[1])
            run = f"{words.run}, 2, {words.part // 2 * words.channels}" if words.is_flat else None
            numbers = run or f"{channels}, {words.part}, {pitch}"
            lines.add(f"{names[0]}(words, numbers, {stream}, y, {numbers}{last});")
            lines.add(f"y += {columns * pitch};")


def row_function(words: Words, ending: Epilogue, has_rest: bool) -> tuple[str, str]:
    """Return the name and the definition of void f(words, numbers, stream, result, channels, columns, pitch, last).

    It computes a row of results of a block of channels; `pitch` is the number of elements of a pixel, `last` the first
    element of the last tap, if it is not in a word.
    """
    count, item = words.vectors, words.item
    code = Assembly()
    code.add("push {r4-r11, lr}", "vpush {d8-d15}", f"sub sp, #{SAVED}", f"str r0, [sp, #{WORDS}]")
    code.add(f"str r3, [sp, #{RESULT}]", f"ldr r0, [sp, #{ARGUMENTS}]", f"str r0, [sp, #{CHANNELS}]")
    if words.is_short:
        code.add(f"ldr r0, [sp, #{ARGUMENTS + 12}]", f"str r0, [sp, #{LAST}]")
    code.add(f"ldrd r4, r6, [sp, #{ARGUMENTS + 4}]", f"str r2, [sp, #{STREAM}]")
    code.add(*(["lsls r6, #1"] if item == 2 else []), f"str r4, [sp, #{COLUMNS}]", f"str r6, [sp, #{PITCH}]")
    if ending.has_clamp:
        code.add("ldrd r4, r6, [r1, #4]", f"vdup.{8 * item} q4, r4", f"vdup.{8 * item} q5, r6")
    code.add("ldr r0, [r1], #16", f"str r0, [sp, #{ZERO}]", f"str r1, [sp, #{OFFSETS}]")
    if count == 1:
        code.add("vldrw.32 q7, [r1]", "mov r1, r0")
    code.add("2:", f"ldrd r9, r7, [sp, #{WORDS}]", f"ldr r0, [sp, #{COLUMNS}]")
    code.add(f"ldrd r5, r11, [sp, #{STREAM}]", f"ldr r3, [sp, #{PITCH}]")
    # The second of a last single result is written first, to the same place.
    code.add("cmp r0, #1", "ite eq", "moveq r3, r7", "addne r3, r7")
    if words.is_short:
        code.add(f"ldr r0, [sp, #{LAST}]", f"str r0, [sp, #{TAP}]")
    code.add("3:")
    if words.is_flat:
        # All lanes have the same weights.
        code.add(f"ldr r5, [sp, #{STREAM}]")
    _products(code, words)
    code.add(f"adds r9, #{LANES * words.lane}")
    gather_sums(code)
    if words.is_short:
        _last_tap(code, words)
    if count > 1 and item == 1:
        code.add(f"ldr r0, [sp, #{ZERO}]")
    scale(code, ending, ["q0", "q1"], "r5", ("q2", "q3"))
    code.add("vqmovnb.s32 q0, q0", "vqmovnt.s32 q0, q1")
    narrow(code, ending, "q0", "r1" if count == 1 else "r0", item)
    code.add("vshr.u32 q1, q0, #16")
    store, moved = ("vstrb", 4) if item == 1 else ("vstrh", 8)
    condition = "t" if has_rest else ""
    if has_rest:
        code.add("vctp.32 r11", "vpstt")
    code.add(f"{store}{condition}.32 q1, [r3], #{moved}", f"{store}{condition}.32 q0, [r7], #{moved}")
    code.add("subs r11, #4", "bgt 3b", f"ldrd r0, r2, [sp, #{WORDS}]", f"ldr r4, [sp, #{PITCH}]")
    code.plus("r0", 2 * words.pixel, "r6")
    code.add("add r2, r2, r4, lsl #1", f"strd r0, r2, [sp, #{WORDS}]")
    if words.is_short:
        code.add(f"ldr r0, [sp, #{LAST}]")
        code.plus("r0", 2 * words.window.stride[1] * words.column, "r6")
        code.add(f"str r0, [sp, #{LAST}]")
    code.add(f"ldr r0, [sp, #{COLUMNS}]", "subs r0, #2", f"str r0, [sp, #{COLUMNS}]", "bgt 2b")
    code.add(f"add sp, #{SAVED}", "vpop {d8-d15}", "pop {r4-r11, pc}")
    rest = "_rest" if has_rest else ""
    flat = f"_flat{words.lane}" if words.is_flat else ""
    flat += f"_short{words.column}" if words.is_short else ""
    name = f"mve_gathers_{count}_p{words.pixel}{flat}{rest}_{ending.name}_{8 * item}"
    parameters = ["const int8_t *words", "const int32_t *numbers", "const int32_t *stream"]
    parameters += [f"int{8 * item}_t *result", "int channels", "int columns", "int pitch"]
    parameters += ["const int8_t *last"] if words.is_short else []
    return name, code.function(name, parameters, f"A row of results of windows of {count} vectors of words.")


def _last_tap(code: Assembly, words: Words) -> None:
    """Append the addition of the products of the tap that is not in a word, to the sums in q0 and q1."""
    code.add(f"ldr r0, [sp, #{TAP}]", "add r2, r0, #8", f"str r2, [sp, #{TAP}]", "vldrb.s32 q3, [r5], #4")
    code.add("vldrh.s32 q2, [r0]", "vmul.i32 q2, q2, q3", "vadd.i32 q0, q0, q2")
    code.plus("r0", words.window.stride[1] * words.column, "r2")
    code.add("vldrh.s32 q2, [r0]", "vmul.i32 q2, q2, q3", "vadd.i32 q1, q1, q2")


def _products(code: Assembly, words: Words) -> None:
    """Append the sums of 4 channels by 2 results."""
    if words.vectors == 1:
        code.add("vadd.i32 q6, q7, r9")
        _step(code, words, True)
        return
    code.add(f"ldr r1, [sp, #{OFFSETS}]")
    if words.vectors <= UNROLLED:
        for number in range(words.vectors):
            code.add(f"vldrw.32 q6, [r1, #{VECTOR * number}]", "vadd.i32 q6, q6, r9")
            _step(code, words, number == 0)
        return
    # The number of channels is on the stack, and the pointer to the results of the second pixel counts.
    code.add("vldrw.32 q6, [r1], #16", "vadd.i32 q6, q6, r9")
    _step(code, words, True)
    code.add("vmov q7[2], q7[0], r3, r11")
    code.constant("r11", words.vectors - 1)
    code.add("5:", "vldrw.32 q6, [r1], #16", "vadd.i32 q6, q6, r9")
    _step(code, words, False)
    code.add("subs r11, #1", "bne 5b", "vmov r3, r11, q7[2], q7[0]")


def _step(code: Assembly, words: Words, is_first: bool) -> None:
    """Append a vector of weights for each channel, times those of 2 results."""
    name = f"vmladav{'' if is_first else 'a'}.s{8 * words.item}"
    for channel in range(LANES):
        code.add("vldrw.32 q2, [r5], #16" if words.item == 1 else "vldrb.s16 q2, [r5], #8")
        places = [words.lane * channel, words.lane * channel + words.pixel]
        code.add(*(f"vldrw.u32 q{number}, [q6, #{place}]" for number, place in enumerate(places)))
        code.add(*(f"{name} {SUMS[2 * channel + number]}, q{number}, q2" for number in range(2)))


SUMS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")

# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions of any window: 8 channels in the lanes of a vector, products of 32 bits.

Only the part of a window inside of the image is read, hence without scratch memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.convolution import plain_weights
from opwest.compiler.emission.function import Call, Lines, c_type, call_for, emits
from opwest.compiler.ir.operations import Depthwise
from opwest.compiler.kernels.mve.epilogue import Epilogue, epilogue_of
from opwest.compiler.kernels.mve.pairs import ITEMS, bounds_of

LANES = 8


@emits(Depthwise, "mve-widened")
def render(operation: Depthwise) -> Call | None:
    """Return the call; None for other dtypes, ends that differ, and sums of more than 32 bits."""
    data, result = operation.inputs[0], operation.results[0]
    weights = plain_weights(operation.weights, operation.weight_zero)
    results = weights.shape[2]
    if data.dtype not in ITEMS or result.dtype != data.dtype or str(weights.dtype) != "int8":
        return None
    bias = np.zeros(results, np.int64) if operation.bias is None else operation.bias.astype(np.int64)
    flat = weights.reshape(-1, results).T
    if data.dtype == "int8":
        # A value less its zero point is at most 255.
        bounds = np.abs(flat.astype(np.int64)).sum(axis=1) * 255 + np.abs(bias)
    else:
        bounds = bounds_of(flat, bias, data.dtype)
    ending = None if bounds is None else epilogue_of(operation.finish, results, bounds, data.dtype)
    if ending is None:
        return None
    lines = Lines()
    _body(lines, operation, ending)
    numbers = _packed(bias.astype(np.int32), ending, operation.zero)
    arguments = {"data": data, "weights": weights, "numbers": numbers}
    if results != data.shape[3]:
        places = np.minimum(np.arange(-(-results // LANES) * LANES), results - 1) // (results // data.shape[3])
        arguments["channels"] = places.astype(np.uint16)
    definitions = (scaled(ending),)
    return call_for(operation, "depthwise", lines, arguments, headers=("arm_mve.h",), definitions=definitions)


def scaled(ending: Epilogue) -> str:
    """Return the C function from 4 sums to rounded values; its numbers are 8 words apart."""
    lines = Lines()
    if ending.has_left:
        lines.add("sums = vshlq_s32(sums, vldrwq_s32(numbers));", "numbers += 8;")
    lines.add("const int32x4_t places = vldrwq_s32(numbers + 8);", "")
    lines.add(f"sums = {'vqrdmulhq_s32' if ending.is_doubled else 'vmulhq_s32'}(sums, vldrwq_s32(numbers));")
    if ending.fix:
        negative = "vandq_s32(sums, places)" if ending.fix == "masked" else "sums"
        lines.add(f"sums = vaddq_s32(sums, vshrq_n_s32({negative}, 31));")
    lines.add("return vrshlq_s32(sums, places);")
    name = f"mve_scaled_{_kind(ending)}"
    head = f"static inline int32x4_t {name}(int32x4_t sums, const int32_t *numbers)"
    return f"/* Sums times multipliers, shifted. */\n{head}\n{{\n{lines}}}\n"


def _kind(ending: Epilogue) -> str:
    return ending.name.removesuffix("_clamp")


def _packed(bias: Any, ending: Epilogue, zero: int) -> Any:
    """Return numbers, then for each 8 channels vectors of even and of odd ones: biases, shifts, multipliers, shifts."""
    lefts = [ending.lefts] if ending.has_left else []
    table = np.stack([bias, *lefts, ending.multipliers, ending.rights]).astype(np.int32)
    table = np.pad(table, ((0, 0), (0, -table.shape[1] % LANES)))
    parts = table.reshape(len(table), -1, 4, 2).transpose(1, 0, 3, 2)
    return np.concatenate([ending.numbers(zero), parts.reshape(-1)])


def _body(lines: Lines, operation: Depthwise, ending: Epilogue) -> None:
    """Append the loops over results."""
    data, window = operation.inputs[0], operation.window
    images, height, width, _ = data.shape
    results = operation.weights.shape[2]
    kind, is_byte = c_type(data.dtype), data.dtype == "int8"
    lines.add(f"{kind} *y = result;")
    if is_byte:
        lines.add("const int16_t zero = (int16_t)numbers[0], fill = (int16_t)numbers[3];")
    lines.add("const int16x8_t low = vdupq_n_s16((int16_t)numbers[1]);")
    lines.add("const int16x8_t high = vdupq_n_s16((int16_t)numbers[2]);", "")
    (rows, columns), (kh, kw) = window.result, window.size
    with (
        lines.repeat("n", images),
        lines.loop("oy", rows),
        lines.loop("ox", columns),
    ):
        for axis, count, size in (("y", kh, height), ("x", kw, width)):
            which = 0 if axis == "y" else 1
            step = window.dilation[which]
            lines.add(f"const int {axis}0 = o{axis} * {window.stride[which]} - {window.before[which]};")
            first = f"{axis}0 < 0 ? (-{axis}0 + {step - 1}) / {step} : 0"
            # Quotients in C are rounded towards zero: this one is at most 0 for windows behind the image.
            end = f"({size - 1 + step} - {axis}0) / {step}"
            lines.add(f"const int {axis}_first = {first};", f"const int {axis}_all = {end};")
            lines.add(f"const int {axis}_end = {axis}_all < {count} ? {axis}_all : {count};")
        lines.add("const int32_t *ends = numbers + 4;", "")
        with lines.block(
            f"for (int o = 0; o < {results}; o += {LANES}, ends += {LANES * (4 if ending.has_left else 3)})"
        ):
            _group(lines, operation, ending)


def _group(lines: Lines, operation: Depthwise, ending: Epilogue) -> None:
    """Append 8 channels of a result."""
    (images, height, width, depth), results = operation.inputs[0].shape, operation.weights.shape[2]
    kind = c_type(operation.inputs[0].dtype)
    is_byte, is_spread = kind == "int8_t", results != depth
    kw, (dy, dx) = operation.window.size[1], operation.window.dilation
    lines.add(f"const mve_pred16_t some = vctp16q((uint32_t)({results} - o));")
    if is_spread:
        lines.add("const uint16x8_t places = vldrhq_u16(channels + o);")
    lines.add("int32x4_t even = vldrwq_s32(ends), odd = vldrwq_s32(ends + 4);", "")
    image = f"n * {height} + " if images > 1 else ""
    with lines.block("for (int ky = y_first; ky < y_end; ky++)"):
        start = f"(({image}y0 + ky * {dy}) * {width} + x0 + x_first * {dx}) * {depth}"
        lines.add(f"const {kind} *p = data + {start}{'' if is_spread else ' + o'};")
        lines.add(f"const int8_t *w = weights + (ky * {kw} + x_first) * {results} + o;", "")
        with lines.block(f"for (int kx = x_first; kx < x_end; kx++, p += {dx * depth}, w += {results})"):
            load = "vldrbq" if is_byte else "vldrhq"
            place = "(p, some)"
            if is_spread:
                load += "_gather_offset" if is_byte else "_gather_shifted_offset"
                place = "(p, places, some)"
            text = f"{load}_z_s16{place}"
            lines.add(f"const int16x8_t x = {f'vsubq_n_s16({text}, fill)' if is_byte else text};")
            lines.add("const int16x8_t v = vldrbq_z_s16(w, some);", "")
            lines.add("even = vaddq_s32(even, vmullbq_int_s16(x, v));", "odd = vaddq_s32(odd, vmulltq_int_s16(x, v));")
    name = f"mve_scaled_{_kind(ending)}"
    lines.add(f"even = {name}(even, ends + 8);", f"odd = {name}(odd, ends + 12);", "")
    lines.add("int16x8_t both = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);", "")
    if is_byte:
        lines.add("both = vqaddq_n_s16(both, zero);")
    lines.add("both = vminq_s16(vmaxq_s16(both, low), high);")
    lines.add(f"vstr{'b' if is_byte else 'h'}q_p_s16(y, both, some);")
    lines.add(f"y += o + {LANES} < {results} ? {LANES} : {results} - o;")

# SPDX-License-Identifier: Apache-2.0
"""int16 convolutions whose sums have more than 32 bits: rows of scratch memory times weights, one channel at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.convolution import folded
from opwest.compiler.emission.function import Call, Lines, emits
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.mve.convolution import Kernel, call_of
from opwest.compiler.kernels.mve.pairs import padded
from opwest.compiler.kernels.scaling import flat_weights
from opwest.compiler.semantics.fixed_point import Requantisation, Rounding, reduced

LANES = 8


@emits(Convolution, "mve-long")
def render(operation: Convolution) -> Call | None:
    """Return the call; None for other dtypes and ends, and where the product of a sum has more than 64 bits."""
    data, finish = operation.inputs[0], operation.finish
    weights = flat_weights(operation)
    if (data.dtype, operation.results[0].dtype, str(weights.dtype)) != ("int16", "int16", "int8"):
        return None
    if not isinstance(finish, Requantisation) or finish.rounding is not Rounding.SIXTEEN:
        return None
    channels = len(weights)
    bias = folded(weights, operation.bias, 0, "int16")
    bias = np.zeros(channels, np.int64) if bias is None else bias
    given = finish.each(channels)
    places = np.asarray([15 - multiplier.shift for multiplier in given], np.int32)
    if places.min() < 1 or np.abs(bias).max() >= 1 << 46 or weights.shape[1] >= 1 << 20:
        return None
    scalars = [reduced([multiplier.fixed for multiplier in given]), places]
    results = channels // operation.groups
    name, text = _function(weights.shape[1], results, channels)
    numbers = []
    for first in range(0, channels, results):
        part = slice(first, first + results)
        ends = [scalar[part] for scalar in scalars]
        numbers.append(_packed(weights[part], bias[part], ends, [0, finish.low, finish.high, 0]))
    kernel = Kernel(name, text, np.concatenate(numbers), ("scale_once", "clamp"), ("arm_mve.h", "string.h"))
    return call_of(operation, kernel)


def _packed(weights: Any, bias: Any, scalars: list[Any], numbers: list[int]) -> Any:
    """Return numbers, then for each channel the bias of 64 bits, the multiplier, the shift, the weights."""
    channels, length = weights.shape
    wide = np.ascontiguousarray(np.pad(weights, ((0, 0), (0, padded(2 * length) // 2 - length))))
    biases = np.ascontiguousarray(bias.astype("<i8")).view("<i4").reshape(channels, 2)
    each = np.concatenate([biases, np.stack(scalars, axis=1).astype(np.int32), wide.view(np.int32)], axis=1)
    return np.concatenate([np.asarray(numbers, np.int32), each.reshape(-1)])


def _function(length: int, channels: int, pitch: int) -> tuple[str, str]:
    """Return the name and the definition of void f(rows, numbers, result, count); rows of results are `pitch` apart."""
    name, row = f"mve_long_{length}x{channels}", padded(2 * length)
    name += f"_pitch{pitch}" if pitch != channels else ""
    lines = Lines()
    lines.add("const int32_t low = numbers[1], high = numbers[2];", "")
    with lines.block(f"for (; count > 0; count--, rows += {row})"):
        lines.add("const int32_t *ends = numbers + 4;", "")
        with lines.block(f"for (int c = 0; c < {channels}; c++, ends += {4 + row // 8})"):
            lines.add("const int16_t *x = (const int16_t *)rows;", "const int8_t *w = (const int8_t *)(ends + 4);")
            lines.add("int64_t sum;", "", "memcpy(&sum, ends, sizeof(sum));")
            with lines.loop("k", row // 2, LANES):
                lines.add("sum = vmlaldavaq_s16(sum, vldrhq_s16(x + k), vldrbq_s16(w + k));")
            lines.add("*result++ = (int16_t)clamp(scale_once(sum, ends[2], ends[3]), low, high);")
        if pitch != channels:
            lines.add(f"result += {pitch - channels};")
    head = f"static void {name}(const int8_t *rows, const int32_t *numbers, int16_t *result, int count)"
    comment = f"/* Rows of {length} elements times {channels} channels, with sums of 64 bits. */"
    return name, f"{comment}\n{head}\n{{\n{lines}}}\n"

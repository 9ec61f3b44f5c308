# SPDX-License-Identifier: Apache-2.0
"""The end of layers in C with few instructions: the numbers of `scaling.py`, or the form of the portable operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.epilogue import LayerEpilogue, ending
from opwest.compiler.emission.expressions import clamped
from opwest.compiler.ir.operations import Finish
from opwest.compiler.kernels.mla.convolution import scaling_with_constants


def end_of(finish: Finish, weights: Any, bias: Any, bounds: Any, zero: int, shared: bool) -> LayerEpilogue:
    """Return the end of an int8 layer: weights [channels, length], the bias with the zero point of the data.

    `zero` is the value of padding. With `shared`, the numbers of the layer are a constant array.
    """
    scaling = scaling_with_constants(finish, weights, bias, bounds)
    if scaling is None:
        return ending(finish, bounds, zero, shared, result="int8")
    form = "once" if not scaling.is_doubled else "signed" if scaling.is_signed else "positive"
    helper = f"scale_added_{form}"
    ends = scaling.ends
    if scaling.is_doubled:
        ends[:, 0] = (2 * ends[:, 0].astype(np.int64)).astype(np.uint32).view(np.int32)
    arrays: list[tuple[str, str, Any]] = [("ends", "int32", ends)]
    low, high, fill, prologue = str(scaling.low), str(scaling.high), str(zero), []
    if shared:
        names = ("low", "high", "fill")
        prologue = [f"const int32_t {name} = numbers[{place}];" for place, name in enumerate(names)]
        arrays.append(("numbers", "int32", np.asarray([scaling.low, scaling.high, zero], np.int32)))
        low, high, fill = names
    load = ("const int32_t *e{n} = ends + ({c}) * 3;", "const int32_t m{n} = e{n}[0], a{n} = e{n}[1], s{n} = e{n}[2];")
    expression = clamped(f"{helper}({{sum}}, m{{n}}, a{{n}}, s{{n}})", low, high, "int8")
    return LayerEpilogue(tuple(arrays), (helper, "clamp"), (), load, expression, tuple(prologue), fill)

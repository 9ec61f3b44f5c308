# SPDX-License-Identifier: Apache-2.0
"""Operations that only readers of ONNX require."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opwest.importers.models.emit.expressions import Expression, clamped, expression_of, plus
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines, number
from opwest.importers.models.ir.onnx import DynamicQuantize, Lookup, QuantizeEven


@expression_of.register
def _(function: Lookup, dtypes: Sequence[str], result: str) -> Expression:
    table = np.asarray(function.table, result)
    return Expression("look_up", "table[(uint8_t){0}]", arrays=(("table", table),))


@expression_of.register
def _(function: QuantizeEven, dtypes: Sequence[str], result: str) -> Expression:
    low, high = (number(float(one - function.zero), "float32") for one in (function.low, function.high))
    value = f"{{0}} / {number(function.scale, 'float32')}"
    # A comparison with NaN is false: the result is the zero point.
    line = f"const float scaled = {value};"
    whole = f"scaled == scaled ? (int32_t)lrintf(clampf(scaled, {low}, {high})){plus(function.zero)}"
    return Expression(
        "quantize",
        f"({c_type(result)})({whole} : {function.zero})",
        (line,),
        ("clampf",),
        ("math.h",),
    )


@emits(DynamicQuantize)
def render(operation: DynamicQuantize) -> Call:
    """Return the call."""
    [data] = operation.inputs
    result, scale = operation.results
    lines = Lines()
    lines.add("float low = 0.0f, high = 0.0f;", "")
    with lines.loop("i", data.size):
        lines.add("low = data[i] < low ? data[i] : low;", "high = data[i] > high ? data[i] : high;")
    lines.add(
        "",
        "const float step = low == high ? 1.0f : (high - low) / 255.0f;",
        "const int32_t zero = (int32_t)lrintf(clampf(-low / step, 0.0f, 255.0f));",
        "",
        "*scale = step;",
    )
    with lines.loop("i", data.size):
        lines.add(
            "const int32_t whole = (int32_t)lrintf(clampf(data[i] / step, -512.0f, 512.0f));",
            "",
            f"result[i] = {clamped('whole', '-zero', '255 - zero', 'int16')};",
        )
    parameters = (
        Parameter("data", "float32"),
        Parameter("result", "int16", "out"),
        Parameter("scale", "float32", "out"),
    )
    function = Function("quantize_dynamic", parameters, str(lines), ("clamp", "clampf"), ("math.h",))
    return Call(function, (data, result, scale), operation.label)

# SPDX-License-Identifier: Apache-2.0
"""Layers with a state, which their functions change in place."""

from __future__ import annotations

import contextlib

from opwest.importers.models.emit.expressions import plus, scale_twice
from opwest.importers.models.emit.finish import ending
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.plain_expressions import wrapped
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines, number
from opwest.importers.models.ir.recurrent import Filter, HybridFeature


@emits(Filter)
def svdf(operation: Filter) -> Call:
    """Return the call."""
    data, state = operation.inputs
    result = operation.results[0]
    (filters, memory), (batch, length) = operation.time.shape, data.shape
    units, rank, inner = filters // operation.rank, operation.rank, operation.inner
    hybrid = operation.hybrid
    end = ending(operation.finish, units, result=result.dtype)
    kind = "float" if inner is None else "int32_t"
    lines, helpers = Lines(), list(end.helpers)
    bias = [] if operation.bias is None else [operation.bias]
    lines.add(f"{c_type(state.dtype)} *s = state;", f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        stack.enter_context(lines.loop("n", batch))
        if hybrid is not None:
            _quantise(lines, hybrid, length)
        stack.enter_context(lines.loop("u", units))
        lines.add(f"{kind} sum = {'bias[u]' if bias else '0'};", "")
        with lines.block(f"for (int f = u * {rank}; f < (u + 1) * {rank}; f++, s += {memory})"):
            lines.add(f"{'int32_t' if hybrid is not None else kind} dot = 0;", "")
            with lines.loop("k", length):
                element = f"(data[n * {length} + k]{plus(-operation.zeros[0])})"
                if hybrid is not None:
                    element = "(quantised[k] - zero)" if hybrid.is_asymmetric else "quantised[k]"
                lines.add(f"dot += {element} * feature[f * {length} + k];")
            if memory > 1:
                lines.add(f"memmove(s, s + 1, {memory - 1} * sizeof(*s));")
            if inner is None:
                value = "dot" if hybrid is None else f"(float)dot * (scale * {number(hybrid.scale, 'float32')})"
                lines.add(f"s[{memory - 1}] = {value};")
            else:
                text, helper = scale_twice("dot", inner.multipliers[0])
                helpers += [helper, "clamp"]
                moved = f"clamp({text}, {inner.low}, {inner.high}){plus(operation.zeros[1])}"
                lines.add(f"s[{memory - 1}] = ({c_type(state.dtype)})({moved});")
            with lines.loop("k", memory):
                product = f"time[f * {memory} + k] * (s[k]{plus(-operation.zeros[1])})"
                # The sum of 16-bit products may exceed 32 bits. It wraps, as in the reference.
                total = wrapped("+", "int32").format("sum", f"({product})")
                lines.add(f"sum += {product};" if inner is None else f"sum = {total};")
        lines.add(f"*y++ = {end.result('sum')};")
    parameters = (
        Parameter("data", data.dtype),
        Parameter("state", state.dtype, "inout"),
        Parameter("feature", str(operation.feature.dtype)),
        Parameter("time", str(operation.time.dtype)),
        *(Parameter("bias", str(one.dtype)) for one in bias),
        Parameter("result", result.dtype, "out"),
        *([] if hybrid is None else [Parameter("quantised", "int8", "scratch", (), length)]),
    )
    if hybrid is not None:
        helpers += ["clamp", "quantise_row_with_zero" if hybrid.is_asymmetric else "quantise_row"]
    function = Function(
        "svdf",
        parameters,
        str(lines),
        tuple(sorted(set(helpers))),
        (*end.headers, *([] if hybrid is None else ["math.h"]), "string.h"),
    )
    return Call(function, (data, state, operation.feature, operation.time, *bias, result), operation.label)


def _quantise(lines: Lines, hybrid: HybridFeature, length: int) -> None:
    """Append the quantisation of the data of batch n."""
    row = f"data + n * {length}, quantised, {length}"
    if hybrid.is_asymmetric:
        lines.add("int32_t zero;", f"const float scale = quantise_row_with_zero({row}, &zero);", "")
    else:
        lines.add(f"const float scale = quantise_row({row});", "")

# SPDX-License-Identifier: Apache-2.0
"""Layers with a state, which their functions change in place."""

from __future__ import annotations

from opwest.importers.models.emit.expressions import plus, scale_twice
from opwest.importers.models.emit.finish import ending
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.recurrent import Filter


@emits(Filter)
def svdf(operation: Filter) -> Call:
    """Return the call."""
    data, state = operation.inputs
    result = operation.results[0]
    (filters, memory), (batch, length) = operation.time.shape, data.shape
    units, rank, inner = filters // operation.rank, operation.rank, operation.inner
    end = ending(operation.finish, units)
    kind = "float" if inner is None else "int32_t"
    lines, helpers = Lines(), list(end.helpers)
    bias = [] if operation.bias is None else [operation.bias]
    lines.add(f"{c_type(state.dtype)} *s = state;", f"{c_type(result.dtype)} *y = result;", "")
    with lines.loop("n", batch), lines.loop("u", units):
        lines.add(f"{kind} sum = {'bias[u]' if bias else '0'};", "")
        with lines.block(f"for (int f = u * {rank}; f < (u + 1) * {rank}; f++, s += {memory})"):
            lines.add(f"{kind} dot = 0;", "")
            with lines.loop("k", length):
                lines.add(f"dot += (data[n * {length} + k]{plus(-operation.zeros[0])}) * feature[f * {length} + k];")
            if memory > 1:
                lines.add(f"memmove(s, s + 1, {memory - 1} * sizeof(*s));")
            if inner is None:
                lines.add(f"s[{memory - 1}] = dot;")
            else:
                text, helper = scale_twice("dot", inner.multipliers[0])
                helpers += [helper, "clamp"]
                lines.add(f"s[{memory - 1}] = clamp({text}, {inner.low}, {inner.high}){plus(operation.zeros[1])};")
            with lines.loop("k", memory):
                lines.add(f"sum += time[f * {memory} + k] * (s[k]{plus(-operation.zeros[1])});")
        lines.add(f"*y++ = {end.result('sum')};")
    parameters = (
        Parameter("data", data.dtype),
        Parameter("state", state.dtype, "inout"),
        Parameter("feature", str(operation.feature.dtype)),
        Parameter("time", str(operation.time.dtype)),
        *(Parameter("bias", str(one.dtype)) for one in bias),
        Parameter("result", result.dtype, "out"),
    )
    function = Function("svdf", parameters, str(lines), tuple(sorted(set(helpers))), (*end.headers, "string.h"))
    return Call(function, (data, state, operation.feature, operation.time, *bias, result), operation.label)

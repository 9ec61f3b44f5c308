# SPDX-License-Identifier: Apache-2.0
"""Layers with a state, which their functions change in place."""

from __future__ import annotations

from opwest.importers.models.emit.expressions import plus, scale_twice
from opwest.importers.models.emit.finish import ending
from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines, number
from opwest.importers.models.ir.recurrent import Filter, Memory


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


@emits(Memory)
def lstm(operation: Memory) -> Call:
    """Return the call."""
    data, last, cell = operation.inputs
    result = operation.results[0]
    length, cells = data.shape[2], result.shape[2]
    steps, batch = data.shape[:2] if operation.is_time_major else data.shape[1::-1]
    width, lines = length + cells, Lines()
    row = f"t * {batch} + n" if operation.is_time_major else f"n * {steps} + t"
    with lines.loop("n", batch), lines.loop("t", steps):
        lines.add(f"const float *x = data + ({row}) * {length};", f"float *h = last + n * {cells};")
        lines.add(f"float *c = cell + n * {cells};", f"float *y = result + ({row}) * {cells};", "")
        with lines.loop("i", cells):
            lines.add("float gate[4];", "")
            with lines.loop("g", 4):
                lines.add(f"const float *w = weights + (g * {cells} + i) * {width};")
                lines.add(f"float sum = bias[g * {cells} + i];", "")
                with lines.loop("k", length):
                    lines.add("sum += x[k] * w[k];")
                with lines.loop("k", cells):
                    lines.add(f"sum += h[k] * w[{length} + k];")
                lines.add("gate[g] = g == 2 ? tanhf(sum) : 1.0f / (1.0f + expf(-sum));")
            lines.add("c[i] = c[i] * gate[1] + gate[0] * gate[2];")
            if operation.clip > 0:
                limit = number(operation.clip, "float32")
                lines.add(f"c[i] = clampf(c[i], -{limit}, {limit});")
            lines.add("y[i] = gate[3] * tanhf(c[i]);")
        lines.add(f"memcpy(h, y, {cells} * sizeof(float));")
    parameters = (
        Parameter("data", "float32"),
        Parameter("last", "float32", "inout"),
        Parameter("cell", "float32", "inout"),
        Parameter("weights", "float32"),
        Parameter("bias", "float32"),
        Parameter("result", "float32", "out"),
    )
    helpers = ("clampf",) if operation.clip > 0 else ()
    function = Function("lstm", parameters, str(lines), helpers, ("math.h", "string.h"))
    return Call(function, (data, last, cell, operation.weights, operation.bias, result), operation.label)

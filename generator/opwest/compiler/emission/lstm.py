# SPDX-License-Identifier: Apache-2.0
"""LSTMs with float32 data, whose states their functions change in place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.epilogue import ending
from opwest.compiler.emission.expressions import plus, scale_twice, wrapped
from opwest.compiler.emission.function import Call, Lines, Parameter, c_type, call_of, emits, number
from opwest.compiler.ir.operations import Filter, FloatMemory, HybridWeights, Memory


@emits(Filter)
def svdf(operation: Filter) -> Call:
    """Return the call."""
    data, state = operation.inputs
    result = operation.results[0]
    (filters, memory), (batch, length) = operation.time.shape, data.shape
    units, rank, inner = filters // operation.rank, operation.rank, operation.inner
    hybrid = operation.hybrid
    end = ending(operation.finish, result=result.dtype)
    kind = "float" if inner is None else "int32_t"
    lines, helpers = Lines(), list(end.helpers)
    lines.add(f"{c_type(state.dtype)} *s = state;", f"{c_type(result.dtype)} *y = result;", "")
    with contextlib.ExitStack() as stack:
        stack.enter_context(lines.loop("n", batch))
        if hybrid is not None:
            _quantise(lines, hybrid.is_asymmetric, "", f"data + n * {length}, quantised, {length}")
            lines.add("")
        stack.enter_context(lines.loop("u", units))
        lines.add(f"{kind} sum = {'0' if operation.bias is None else 'bias[u]'};", "")
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
    if hybrid is not None:
        helpers += ["clamp", "quantise_row_with_zero" if hybrid.is_asymmetric else "quantise_row"]
    return call_of(
        operation,
        "svdf",
        lines,
        ("data", "state"),
        [(name, getattr(operation, name)) for name in ("feature", "time", "bias")],
        states=("state",),
        scratch=[] if hybrid is None else [Parameter("quantised", "int8", "scratch", (), length)],
        helpers=sorted(set(helpers)),
        headers=(*end.headers, *([] if hybrid is None else ["math.h"]), "string.h"),
    )


@dataclass(frozen=True)
class Sizes:
    """The sizes of a layer, and the indices of its gates."""

    batch: int
    steps: int
    length: int
    cells: int
    units: int
    gates: int
    is_time_major: bool

    @property
    def forget(self) -> int:
        """The index of the forget gate; the input gate, if it exists, is before it."""
        return self.gates - 3

    @property
    def cell(self) -> int:
        """The index of the gate of new cells; the output gate is after it."""
        return self.gates - 2

    def row(self, length: int) -> str:
        """Return the place of a step's data or results."""
        batch, steps = self.batch, self.steps
        return f"(t * {batch} + n) * {length}" if self.is_time_major else f"(n * {steps} + t) * {length}"

    def step(self, length: int) -> str:
        """Return `row` without the number of the sequence if there is only one."""
        return self.row(length) if self.batch > 1 else f"t * {length}"


def sizes_of(operation: Memory) -> Sizes:
    """Return the sizes of a layer."""
    data, (gates, cells, _) = operation.inputs[0].shape, operation.weights.shape
    steps, batch = data[:2] if operation.is_time_major else data[1::-1]
    units = operation.results[0].shape[2]
    return Sizes(batch, steps, data[2], cells, units, gates, operation.is_time_major)


def call_of_lstm(
    operation: Memory,
    lines: Lines,
    dtypes: tuple[str, str],
    constants: Iterable[tuple[str, Any]],
    scratch: Iterable[Parameter],
    helpers: Iterable[str],
    headers: Iterable[str],
    definitions: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Call:
    """Return the call of a layer. `dtypes`: of gates and hidden results in scratch memory; `without`: absent arrays."""
    size, [gate_dtype, hidden_dtype] = sizes_of(operation), dtypes
    names = ("weights", "bias", "peepholes", "norms", "projection", "projection_bias")
    arrays = [name for name in names if name not in without]
    own = []
    if operation.norms is not None:
        own.append(Parameter("gates", gate_dtype, "scratch", (), size.gates * size.cells))
    if operation.projection is not None:
        own.append(Parameter("hidden", hidden_dtype, "scratch", (), size.cells))
    return call_of(
        operation,
        "lstm",
        lines,
        ("data", "last", "cell"),
        [*((name, getattr(operation, name)) for name in arrays), *constants],
        states=("last", "cell"),
        scratch=[*own, *scratch],
        helpers=sorted(helpers),
        headers=headers,
        definitions=definitions,
    )


_ACTIVATIONS = {
    "TANH": "tanhf({})",
    "RELU": "fmaxf({}, 0.0f)",
    "RELU6": "clampf({}, 0.0f, 6.0f)",
    "RELU_N1_TO_1": "clampf({}, -1.0f, 1.0f)",
}


@dataclass(frozen=True, eq=False)
class Dots:
    """The products of quantised rows with the int8 weights of a hybrid layer, by a function of a kernel."""

    lines: tuple[str, ...]
    """Statements from `quantised` to `dots`: for each cell the sums of DOTS / 2 gates with the data, then with the last
    results. Coupled gates have no first one."""
    constants: tuple[tuple[str, Any], ...]
    scratch: tuple[Parameter, ...]
    definitions: tuple[str, ...]
    offset: int
    """The place of the last results in `quantised`."""
    elements: int
    """The size of `quantised`."""


DOTS = 8


@emits(FloatMemory)
def lstm(operation: FloatMemory, dots: Dots | None = None) -> Call:
    """Return the call; with `dots` the products are those of a kernel."""
    size, constants, scratch = sizes_of(operation), [], []
    helpers = {"sigmoidf"}
    if operation.norms is not None:
        helpers.add("normalisef")
    hybrid = operation.hybrid
    offset = size.length if dots is None else dots.offset
    if hybrid is not None:
        longest = size.length + size.units if dots is None else dots.elements
        longest = max(longest, 0 if operation.projection is None else size.cells)
        constants.append(("scales", hybrid.scales))
        scratch.append(Parameter("quantised", "int8", "scratch", (), longest))
        helpers |= {"clamp", "quantise_row_with_zero" if hybrid.is_asymmetric else "quantise_row"}
    if dots is not None:
        constants += dots.constants
        scratch += dots.scratch
        if hybrid is not None and hybrid.is_asymmetric:
            constants.append(("totals", totals_of(operation)))
    lines = Lines()
    with lines.loop("n", size.batch), lines.loop("t", size.steps):
        lines.add(f"const float *x = data + {size.row(size.length)};", f"float *h = last + n * {size.units};")
        lines.add(f"float *c = cell + n * {size.cells};", f"float *y = result + {size.row(size.units)};", "")
        if hybrid is not None:
            _quantise(lines, hybrid.is_asymmetric, "x_", f"x, quantised, {size.length}")
            _quantise(lines, hybrid.is_asymmetric, "h_", f"h, quantised + {offset}, {size.units}")
            lines.add("")
        if dots is not None:
            lines.add(*dots.lines, "")
        _cells(lines, operation, size, has_dots=dots is not None)
        if operation.projection is not None:
            _project(lines, operation, size)
        lines.add(f"memcpy(h, y, {size.units} * sizeof(float));")
    if "clampf(" in str(lines):
        helpers.add("clampf")
    definitions, without = ((), ()) if dots is None else (dots.definitions, ("weights",))
    return call_of_lstm(
        operation,
        lines,
        ("float32", "float32"),
        constants,
        scratch,
        helpers,
        ("math.h", "string.h"),
        definitions=definitions,
        without=without,
    )


def totals_of(operation: FloatMemory) -> Any:
    """Return the sums of the weights that zero points are multiplied with, int32 [cells,DOTS]."""
    size = sizes_of(operation)
    missing = DOTS // 2 - size.gates
    parts = operation.weights[:, :, : size.length], operation.weights[:, :, size.length :]
    totals = [np.pad(part.sum(axis=2, dtype=np.int32).T, ((0, 0), (missing, 0))) for part in parts]
    return np.concatenate(totals, axis=1)


def _quantise(lines: Lines, is_asymmetric: bool, prefix: str, row: str) -> None:
    """Append the quantisation of a row: its pointer, the target and the length; `prefix` of the scale and the zero."""
    if is_asymmetric:
        lines.add(
            f"int32_t {prefix}zero;", f"const float {prefix}scale = quantise_row_with_zero({row}, &{prefix}zero);"
        )
    else:
        lines.add(f"const float {prefix}scale = quantise_row({row});")


def _cells(lines: Lines, operation: FloatMemory, size: Sizes, has_dots: bool) -> None:
    """Append the computation of the cells and of their products with the output gate."""
    cells = size.cells
    if operation.norms is None:
        with lines.loop("i", cells):
            _sums(lines, operation, size, has_dots)
            _peep(lines, operation, size, "s{g}", range(size.cell))
            _cell(lines, operation, size, "s{g}")
            _peep(lines, operation, size, "s{g}", [size.gates - 1])
            _result(lines, operation, f"s{size.gates - 1}")
        return
    at = f"gates[{{g}} * {cells} + i]"
    with lines.loop("i", cells):
        _sums(lines, operation, size, has_dots)
        _peep(lines, operation, size, "s{g}", range(size.cell))
        lines.add(*(f"{at.format(g=g)} = s{g};" for g in range(size.gates)))
    place = f"{{0}} + g * {cells}"
    with lines.loop("g", size.gates - 1):
        lines.add(f"normalisef({', '.join(place.format(name) for name in ('gates', 'norms', 'bias'))}, {cells});")
    with lines.loop("i", cells):
        _cell(lines, operation, size, at)
        _peep(lines, operation, size, at, [size.gates - 1])
    first = (size.gates - 1) * cells
    lines.add(f"normalisef(gates + {first}, norms + {first}, bias + {first}, {cells});")
    with lines.loop("i", cells):
        _result(lines, operation, at.format(g=size.gates - 1))


def products(lines: Lines, size: Sizes, sums: str, row: tuple[str, int, int], kind: str) -> None:
    """Append the products of a row, (element, length, first weight), with the weights of all gates of cell i."""
    name, length, first = row
    stride = size.cells * (size.length + size.units)
    with lines.loop("k", length):
        lines.add(f"const {kind} v = {name};", "")
        for g in range(size.gates):
            place = g * stride + first
            lines.add(f"{sums}{g} += v * w[{f'{place} + ' if place else ''}k];")
    lines.add("")


def _sums(lines: Lines, operation: FloatMemory, size: Sizes, has_dots: bool) -> None:
    """Append the sums s0, s1, ... of the gates of cell i; their products are in `dots`, or computed."""
    cells, gates, hybrid = size.cells, range(size.gates), operation.hybrid
    starts = ["0.0f" if operation.norms is not None else f"bias[{g * cells} + i]" for g in gates]
    kind = "float" if hybrid is None else "int8_t"
    if not has_dots:
        lines.add(f"const {kind} *w = weights + i * {size.length + size.units};")
    lines.add(f"float {', '.join(f's{g} = {start}' for g, start in enumerate(starts))};")
    if hybrid is None:
        lines.add("")
        products(lines, size, "s", ("x[k]", size.length, 0), "float")
        products(lines, size, "s", ("h[k]", size.units, size.length), "float")
        return
    if has_dots:
        _add_dots(lines, hybrid, size)
        return
    for row in ("x", "h"):
        lines.add(f"int32_t {', '.join(f'{row}{g} = 0' for g in gates)};")
    lines.add("")
    zeros = [f" - {row}_zero" if hybrid.is_asymmetric else "" for row in ("x", "h")]
    products(lines, size, "x", (f"quantised[k]{zeros[0]}", size.length, 0), "int32_t")
    products(lines, size, "h", (f"quantised[{size.length} + k]{zeros[1]}", size.units, size.length), "int32_t")
    for g in gates:
        lines.add(f"s{g} += (float)x{g} * (scales[{2 * g}] * x_scale);")
        lines.add(f"s{g} += (float)h{g} * (scales[{2 * g + 1}] * h_scale);")


def _add_dots(lines: Lines, hybrid: HybridWeights, size: Sizes) -> None:
    """Append the products of cell i to s0, s1, ...; each is rounded as without a kernel."""
    lines.add("")
    for g in range(size.gates):
        for place, row in enumerate(("x", "h")):
            index = f"i * {DOTS} + {place * DOTS // 2 + DOTS // 2 - size.gates + g}"
            dot = f"dots[{index}]" + (f" - {row}_zero * totals[{index}]" if hybrid.is_asymmetric else "")
            lines.add(f"s{g} += (float)({dot}) * (scales[{2 * g + place}] * {row}_scale);")


def _peep(lines: Lines, operation: FloatMemory, size: Sizes, at: str, gates: Iterable[int]) -> None:
    """Append the products of cells with the weights of some gates, if the layer has peepholes."""
    for g in gates if operation.peepholes is not None else ():
        place = g if g < size.cell else g - 1
        lines.add(f"{at.format(g=g)} += peepholes[{place} * {size.cells} + i] * c[i];")


def _cell(lines: Lines, operation: FloatMemory, size: Sizes, at: str) -> None:
    """Append the new value of a cell."""
    activation = _ACTIVATIONS[operation.activation].format(at.format(g=size.cell))
    lines.add(f"const float forget = sigmoidf({at.format(g=size.forget)});")
    enter = "(1.0f - forget)" if size.gates == 3 else f"sigmoidf({at.format(g=0)})"
    lines.add("", f"c[i] = c[i] * forget + {enter} * {activation};")
    if operation.clip > 0:
        limit = number(operation.clip, "float32")
        lines.add(f"c[i] = clampf(c[i], -{limit}, {limit});")


def _result(lines: Lines, operation: FloatMemory, gate: str) -> None:
    target = "y" if operation.projection is None else "hidden"
    lines.add(f"{target}[i] = sigmoidf({gate}) * {_ACTIVATIONS[operation.activation].format('c[i]')};")


def _project(lines: Lines, operation: FloatMemory, size: Sizes) -> None:
    """Append the projection of a step."""
    hybrid, cells = operation.hybrid, size.cells
    if hybrid is not None:
        _quantise(lines, hybrid.is_asymmetric, "hidden_", f"hidden, quantised, {cells}")
        lines.add("")
    with lines.loop("o", size.units):
        start = "0.0f" if operation.projection_bias is None else "projection_bias[o]"
        lines.add(f"float sum = {start};", "")
        if hybrid is None:
            with lines.loop("k", cells):
                lines.add(f"sum += hidden[k] * projection[o * {cells} + k];")
        else:
            element = "(quantised[k] - hidden_zero)" if hybrid.is_asymmetric else "quantised[k]"
            lines.add("int32_t dot = 0;", "")
            with lines.loop("k", cells):
                lines.add(f"dot += {element} * projection[o * {cells} + k];")
            lines.add(f"sum += (float)dot * ({number(hybrid.projection, 'float32')} * hidden_scale);")
        limit = number(operation.projection_clip, "float32")
        lines.add(f"y[o] = clampf(sum, -{limit}, {limit});" if operation.projection_clip > 0 else "y[o] = sum;")

# SPDX-License-Identifier: Apache-2.0
"""Bilinear interpolation: rows and columns of the data and their weights are constants."""

from __future__ import annotations

import numpy as np

from opwest.importers.models.emit.function import Call, Function, Parameter, c_type
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.movement import Interpolate

_UINT8 = {
    # Products and sums of two float32 numbers are exact in float64 or rounded once: compilers cannot contract them
    # across the conversions, so the results are those of float32 arithmetic everywhere.
    "product": "(float)((double){} * {})",
    "sum": "(float)((double){} + {})",
}


@emits(Interpolate)
def render(operation: Interpolate) -> Call:
    """Return the call."""
    data, result = operation.inputs[0], operation.results[0]
    n, height, width, depth = data.shape
    rows, columns = result.shape[1:3]
    is_fixed = data.dtype in ("int8", "int16")
    kind = "int32" if is_fixed else "float32"
    arrays = []
    for name, line, step in (("row", operation.rows, width * depth), ("column", operation.columns, depth)):
        offsets = np.stack([np.asarray(line.first) * step, np.asarray(line.second) * step], axis=1).astype(np.int32)
        weights = np.stack([np.asarray(line.rests), np.asarray(line.weights)], axis=1).astype(kind)
        arrays += [(f"{name}s", offsets), (f"{name}_weights", weights)]
    lines = Lines()
    element, weight = c_type(data.dtype), c_type(kind)
    lines.add(f"{c_type(result.dtype)} *y = result;", "")
    with lines.loop("n", n), lines.loop("r", rows):
        image = f"data + n * {height * width * depth}"
        lines.add(
            f"const {element} *top = {image} + rows[2 * r];",
            f"const {element} *bottom = {image} + rows[2 * r + 1];",
            f"const {weight} ry = row_weights[2 * r], wy = row_weights[2 * r + 1];",
            "",
        )
        with lines.loop("k", columns):
            lines.add(
                "const int32_t left = columns[2 * k], right = columns[2 * k + 1];",
                f"const {weight} rx = column_weights[2 * k], wx = column_weights[2 * k + 1];",
                "",
            )
            with lines.loop("c", depth):
                _element(lines, data.dtype)
    parameters = (
        Parameter("data", data.dtype),
        *(Parameter(name, str(array.dtype)) for name, array in arrays),
        Parameter("result", result.dtype, "out"),
    )
    function = Function("interpolate", parameters, str(lines))
    return Call(function, (data, *(array for _, array in arrays), result), operation.label)


_CORNERS = (("top[left + c]", "ry", "rx"), ("bottom[left + c]", "wy", "rx"), ("top[right + c]", "ry", "wx"))
_LAST = ("bottom[right + c]", "wy", "wx")


def _element(lines: Lines, dtype: str) -> None:
    """Append one element. The order of the sums is that of the reference kernel."""
    corners = (*_CORNERS, _LAST)
    if dtype in ("int8", "int16"):
        terms = [f"(int64_t)({x} * {a}) * {b}" for x, a, b in corners]
        lines.add(f"const int64_t sum = {terms[0]} + {terms[1]} +", f"\t{terms[2]} + {terms[3]};", "")
        lines.add(f"*y++ = ({c_type(dtype)})((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));")
        return
    if dtype == "float32":
        terms = [f"{x} * {a} * {b}" for x, a, b in corners]
        lines.add(f"*y++ = {terms[0]} + {terms[1]} +", f"\t{terms[2]} + {terms[3]};")
        return
    for name, (x, a, b) in zip("pqst", corners, strict=True):
        lines.add(f"const float {name} = {_UINT8['product'].format(_UINT8['product'].format(x, a), b)};")
    total = "p"
    for name in "qst":
        total = _UINT8["sum"].format(total, name)
    lines.add(f"*y++ = (uint8_t){_UINT8['sum'].format(total, '0.5f')};")

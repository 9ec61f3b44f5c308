# SPDX-License-Identifier: Apache-2.0
"""Matrix products of a single row with few channels: vectors of products of a channel, which are added at the end."""

from __future__ import annotations

from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.lanes.ends import end_of
from opwest.compiler.kernels.rvv.assembly import BASE, function
from opwest.compiler.kernels.scaling import int8_sums
from opwest.compiler.semantics.fixed_point import Requantisation

PRODUCTS = function(
    "rvv_products",
    ("const int8_t *x", "const int8_t *one", "const int8_t *other", "int32_t *sums", "int32_t count"),
    (
        "vsetvli t0, zero, e32, m8, ta, mu",
        "vmv.v.i v8, 0",
        "vmv.v.i v16, 0",
        "1: vsetvli t0, a4, e16, m4, tu, ma",
        "vle8.v v2, (a0)",
        "vle8.v v24, (a1)",
        "vle8.v v26, (a2)",
        "vsext.vf2 v4, v2",
        "add a0, a0, t0",
        "vsext.vf2 v28, v24",
        "add a1, a1, t0",
        "vwmacc.vv v8, v4, v28",
        "vsext.vf2 v28, v26",
        "add a2, a2, t0",
        "sub a4, a4, t0",
        "vwmacc.vv v16, v4, v28",
        "bnez a4, 1b",
        "vsetvli t0, zero, e32, m8, ta, mu",
        "vmv.s.x v0, zero",
        "vredsum.vs v4, v8, v0",
        "vredsum.vs v5, v16, v0",
        "vmv.x.s t1, v4",
        "vmv.x.s t2, v5",
        "sw t1, 0(a3)",
        "sw t2, 4(a3)",
    ),
    "The sums of the products of a row with two channels.",
)


@emits(Convolution, "rvv-products")
def render(operation: Convolution, shared: bool = False) -> Call | None:
    """Return the call; None for several rows, other dtypes, and groups."""
    data, result = operation.inputs[0], operation.results[0]
    given = int8_sums(operation)
    if given is None or result.dtype != "int8" or not isinstance(operation.finish, Requantisation):
        return None
    weights, bias, bounds = given
    results, length = weights.shape
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    is_single = data.size == length and result.size == results
    if not is_single or operation.window.is_padded((shape[1], shape[2])):
        return None
    end = end_of(operation.finish, weights, bias, bounds, operation.zero, shared)
    lines = Lines()
    lines.add(*(line for line in end.prologue if " fill " not in line), "int32_t sums[2];", "")
    with lines.loop("c", results // 2 * 2, 2):
        lines.add(f"const int8_t *w = weights + c * {length};", "")
        lines.add(f"rvv_products(data, w, w + {length}, sums, {length});")
        with lines.loop("k", 2):
            lines.add(*end.loads("c + k"), f"result[c + k] = {end.result('bias[c + k] + sums[k]')};")
    if results % 2:
        lines.add(f"const int8_t *last = weights + {(results - 1) * length};", "")
        lines.add(f"rvv_products(data, last, last, sums, {length});")
        place = str(results - 1)
        lines.add(*end.loads(place), f"result[{place}] = {end.result(f'bias[{place}] + sums[0]')};")
    arguments = {"data": data, "weights": weights, "bias": bias, **end.constants}
    return call_for(
        operation, "dense", lines, arguments, helpers=end.helpers, headers=end.headers, definitions=(*BASE, PRODUCTS)
    )

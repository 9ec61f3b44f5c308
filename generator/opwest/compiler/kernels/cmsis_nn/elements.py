# SPDX-License-Identifier: Apache-2.0
"""int8 sums and products of tensors with equal shapes as calls of CMSIS-NN."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.compiler.emission.function import Call, Function, Lines, Parameter
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Elementwise, Pool
from opwest.compiler.kernels.cmsis_nn import sizes
from opwest.compiler.kernels.cmsis_nn.layers import LEAST_SHIFT
from opwest.compiler.kernels.cmsis_nn.sizes import HEADERS, ROUNDING, Buffer, cmsis_nn
from opwest.compiler.semantics.fixed_point import Multiplier

MOST_LEFT = 14
"""The greatest shift to the left of a product of two 9-bit numbers."""


@cmsis_nn(Elementwise)
def elementwise(operation: Elementwise, extensions: Sequence[str]) -> Call | None:
    """Return the call of arm_elementwise_add_s8 or arm_elementwise_mul_s8; None for other functions and shapes."""
    del extensions  # no scratch memory
    result, function = operation.results[0], operation.function
    if len(operation.inputs) != 2 or {one.dtype for one in (*operation.inputs, result)} != {"int8"}:
        return None
    if any(one.shape != result.shape for one in operation.inputs):
        return None
    if isinstance(function, AddQuantised) and not function.subtract:
        numbers = function.numbers
        multipliers = (*numbers.multipliers, numbers.result)
        if any(not LEAST_SHIFT <= one.shift <= 0 for one in multipliers):
            return None
        one, other = (f"{-z}, {_scale(m)}" for z, m in zip(numbers.zeros, numbers.multipliers, strict=True))
        called, places = f"arm_elementwise_add_s8(a, b, {one}, {other}, {numbers.left_shift},", numbers.result
    elif isinstance(function, Product):
        product = function.numbers
        if not LEAST_SHIFT <= product.multiplier.shift <= MOST_LEFT:
            return None
        called, places = f"arm_elementwise_mul_s8(a, b, {-product.zeros[0]}, {-product.zeros[1]},", product.multiplier
    else:
        return None
    limits = function.numbers
    lines = Lines()
    lines.add(
        f"const arm_cmsis_nn_status status = {called}",
        f"\tresult, {limits.zero}, {_scale(places)}, {limits.low}, {limits.high}, {result.size});",
        "",
        "return status == ARM_CMSIS_NN_SUCCESS ? 0 : -EINVAL;",
    )
    name = "cmsis_nn_add" if isinstance(function, AddQuantised) else "cmsis_nn_mul"
    parameters = (Parameter("a", "int8"), Parameter("b", "int8"), Parameter("result", "int8", "out", ("a", "b")))
    made = Function(
        name, parameters, str(lines), (ROUNDING,), HEADERS, has_status=True, external=(called.partition("(")[0],)
    )
    return Call(made, (*operation.inputs, result), operation.label)


def _scale(multiplier: Multiplier) -> str:
    return f"{multiplier.fixed}, {multiplier.shift}"


_FUNCTIONS = {"average": "arm_avgpool_s8", "maximum": "arm_max_pool_s8"}


@cmsis_nn(Pool)
def pool(operation: Pool, extensions: Sequence[str]) -> Call | None:
    """Return the call of arm_avgpool_s8 or arm_max_pool_s8; None for other dtypes and kinds."""
    data, result, window = operation.inputs[0], operation.results[0], operation.window
    if data.dtype != "int8" or operation.kind not in _FUNCTIONS or window.dilation != (1, 1):
        return None
    (n, height, width, depth), called = data.shape, _FUNCTIONS[operation.kind]
    is_average = operation.kind == "average"
    size = max(sizes.average_pool(depth, one) for one in extensions) if is_average else 0
    buffer = Buffer(size, f"arm_avgpool_s8_get_buffer_size({window.result[1]}, {depth})")
    lines = Lines()
    lines.add(
        f"const cmsis_nn_pool_params layer = {{{{{window.stride[1]}, {window.stride[0]}}}, "
        f"{{{window.before[1]}, {window.before[0]}}}, {{{operation.low}, {operation.high}}}}};",
        f"const cmsis_nn_dims in = {{{n}, {height}, {width}, {depth}}};",
        f"const cmsis_nn_dims filter = {{1, {window.size[0]}, {window.size[1]}, 1}};",
        f"const cmsis_nn_dims out = {{{n}, {window.result[0]}, {window.result[1]}, {depth}}};",
        buffer.context,
        "const arm_cmsis_nn_status status =",
        f"\t{called}(&context, &layer, &in, data, &filter, &out, result);",
        "",
        "return status == ARM_CMSIS_NN_SUCCESS ? 0 : -EINVAL;",
    )
    parameters = (Parameter("data", "int8"), Parameter("result", "int8", "out"), *buffer.parameters)
    check = buffer.check([]).lstrip("\n") if is_average else ""
    external = (called, f"{called}_get_buffer_size") if is_average else (called,)
    name = f"cmsis_nn_{operation.kind}_pool"
    function = Function(name, parameters, str(lines), (), HEADERS, has_status=True, check=check, external=external)
    return Call(function, (data, result), operation.label)

# SPDX-License-Identifier: Apache-2.0
"""int8 pools as calls of CMSIS-NN."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.emit.cmsis_nn import sizes
from opwest.importers.models.emit.cmsis_nn.extensions import HEADERS, Buffer, cmsis_nn
from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Pool

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

# SPDX-License-Identifier: Apache-2.0
"""Convolutions, depthwise convolutions and fully connected layers as calls of CMSIS-NN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.compiler.emission.convolution import folded
from opwest.compiler.emission.function import Call, Lines, call_for, is_int8_pair
from opwest.compiler.emission.matrix import bound_of
from opwest.compiler.graph.types import Shape
from opwest.compiler.ir.elements import AddQuantised, Product
from opwest.compiler.ir.operations import Convolution, Depthwise, Elementwise, Pool
from opwest.compiler.kernels.cmsis_nn import sizes
from opwest.compiler.kernels.cmsis_nn.sizes import HEADERS, ROUNDING, Buffer, cmsis_nn
from opwest.compiler.semantics.fixed_point import Multiplier, Requantisation, Rounding

MIN_SHIFT = -30
"""CMSIS-NN's shift to the right by 31 overflows."""
_SUFFIX = {"int8": "s8", "int16": "s16"}


def is_exact(finish: Any, dtype: str, weights: Any, bias: Any) -> bool:
    """Whether CMSIS-NN ends a layer with the same roundings, without an overflow: weights [o, ...], folded bias."""
    rounding = {"int8": Rounding.TWICE, "int16": Rounding.SIXTEEN}.get(dtype)
    if not isinstance(finish, Requantisation) or finish.rounding is not rounding:
        return False
    shifts = np.asarray([m.shift for m in finish.multipliers], np.int64)
    if shifts.min() < MIN_SHIFT or (dtype == "int16" and shifts.max() > 0):
        return False
    if shifts.max() <= 0:
        return True
    return bool(np.all(bound_of(weights, bias, dtype) << np.maximum(shifts, 0) < 2**31))


@cmsis_nn(Convolution)
def convolution(operation: Convolution, extensions: Sequence[str]) -> Call | None:
    """Return the call of arm_fully_connected_s8, arm_convolve_wrapper_s8 or _s16; None if the result could differ."""
    data, weights, finish = operation.inputs[0], operation.weights, operation.finish
    if operation.groups != 1 or operation.weight_zero or str(weights.dtype) != "int8" or data.dtype not in _SUFFIX:
        return None
    if not is_exact(finish, data.dtype, weights, folded(weights, operation.bias, operation.zero, data.dtype)):
        return None
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    # arm_convolve_1x1_s8 reads behind the data for windows that are completely in the padding after it.
    if not operation.window.has_data((shape[1], shape[2])):
        return None
    assert isinstance(finish, Requantisation)
    if data.dtype == "int8" and shape[1:3] == weights.shape[1:3] == (1, 1) and len(finish.multipliers) == 1:
        return _dense(operation, finish, shape, extensions)
    results, rows, columns, _ = weights.shape
    return _layer(
        operation,
        finish,
        shape,
        (results, rows, columns, shape[3]),
        "arm_convolve_wrapper",
        "cmsis_nn_conv_params",
        "",
        max(sizes.convolution(data.dtype, shape, operation.window, extension) for extension in extensions),
    )


@cmsis_nn(Depthwise)
def depthwise(operation: Depthwise, extensions: Sequence[str]) -> Call | None:
    """Return the call of arm_depthwise_conv_wrapper_s8 or _s16; None if the result could differ."""
    data, weights, finish = operation.inputs[0], operation.weights, operation.finish
    if operation.weight_zero or str(weights.dtype) != "int8" or data.dtype not in _SUFFIX or len(data.shape) != 4:
        return None
    rows, columns, results = weights.shape
    by_channel = weights.reshape(rows * columns, results).T
    if not is_exact(finish, data.dtype, by_channel, folded(by_channel, operation.bias, operation.zero, data.dtype)):
        return None
    if not operation.window.has_data((data.shape[1], data.shape[2])):
        return None  # its functions with DSP and MVE instructions were not compared for such windows
    assert isinstance(finish, Requantisation)
    return _layer(
        operation,
        finish,
        data.shape,
        (1, rows, columns, results),
        "arm_depthwise_conv_wrapper",
        "cmsis_nn_dw_conv_params",
        f"{results // data.shape[3]}, ",
        max(sizes.depthwise(data.dtype, data.shape, results, operation.window, extension) for extension in extensions),
        ("arm_transpose_s8",) if "mve" in extensions and data.dtype == "int8" else (),
    )


def _layer(
    operation: Convolution | Depthwise,
    finish: Requantisation,
    data: Shape,
    filters: Shape,
    called: str,
    kind: str,
    multiplier: str,
    size: int,
    more: tuple[str, ...] = (),
) -> Call:
    """Return the call of a convolution, which calls `more` functions."""
    dtype, result = operation.inputs[0].dtype, operation.results[0]
    window, suffix = operation.window, _SUFFIX[dtype]
    results = result.shape[-1]
    declared = [
        f"const {kind} layer = {{{-operation.zero}, {finish.zero}, {multiplier}{_tile(window.stride)}, "
        f"{_tile(window.before)}, {_tile(window.dilation)}, {{{finish.low}, {finish.high}}}}};",
        f"const cmsis_nn_dims in = {_dims(data)};",
        f"const cmsis_nn_dims filter = {_dims(filters)};",
        f"const cmsis_nn_dims out = {_dims((data[0], *window.result, results))};",
    ]
    buffer = Buffer(size, f"{called}_{suffix}_get_buffer_size(&layer, &in, &filter, &out)")
    lines = Lines()
    lines.add(*declared, f"const cmsis_nn_dims channels = {{1, 1, 1, {results}}};", buffer.context)
    # CMSIS-NN does not write to the arrays.
    lines.add("const cmsis_nn_per_channel_quant_params scales = {(int32_t *)multiplier, (int32_t *)shift};")
    bias = "bias" if operation.bias is not None else "NULL"
    if dtype == "int16" and kind == "cmsis_nn_conv_params":
        # CMSIS-NN reads this structure also without a bias.
        lines.add(f"const cmsis_nn_bias_data sums = {{{bias}, false}};")
        bias = "&sums"
    arguments = f"&context, &layer, &scales, &in, data, &filter, weights, &channels, {bias}, &out, result"
    _return(lines, f"{called}_{suffix}", arguments)
    given = finish.each(results)
    arrays = {
        "weights": operation.weights,
        **_bias(operation.bias, dtype),
        "multiplier": np.asarray([multiplier.fixed for multiplier in given], np.int32),
        "shift": np.asarray([multiplier.shift for multiplier in given], np.int32),
    }
    base = "depthwise" if isinstance(operation, Depthwise) else "convolution"
    external = (f"{called}_{suffix}", f"{called}_{suffix}_get_buffer_size", *more)
    return _call(operation, f"cmsis_nn_{base}", arrays, lines, buffer, declared, external)


def _dense(operation: Convolution, finish: Requantisation, data: Shape, extensions: Sequence[str]) -> Call:
    """Return the call of arm_fully_connected_s8: with MVE it reads the sums of the weights, which include the bias."""
    results, length = operation.weights.shape[0], data[3]
    has_sums = "mve" in extensions
    declared = [f"const cmsis_nn_dims filter = {{{length}, 1, 1, {results}}};"]
    size = 4 * results if has_sums else 0
    buffer = Buffer(0, "arm_fully_connected_s8_get_buffer_size(&filter)")
    lines = Lines()
    lines.add(
        f"const cmsis_nn_fc_params layer = {{{-operation.zero}, 0, {finish.zero}, {{{finish.low}, {finish.high}}}}};",
        f"const cmsis_nn_per_tensor_quant_params scale = "
        f"{{{finish.multipliers[0].fixed}, {finish.multipliers[0].shift}}};",
        f"const cmsis_nn_dims in = {{{data[0]}, 1, 1, {length}}};",
        *declared,
        f"const cmsis_nn_dims channels = {{1, 1, 1, {results}}};",
        f"const cmsis_nn_dims out = {{{data[0]}, 1, 1, {results}}};",
        # CMSIS-NN does not write to the sums.
        f"const cmsis_nn_context context = {{{'(int32_t *)sums' if has_sums else 'NULL'}, {size}}};",
    )
    bias = "bias" if operation.bias is not None else "NULL"
    arguments = f"&context, &layer, &scale, &in, data, &filter, weights, &channels, {bias}, &out, result"
    _return(lines, "arm_fully_connected_s8", arguments)
    arrays = {"weights": operation.weights.reshape(results, length), **_bias(operation.bias, "int8")}
    if has_sums:
        arrays["sums"] = folded(operation.weights, operation.bias, operation.zero, "int8")
    check = Buffer(size, buffer.required).check(declared)
    external = ("arm_fully_connected_s8", "arm_fully_connected_s8_get_buffer_size")
    return _call(operation, "cmsis_nn_dense", arrays, lines, buffer, declared, external, check)


def _bias(bias: Any, dtype: str) -> dict[str, Any]:
    return {} if bias is None else {"bias": bias.astype("int64" if dtype == "int16" else "int32")}


def _return(lines: Lines, called: str, arguments: str) -> None:
    """Append the call; its errors become -EINVAL."""
    lines.add("")
    head, words = f"const arm_cmsis_nn_status status = {called}(", arguments.split(", ")
    line = head
    for number, word in enumerate(words):
        text = word + (");" if number == len(words) - 1 else ",")
        if len(line) + 1 + len(text) > 90:
            lines.add(line)
            line = "\t" + text
        else:
            line += text if line in (head, "\t") else f" {text}"
    lines.add(line, "", "return status == ARM_CMSIS_NN_SUCCESS ? 0 : -EINVAL;")


def _call(
    operation: Convolution | Depthwise,
    base: str,
    arrays: dict[str, Any],
    lines: Lines,
    buffer: Buffer,
    declared: list[str],
    external: tuple[str, ...],
    check: str | None = None,
) -> Call:
    return call_for(
        operation,
        base,
        lines,
        {"data": operation.inputs[0], **arrays},
        scratch=buffer.parameters,
        helpers=(ROUNDING,),
        headers=HEADERS,
        has_status=True,
        check=buffer.check(declared) if check is None else check,
        external=external,
    )


def _tile(pair: tuple[int, int]) -> str:
    """Return a cmsis_nn_tile {w, h} of (rows, columns)."""
    return f"{{{pair[1]}, {pair[0]}}}"


def _dims(shape: Shape) -> str:
    """Return a cmsis_nn_dims {n, h, w, c}."""
    return f"{{{', '.join(map(str, shape))}}}"


MAX_LEFT = 14
"""The greatest shift to the left of a product of two 9-bit numbers."""


@cmsis_nn(Elementwise)
def elementwise(operation: Elementwise, extensions: Sequence[str]) -> Call | None:
    """Return the call of arm_elementwise_add_s8 or arm_elementwise_mul_s8; None for other functions and shapes."""
    del extensions  # no scratch memory
    result, function = operation.results[0], operation.function
    if not is_int8_pair(operation):
        return None
    if isinstance(function, AddQuantised) and not function.subtract:
        numbers = function.numbers
        multipliers = (*numbers.multipliers, numbers.result)
        if any(not MIN_SHIFT <= multiplier.shift <= 0 for multiplier in multipliers):
            return None
        one, other = (f"{-z}, {_scale(m)}" for z, m in zip(numbers.zeros, numbers.multipliers, strict=True))
        called, places = f"arm_elementwise_add_s8(a, b, {one}, {other}, {numbers.left_shift},", numbers.result
    elif isinstance(function, Product):
        product = function.numbers
        if not MIN_SHIFT <= product.multiplier.shift <= MAX_LEFT:
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
    return call_for(
        operation,
        name,
        lines,
        dict(zip("ab", operation.inputs, strict=True)),
        ("a", "b"),
        helpers=(ROUNDING,),
        headers=HEADERS,
        has_status=True,
        external=(called.partition("(")[0],),
    )


def _scale(multiplier: Multiplier) -> str:
    return f"{multiplier.fixed}, {multiplier.shift}"


_FUNCTIONS = {"average": "arm_avgpool_s8", "maximum": "arm_max_pool_s8"}


@cmsis_nn(Pool)
def pool(operation: Pool, extensions: Sequence[str]) -> Call | None:
    """Return the call of arm_avgpool_s8 or arm_max_pool_s8; None for other dtypes and kinds."""
    data, window = operation.inputs[0], operation.window
    if data.dtype != "int8" or operation.kind not in _FUNCTIONS or window.dilation != (1, 1):
        return None
    (n, height, width, depth), called = data.shape, _FUNCTIONS[operation.kind]
    is_average = operation.kind == "average"
    size = max(sizes.average_pool(depth, extension) for extension in extensions) if is_average else 0
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
    check = buffer.check([]).lstrip("\n") if is_average else ""
    external = (called, f"{called}_get_buffer_size") if is_average else (called,)
    return call_for(
        operation,
        f"cmsis_nn_{operation.kind}_pool",
        lines,
        {"data": data},
        scratch=buffer.parameters,
        headers=HEADERS,
        has_status=True,
        check=check,
        external=external,
    )

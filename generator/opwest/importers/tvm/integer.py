# SPDX-License-Identifier: Apache-2.0
"""Compute quantised layers in integers, as TFLite does; TVM's importer converts them to float.

Convolutions, fully connected layers and average pools of int8 become one operator each: int8 in flash and between
operators, int32 sums, and TFLite's fixed-point scaling with its two roundings. All other quantised layers use float.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from opwest.importers.tvm.integer_kernels import AveragePool, Convolution, Dense, Mean, Requantize
from opwest.records import dataclass


def use_integers(module: Any) -> Any:
    """Return the module with the supported int8 layers computed in integers."""
    from tvm import relax

    main = module["main"]
    values = dict(relax.analysis.get_var2val(main).items())

    extremes = {"relax.argmax": relax.op.argmax, "relax.argmin": relax.op.argmin}

    @relax.expr_functor.mutator
    class Rewriting(relax.PyExprMutator):  # type: ignore[misc]
        """Replaces layers that end in a quantisation, and pools."""

        def visit_call_(self, call: Any) -> Any:
            """Replace a layer."""
            name = getattr(call.op, "name", "")
            if name == "relax.quantize":
                layer = _layer(call, values)
                if layer is not None:
                    return self._emit(layer.kernel, layer.data, layer.constants, layer.name)
            if name == "relax.nn.avg_pool2d" and str(call.args[0].ty.dtype) == "int32":
                source = _value(call.args[0], values)
                pool = _pool(call.attrs, _shape(call.args[0]))
                if pool is not None and _is(source, "relax.astype"):
                    return self._emit(pool, source.args[0], (), "avg_pool2d")
            if name in extremes and str(call.args[0].ty.dtype) in ("int8", "uint8", "int16"):
                # TVM starts from the limit of the type: if all elements equal it, the result is -1.
                wide = relax.op.astype(self.visit_expr(call.args[0]), "int32")
                return self.builder_.normalize(extremes[name](wide, call.attrs.axis, call.attrs.keepdims))
            if name == "relax.clip" and _keeps_all(call):
                return self.visit_expr(call.args[0])
            return super().visit_call_(call)

        def _emit(self, kernel: Any, data: Any, constants: tuple[Any, ...], name: str) -> Any:
            arrays = [relax.const(array) for array in constants]
            return self.builder_.call_te(kernel, self.visit_expr(data), *arrays, primfunc_name_hint=name)

    mutator = Rewriting(module)
    for variable, function in module.functions_items():
        if type(function).__name__ == "Function":
            changed = mutator.visit_expr(function)
            mutator.builder_.update_func(variable, relax.analysis.remove_all_unused(changed))
    return mutator.builder_.get()


def left_in_float(module: Any) -> list[str]:
    """Return the operators whose result is still computed in float, and then quantised."""
    from tvm import relax

    main = module["main"]
    values = dict(relax.analysis.get_var2val(main).items())
    found = [
        _value(value.args[0], values) for value in values.values() if _is(value, "relax.quantize") and len(value.args)
    ]
    names = (
        str(getattr(getattr(one, "op", None), "name", "quantize")).removeprefix("relax.").removeprefix("nn.")
        for one in found
    )
    return sorted(set(names))


@dataclass(frozen=True)
class _Layer:
    kernel: Any
    data: Any
    constants: tuple[Any, ...]
    name: str


def _is(value: Any, name: str) -> bool:
    return getattr(getattr(value, "op", None), "name", None) == name


def _value(expression: Any, values: dict[Any, Any]) -> Any:
    """Return the expression that a variable is bound to."""
    while expression in values:
        expression = values[expression]
    return expression


def _shape(expression: Any) -> tuple[int, ...]:
    return tuple(int(d) for d in expression.ty.shape.values)


def _array(expression: Any) -> Any:
    """Return the array of a constant; None for others."""
    return expression.value.numpy() if hasattr(getattr(expression, "value", None), "numpy") else None


@dataclass(frozen=True)
class _Weights:
    array: Any
    scale: Any


def _weights(expression: Any, values: dict[Any, Any]) -> _Weights | None:
    """Return quantised constants with zero point 0, through the transpositions that the importer inserts."""
    value = _value(expression, values)
    array = _array(value)
    if array is not None:
        return _Weights(array, None)
    if not hasattr(value, "op") or not value.args:
        return None
    inner = _weights(value.args[0], values)
    if inner is None:
        return None
    if _is(value, "relax.dequantize"):
        scale, zero = _array(value.args[1]), _array(value.args[2])
        if inner.scale is not None or scale is None or zero is None or zero.any():
            return None
        return _Weights(inner.array, scale)
    if _is(value, "relax.permute_dims"):
        return _Weights(inner.array.transpose([int(a) for a in value.attrs.axes]), inner.scale)
    if _is(value, "relax.reshape"):
        return _Weights(inner.array.reshape(_shape(value)), inner.scale)
    return None


def _scalar(expression: Any) -> Any:
    array = _array(expression)
    return array.item() if array is not None and array.size == 1 else None


def _layer(call: Any, values: dict[Any, Any]) -> _Layer | None:
    """Return the layer that ends in this quantisation; None if it is not supported."""
    import numpy as np

    out_scale, out_zero = _scalar(call.args[1]), _scalar(call.args[2])
    total = _value(call.args[0], values)
    if out_scale is None or out_zero is None or str(call.attrs.out_dtype) != "int8":
        return None
    if _is(total, "relax.mean"):
        return _mean(total, values, out_scale, int(out_zero))
    shape = _shape(call.args[0])
    if not shape:
        return None
    product, bias = total, np.zeros(shape[-1], np.int32)
    if _is(total, "relax.add"):
        added = _weights(total.args[1], values)
        if added is None or added.array.dtype != np.int32:
            return None
        product, bias = _value(total.args[0], values), added.array
    is_dense, is_convolution = _is(product, "relax.matmul"), _is(product, "relax.nn.conv2d")
    if not (is_dense or is_convolution):
        return None
    data, weights = _value(product.args[0], values), _weights(product.args[1], values)
    if not _is(data, "relax.dequantize") or weights is None or weights.array.dtype != np.int8 or weights.scale is None:
        return None
    in_scale, in_zero = _scalar(data.args[1]), _scalar(data.args[2])
    if in_scale is None or in_zero is None or str(data.args[0].ty.dtype) != "int8":
        return None
    fixed = _multipliers(in_scale, weights.scale, out_scale, shape[-1], single=is_dense)
    if fixed is None or bias.size != shape[-1]:
        return None
    requantize = Requantize(int(out_zero), fixed[0], once=is_dense)
    flat = bias.reshape(-1)
    if not _fits(flat, weights.array, in_zero):
        return None
    extra = () if requantize.fixed is not None else (fixed[1], fixed[2])
    if is_dense:
        if weights.array.ndim != 2:
            return None
        folded = _folded(flat, weights.array, int(in_zero))
        return _Layer(Dense(requantize), data.args[0], (weights.array, folded, *extra), "dense")
    found = _convolution(product.attrs, weights.array, _shape(data), shape, int(in_zero), requantize)
    if found is None:
        return None
    kernel, array = found
    if not any(kernel.padding):
        kernel, flat = replace(kernel, zero=0), _folded(flat, array, kernel.zero)
    name = "depthwise_conv2d" if kernel.multiplier else "conv2d"
    return _Layer(kernel, data.args[0], (np.ascontiguousarray(array), flat, *extra), name)


def _sums(weights: Any) -> Any:
    """Return the sum of the weights of each channel, which is the last dimension, as int64."""
    import numpy as np

    return weights.reshape(-1, weights.shape[-1]).astype(np.int64).sum(axis=0)


def _folded(bias: Any, weights: Any, zero: int) -> Any:
    """Return the bias that takes the zero point into account: sum((x - zero) * w) is sum(x * w) - zero * sum(w)."""
    import numpy as np

    return (bias - zero * _sums(weights)).astype(np.int32)


def _fits(bias: Any, weights: Any, zero: int) -> bool:
    """Return whether all partial sums of int8 data times weights fit into int32."""
    import numpy as np

    most = (128 + abs(int(zero))) * _sums(np.abs(weights.astype(np.int64)))
    return bool((np.abs(bias.astype(np.int64)) + most).max() < 1 << 31)


def _mean(call: Any, values: dict[Any, Any], out_scale: float, out_zero: int) -> _Layer | None:
    """Return a mean over dimensions; None if its scale grows."""
    data = _value(call.args[0], values)
    if not _is(data, "relax.dequantize") or str(data.args[0].ty.dtype) != "int8" or call.attrs.axis is None:
        return None
    scale, zero = _scalar(data.args[1]), _scalar(data.args[2])
    if scale is None or zero is None:
        return None
    shape = _shape(data)
    axes = tuple(sorted({int(a) % len(shape) for a in call.attrs.axis}))
    count = math.prod(shape[a] for a in axes)
    multiplier, right = _fixed_point(float(scale) / float(out_scale))
    more = min(count.bit_length() - 1, 31 - right)  # bits freed by the division by the count
    if more < 0 or right + more < 0:
        return None
    requantize = Requantize(out_zero, ((multiplier << more) // count, right + more), once=False)
    kernel = Mean(shape, axes, bool(call.attrs.keepdims), int(zero), requantize)
    return _Layer(kernel, data.args[0], (), "mean")


def _convolution(
    attributes: Any, weights: Any, data: tuple[int, ...], result: tuple[int, ...], zero: int, requantize: Requantize
) -> tuple[Convolution, Any] | None:
    if str(attributes.data_layout) != "NHWC" or str(attributes.out_layout) not in ("NHWC", ""):
        return None
    layout, groups = str(attributes.kernel_layout), int(attributes.groups)
    top, left, bottom, right = (int(p) for p in attributes.padding)
    strides = tuple(int(s) for s in attributes.strides)
    dilation = tuple(int(d) for d in attributes.dilation)
    multiplier = 0
    if groups == 1 and layout == "HWIO":
        pass
    elif groups == data[3] and result[3] % groups == 0 and layout in ("HWOI", "HWIO"):
        multiplier = result[3] // groups
        weights = weights.reshape(*weights.shape[:2], result[3])
    else:
        return None
    padding = (top, left, bottom, right)
    return Convolution(zero, requantize, result, strides, padding, dilation, multiplier), weights


def _multipliers(
    data: float, weights: Any, result: float, channels: int, *, single: bool
) -> tuple[tuple[int, int] | None, Any, Any] | None:
    """Return TFLite's fixed-point multipliers: one pair, or arrays of them; None if one is above 1."""
    import numpy as np

    scales = np.asarray(weights, np.float32).reshape(-1)
    if scales.size not in (1, channels):
        return None
    if single and scales.size == 1:
        reals = [float(np.float32(data) * scales[0]) / float(np.float32(result))]
    else:
        reals = [float(np.float32(data)) * float(scale) / float(np.float32(result)) for scale in scales]
    pairs = [_fixed_point(real) for real in reals]
    if any(not 0 <= shift <= 31 for _, shift in pairs):
        return None
    if len(pairs) == 1:
        return pairs[0], None, None
    return None, np.array([m for m, _ in pairs], np.int32), np.array([s for _, s in pairs], np.int32)


def _fixed_point(real: float) -> tuple[int, int]:
    """Return a multiplier of 31 bits and the shift to the right after it (TFLite's QuantizeMultiplier)."""
    fraction, exponent = math.frexp(real)
    whole = math.floor(fraction * (1 << 31) + 0.5)
    if whole == 1 << 31:
        whole, exponent = whole // 2, exponent + 1
    return whole, -exponent


def _pool(attributes: Any, data: tuple[int, ...]) -> AveragePool | None:
    if str(attributes.layout) != "NHWC" or bool(attributes.ceil_mode) or bool(attributes.count_include_pad):
        return None
    if any(int(d) != 1 for d in attributes.dilation):
        return None
    size, strides = (tuple(int(n) for n in one) for one in (attributes.pool_size, attributes.strides))
    return AveragePool(data, size, strides, tuple(int(p) for p in attributes.padding))


def _keeps_all(call: Any) -> bool:
    """Return whether a clip of int8 has the complete range of int8."""
    if str(call.args[0].ty.dtype) != "int8":
        return False
    low, high = (float(getattr(a, "value", math.nan)) for a in call.args[1:3])
    return low <= -128 and high >= 127

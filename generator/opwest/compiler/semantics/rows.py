# SPDX-License-Identifier: Apache-2.0
"""Softmax and its relatives, reductions, positions, running sums.

Sources in TFLite: kernels/activations.cc (SoftmaxPrepare, LogSoftmaxPrepare), internal/reference/softmax.h,
log_softmax.h, l2normalization.h, internal/quantization_util.cc (PreprocessSoftmaxScaling). LiteRT's reference resolver
and tflite-micro use these fixed-point rules; LiteRT's optimised kernels use float32 tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import Operator, Result, same, specify
from opwest.compiler.graph.types import Node, Shape, Tensor, Unsupported
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Multiplier,
    Requantisation,
    Rounding,
    exponential,
    one_quantization,
    quantize_multiplier,
    round_shift,
)
from opwest.compiler.semantics.tables import samples_of


def _softmax(node: Node) -> Sequence[Result]:
    data, result = node.input(0), node.output
    if not data.shape:
        raise Unsupported("data without dimensions", "at least 1 dimension")
    dtype = "int16" if result.dtype == "int16" and data.dtype in ("int8", "uint8") else data.dtype
    if data.dtype != "float32":
        wanted = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 65536, -32768)}
        check_result(result, *(wanted[dtype] if data.dtype != "int16" else (1 / 32768, 0)))
        one_quantization(data)
    return [(dtype, data.shape)]


def check_result(tensor: Tensor, scale: float, zero: int) -> None:
    """Raise Unsupported if a result does not have the only quantisation that its operator has."""
    quantization = tensor.quantization
    if quantization is None or len(quantization.scales) != 1:
        raise Unsupported(f"result '{tensor.name}' is {tensor.dtype} without one scale", f"the scale {scale:g}")
    if abs(quantization.scale - scale) > 0.001 * scale or quantization.zero != zero:
        raise Unsupported(
            f"result '{tensor.name}' has the scale {quantization.scale:g} and the zero point {quantization.zero}",
            f"the scale {scale:g} and the zero point {zero}",
        )


_RESULTS = {
    "LOG_SOFTMAX": (1 / 16, {"int8": 127, "uint8": 255}),
    "L2_NORMALIZATION": (1 / 128, {"int8": 0, "uint8": 128}),
}
"""The scale of results, and their zero points by the dtype of the data."""


def _normalised(node: Node) -> Sequence[Result]:
    data, activation = node.input(0), node.options.get("fused_activation_function", "NONE")
    if not data.shape:
        raise Unsupported("data without dimensions", "at least 1 dimension")
    if activation != "NONE":
        raise Unsupported(f"fused activation {activation}", "NONE")
    if data.dtype != "float32":
        one_quantization(data)
        scale, zeros = _RESULTS[node.kind]
        check_result(node.output, scale, zeros[data.dtype])
    return same(node)


specify(
    Operator("SOFTMAX", _softmax, ("float32", "int8", "uint8", "int16"), {"beta": 1.0}),
    Operator("LOG_SOFTMAX", _normalised, ("float32", "int8", "uint8")),
    Operator("L2_NORMALIZATION", _normalised, ("float32", "int8", "uint8"), {"fused_activation_function": "NONE"}),
)


def differences_of(factor: float) -> tuple[Any, Any, Multiplier, int]:
    """Return the fixed-point form of differences from the greatest element of a row of 8-bit data.

    The negative differences 0 to 255 times a factor, with 5 integer bits, 0 where they do not fit; which ones fit; the
    multiplier; the greatest difference that fits. Source: PreprocessSoftmaxScaling, CalculateInputRadius.
    """
    if factor <= 2.0**-26:
        raise Unsupported(f"the scale times beta is {factor:g}", "more than 2**-26")
    multiplier = quantize_multiplier(factor * (1 << 26))
    radius = int(31.0 * (1 << 26) / (1 << multiplier.shift))
    differences = np.arange(256)
    fits = differences <= radius
    return multiplier.times(np.where(fits, -differences, 0)), fits, multiplier, radius


def exponentials(node: Node) -> tuple[int, ...]:
    """Return exp with 0 integer bits by the difference from the greatest element, for SOFTMAX of 8-bit data."""
    factor = float(np.float32(node.options["beta"])) * one_quantization(node.input(0)).scale
    differences, fits, _, _ = differences_of(factor)
    return tuple(map(int, np.where(fits, exponential(differences), 0)))


@dataclass(frozen=True)
class Softmax16Numbers:
    """The numbers of SOFTMAX for int16."""

    multiplier: Multiplier
    """From a difference from the greatest element to the domain of `powers`."""
    powers: tuple[int, ...]
    """513 values of exp between -10 and 0, in 1/32768."""
    inverses: tuple[int, ...]
    """513 values of 1 / (1 + x) between 0 and 1, in 1/32768."""


def softmax16_numbers(node: Node) -> Softmax16Numbers:
    """Return the numbers of SOFTMAX for int16."""
    scale = float(np.float32(one_quantization(node.input(0)).scale) * np.float32(node.options["beta"]))
    return Softmax16Numbers(
        quantize_multiplier(scale / (10.0 / 65535.0)),
        _sampled(np.exp, 10.0 / 65535, 32767),
        _sampled(lambda x: 1.0 / (1.0 + x), 1.0 / 65535, -32768),
    )


def _sampled(function: Callable[[Any], Any], scale: float, zero: int) -> tuple[int, ...]:
    """Return 513 samples for int16 inputs. Source: LUTPopulateInt16."""
    ends = np.float64(scale * (-32768 - zero)), np.float64(scale * (32767 - zero))
    least, greatest = 2.0 / 65535 * -32768, 2.0 / 65535 * 32767
    samples = samples_of(function, *ends, np.float64(65536.0 / (greatest - least)))
    return tuple(int(sample) for sample in np.clip(samples, -32768, 32767))


@dataclass(frozen=True)
class LogSoftmaxNumbers:
    """The numbers of LOG_SOFTMAX for 8 bits, by the difference from the greatest element."""

    scaled: tuple[int, ...]
    """The negative difference with 5 integer bits; 0 where it does not fit."""
    powers: tuple[int, ...]
    """exp of it with 12 integer bits."""
    reverse: Multiplier
    """From 5 integer bits to a difference."""
    radius: int
    """The greatest difference that fits."""


def log_softmax_numbers(node: Node) -> LogSoftmaxNumbers:
    """Return the numbers of LOG_SOFTMAX for int8 and uint8."""
    differences, fits, multiplier, radius = differences_of(one_quantization(node.input(0)).scale)
    reverse = quantize_multiplier((1 << (31 - multiplier.shift)) / multiplier.fixed)
    powers = np.where(fits, round_shift(exponential(differences), 12), 0)
    return LogSoftmaxNumbers(tuple(map(int, differences)), tuple(map(int, powers)), reverse, radius)


QUANTISED = ("int8", "uint8", "int16")


def axis_of(number: int, shape: Shape) -> int:
    """Return a dimension as a number that is not negative. Raises Unsupported."""
    if not -len(shape) <= number < len(shape):
        raise Unsupported(f"dimension {number} of {list(shape)}", f"{-len(shape)} to {len(shape) - 1}")
    return number % len(shape)


def axes_of(node: Node) -> tuple[int, ...]:
    """Return the dimensions that a reduction joins, in ascending order."""
    shape = node.input(0).shape
    return tuple(sorted({axis_of(int(n), shape) for n in node.input(1).content.reshape(-1)})) if shape else ()


def count_of(node: Node) -> int:
    """Return the number of elements that one result joins."""
    return prod(node.input(0).shape[axis] for axis in axes_of(node))


def _reduction(node: Node) -> Sequence[Result]:
    data, axes = node.input(0), axes_of(node)
    if node.options["keep_dims"]:
        shape = tuple(1 if i in axes else n for i, n in enumerate(data.shape))
    else:
        shape = tuple(n for i, n in enumerate(data.shape) if i not in axes)
    return [(data.dtype, shape)]


def _extreme(node: Node) -> Sequence[Result]:
    data, result = node.input(0), node.output
    if data.dtype in QUANTISED and data.quantization != result.quantization:
        raise Unsupported(f"'{data.name}' and '{result.name}' have different scales or zero points", "equal ones")
    return _reduction(node)


def _mean_or_sum(node: Node) -> Sequence[Result]:
    data = node.input(0)
    if data.dtype in QUANTISED:
        low, high = RANGES[data.dtype]
        one_quantization(data)
        one_quantization(node.output)
        if count_of(node) * (high - low) >= 2**31:
            raise Unsupported(f"a sum of {counted(count_of(node), 'element')}", "a sum that fits in 32 bits")
    return _reduction(node)


def _product(node: Node) -> Sequence[Result]:
    data = node.input(0)
    if data.quantization is not None and data.dtype in QUANTISED:
        if data.dtype == "uint8":
            raise Unsupported("a product of quantised uint8", "int8 or int16")
        product_numbers(node)
    return _reduction(node)


def _positions(node: Node) -> Sequence[Result]:
    data, axis = node.input(0), node.input(1)
    if axis.size != 1:
        raise Unsupported(f"{counted(axis.size, 'dimension')}", "one")
    if not data.shape:
        raise Unsupported("data without dimensions", "at least 1 dimension")
    at = position_axis(node)
    dtype = str(node.options["output_type"])
    if dtype not in ("int32", "int64"):
        raise Unsupported(f"positions of dtype {dtype}", "int32 or int64")
    return [(dtype, data.shape[:at] + data.shape[at + 1 :])]


def position_axis(node: Node) -> int:
    """Return the dimension of ARG_MAX, ARG_MIN and CUMSUM."""
    return axis_of(int(node.input(1).content.reshape(-1)[0]), node.input(0).shape)


def zero_of_rows(node: Node) -> int:
    """Return the zero point of the data of L2_NORMALIZATION; 0 for float32."""
    return 0 if node.output.dtype == "float32" else one_quantization(node.input(0)).zero


def greatest_count(node: Node) -> int:
    """Return the number of elements that TOPK_V2 selects."""
    return int(node.input(1).content.reshape(-1)[0])


def _greatest(node: Node) -> Sequence[Result]:
    data = node.input(0)
    if not data.shape or node.input(1).size != 1:
        raise Unsupported(
            f"data {list(data.shape)} and {counted(node.input(1).size, 'count')}", "1 dimension and one count"
        )
    count = greatest_count(node)
    if not 1 <= count <= data.shape[-1]:
        raise Unsupported(f"{counted(count, 'element')} of {data.shape[-1]}", f"1 to {data.shape[-1]}")
    if data.dtype in QUANTISED and data.quantization != node.outputs[0].quantization:
        raise Unsupported(
            f"'{data.name}' and '{node.outputs[0].name}' have different scales or zero points", "equal ones"
        )
    positions = node.outputs[1].dtype if len(node.outputs) == 2 else "int32"
    if positions not in ("int32", "int16"):
        raise Unsupported(f"positions of dtype {positions}", "int32 or int16")
    shape = (*data.shape[:-1], count)
    return [(data.dtype, shape), (positions, shape)]


def _running_sum(node: Node) -> Sequence[Result]:
    data = node.input(0)
    if not data.shape or node.input(1).size != 1:
        raise Unsupported(
            f"data {list(data.shape)} and {counted(node.input(1).size, 'dimension')}", "1 dimension at least and one"
        )
    position_axis(node)
    if data.dtype == "int8":
        running_sum_numbers(node)
    return [(data.dtype, data.shape)]


_KEEP = {"keep_dims": False}
_SUMS = {**_KEEP, "wide_sums": False}
"""`wide_sums`: float32 elements are added as double. Only readers of PyTorch, which adds vectors, set it."""
_PLAIN = ("float32", "int32", "int64")
_ALL = (*_PLAIN, *QUANTISED)
specify(
    *(
        Operator(
            *(kind, infer, tuple(f"{dtype} int32" for dtype in dtypes)),
            _SUMS if kind in ("MEAN", "SUM") else _KEEP,
            (1,),
        )
        for kind, infer, dtypes in (
            ("MEAN", _mean_or_sum, _ALL),
            ("SUM", _mean_or_sum, _ALL),
            ("REDUCE_MAX", _extreme, _ALL),
            ("REDUCE_MIN", _extreme, _ALL),
            ("REDUCE_PROD", _product, _ALL),
            ("REDUCE_ANY", _reduction, ("bool",)),
            ("REDUCE_ALL", _reduction, ("bool",)),
        )
    ),
    *(
        Operator(
            kind,
            _positions,
            tuple(f"{dtype} int32|int64" for dtype in ("float32", "int8", "uint8", "int32", "bool")),
            {"output_type": "int64"},
            (1,),
        )
        for kind in ("ARG_MAX", "ARG_MIN")
    ),
    Operator("TOPK_V2", _greatest, tuple(f"{dtype} int32|int16" for dtype in _ALL), {}, (1,)),
    Operator(
        "CUMSUM",
        _running_sum,
        tuple(f"{dtype} int32" for dtype in (*_PLAIN, "int8")),
        {"exclusive": False, "reverse": False},
        (1,),
    ),
)


def sum_numbers(node: Node) -> Requantisation:
    """Return the requantisation of MEAN and SUM: the number of elements divides the multiplier of MEAN."""
    source, target = one_quantization(node.input(0)), one_quantization(node.output)
    multiplier = quantize_multiplier(source.scale / target.scale)
    if node.kind == "MEAN":
        count = count_of(node)
        shift = min(count.bit_length() - 1, 32, 31 + multiplier.shift)
        multiplier = Multiplier((multiplier.fixed << shift) // count, multiplier.shift - shift)
    return Requantisation((multiplier,), Rounding.TWICE, target.zero, *RANGES[node.output.dtype])


SUM_SHIFT = 19
"""The places that the elements of an int8 running sum are shifted to the left."""


def running_sum_numbers(node: Node) -> Requantisation:
    """Return the requantisation of int8 CUMSUM. Source: tflite-micro's kernels/cumsum.cc, reference/cumsum.h."""
    source, target = one_quantization(node.input(0)), one_quantization(node.output)
    multiplier = quantize_multiplier(2 * source.scale / ((1 << SUM_SHIFT + 1) * target.scale))
    if multiplier.shift > 0:
        raise Unsupported(f"the scales {source.scale:g} and {target.scale:g}", "a quotient below 2**19")
    return Requantisation((multiplier,), Rounding.TWICE, target.zero, *RANGES["int8"])


def product_numbers(node: Node) -> Requantisation:
    """Return the requantisation of REDUCE_PROD, applied after each multiplication and at the end."""
    source, target = one_quantization(node.input(0)), one_quantization(node.output)
    multiplier = quantize_multiplier(source.scale / target.scale ** (1.0 / count_of(node)))
    if multiplier.shift > 14:
        raise Unsupported(f"the scales {source.scale:g} and {target.scale:g}", "a multiplier below 2**14")
    return Requantisation((multiplier,), Rounding.SIXTEEN, target.zero, *RANGES[node.output.dtype])


REDUCTIONS = {
    "MEAN": "mean",
    "SUM": "sum",
    "REDUCE_PROD": "product",
    "REDUCE_MAX": "maximum",
    "REDUCE_MIN": "minimum",
    "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}
"""The operations of the operators that join elements."""
_REQUANTISATIONS = {
    "MEAN": sum_numbers,
    "SUM": sum_numbers,
    "REDUCE_PROD": product_numbers,
    "CUMSUM": running_sum_numbers,
}


def ending_of(node: Node) -> tuple[int, Requantisation | None]:
    """Return the zero point of the data and the requantisation of a reduction or CUMSUM; 0 and None without one."""
    data, numbers = node.input(0), _REQUANTISATIONS.get(node.kind)
    if numbers is None or data.dtype not in QUANTISED or (node.kind == "REDUCE_PROD" and data.quantization is None):
        return 0, None
    return one_quantization(data).zero, numbers(node)

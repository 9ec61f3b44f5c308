# SPDX-License-Identifier: Apache-2.0
r"""Reductions over dimensions, positions of extremes, the greatest elements, running sums.

Sources in TFLite: kernels/reduce.cc, internal/reference/reduce.h (QuantizedMeanOrSum, QuantizedReduceProd),
kernels/arg_min_max.cc, topk_v2.cc, cumsum.cc.

| operator | oracle |
|---|---|
| SUM of int8 | LiteRT's BUILTIN_REF reads the elements as uint8. The oracle is the same file with uint8 data and zero \
points moved by 128 |
| SUM of int16 | LiteRT's BUILTIN_REF reads the elements as uint8. The rule is that of int8, as in tflite-micro; \
LiteRT's BUILTIN computes with float32 and differs by at most 1 |
| ARG_MAX, ARG_MIN of float32 | The result of LiteRT 2.3 for rows with elements that are not numbers depends on the \
length of the row. The rule is that of its later sources and of tflite-micro: they are behind all numbers |
| CUMSUM of int8 | LiteRT refuses it. The rule is that of tflite-micro: the sum starts with the negative zero point, \
and wraps to 32 bits |
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.compiler.graph.spec import Operator, Result, specify
from opwest.compiler.graph.types import Node, Shape, Unsupported
from opwest.compiler.semantics.fixed_point import (
    RANGES,
    Multiplier,
    Requantisation,
    Rounding,
    one_quantization,
    quantize_multiplier,
)

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
    count = 1
    for axis in axes_of(node):
        count *= node.input(0).shape[axis]
    return count


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
            raise Unsupported(f"a sum of {count_of(node)} elements", "a sum that fits in 32 bits")
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
        raise Unsupported(f"{axis.size} dimensions", "one")
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


def greatest_count(node: Node) -> int:
    """Return the number of elements that TOPK_V2 selects."""
    return int(node.input(1).content.reshape(-1)[0])


def _greatest(node: Node) -> Sequence[Result]:
    data = node.input(0)
    if not data.shape or node.input(1).size != 1:
        raise Unsupported(f"data {list(data.shape)} and {node.input(1).size} counts", "1 dimension and one count")
    count = greatest_count(node)
    if not 1 <= count <= data.shape[-1]:
        raise Unsupported(f"{count} elements of {data.shape[-1]}", f"1 to {data.shape[-1]}")
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
            f"data {list(data.shape)} and {node.input(1).size} dimensions", "1 dimension at least and one"
        )
    position_axis(node)
    if data.dtype == "int8":
        running_sum_numbers(node)
    return [(data.dtype, data.shape)]


_KEEP = {"keep_dims": False}
_PLAIN = ("float32", "int32", "int64")
_ALL = (*_PLAIN, *QUANTISED)
specify(
    *(
        Operator(kind, infer, tuple(f"{dtype} int32" for dtype in dtypes), _KEEP, (1,))
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

# SPDX-License-Identifier: Apache-2.0
"""Convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.spec import broadcast
from opwest.compiler.graph.types import Quantization, Shape, Tensor, Unsupported
from opwest.frontends.onnx.movement import numbers
from opwest.frontends.onnx.translation import Constant, Epilogue, Translation, as_signed, identity, permuted, translates
from opwest.frontends.onnx.values import Item, Op
from opwest.frontends.onnx.windows import planar


@translates("Einsum")
def einsum(op: Op, t: Translation) -> None:
    """float32. A letter occurs once in each operand."""
    items = [op.input(number) for number in range(len(op.inputs))]
    terms, result = _terms(str(op.get("equation", "")), [item.rank for item in items])
    tensor, labels = t.tensor(items[0]), terms[0]
    for number, item in enumerate(items[1:], 1):
        wanted = set(result).union(*terms[number + 1 :])
        tensor, labels = _product_of_terms(t, (tensor, t.tensor(item)), (labels, terms[number]), wanted)
    tensor, labels = _summed(t, tensor, labels, set(result))
    tensor = t.transpose(tensor, tuple(labels.index(label) for label in result))
    end = t.end(op, False)
    t.settle(end, t.reshape(tensor, op.output.known), identity(op.output.rank))


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the letters of the operands and of the result; digits are the dimensions of an ellipsis."""
    left, arrow, right = "".join(equation.split()).partition("->")
    given = left.split(",")
    if len(given) != len(ranks):
        raise Unsupported(f"equation '{equation}' for {counted(len(ranks), 'operand')}")
    terms, most = [], 0
    for term, rank in zip(given, ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        if ("..." not in term and count) or count < 0 or count > 9:
            raise Unsupported(f"equation '{equation}': '{term}' for {counted(rank, 'dimension')}")
        most = max(most, count if "..." in term else 0)
        terms.append((term, count))
    ellipsis = "0123456789"[:most]
    letters = [term.replace("...", ellipsis[most - count :] if count else "") for term, count in terms]
    every = "".join(letters)
    if any(len(set(term)) != len(term) for term in letters):
        raise Unsupported(f"equation '{equation}': a letter occurs twice in an operand", "different letters")
    if arrow:
        result = right.replace("...", ellipsis)
    else:
        result = ellipsis + "".join(sorted(label for label in set(every) - set(ellipsis) if every.count(label) == 1))
    if len(set(result)) != len(result) or not set(result) <= set(every):
        raise Unsupported(f"equation '{equation}'")
    return letters, result


def _summed(t: Translation, tensor: Tensor, labels: str, wanted: set[str]) -> tuple[Tensor, str]:
    """Return the sum over the dimensions that nothing else needs."""
    axes = [axis for axis, label in enumerate(labels) if label not in wanted]
    if not axes:
        return tensor, labels
    shape = tuple(n for axis, n in enumerate(tensor.shape) if axis not in axes)
    index = numbers(t, axes, "axes")
    return t.emit("SUM", [tensor, index], shape, keep_dims=False), "".join(label for label in labels if label in wanted)


def _product_of_terms(
    t: Translation, tensors: tuple[Tensor, Tensor], terms: tuple[str, str], wanted: set[str]
) -> tuple[Tensor, str]:
    """Return the product of two operands: dimensions of both are a batch, or summed if nothing else needs them."""
    tensor, first = _summed(t, tensors[0], terms[0], wanted | set(terms[1]))
    other, second = _summed(t, tensors[1], terms[1], wanted | set(terms[0]))
    sizes = dict(zip(first, tensor.shape, strict=True))
    for label, n in zip(second, other.shape, strict=True):
        sizes[label] = max(n, sizes.get(label, n))
    tensor, other = _spread(t, tensor, first, sizes, second), _spread(t, other, second, sizes, first)
    batch = "".join(label for label in first if label in second and label in wanted)
    inner = "".join(label for label in first if label in second and label not in wanted)
    rows = "".join(label for label in first if label not in second)
    columns = "".join(label for label in second if label not in first)

    def size(labels: str) -> int:
        return prod(sizes[label] for label in labels)

    tensor = t.transpose(tensor, tuple(first.index(label) for label in batch + rows + inner))
    other = t.transpose(other, tuple(second.index(label) for label in batch + columns + inner))
    tensor = t.reshape(tensor, (size(batch), size(rows), size(inner)))
    other = t.reshape(other, (size(batch), size(columns), size(inner)))
    shape = (size(batch), size(rows), size(columns))
    product = t.emit("BATCH_MATMUL", [tensor, other], shape, adj_y=True)
    labels = batch + rows + columns
    return t.reshape(product, tuple(sizes[label] for label in labels)), labels


def _spread(t: Translation, tensor: Tensor, labels: str, sizes: dict[str, int], others: str) -> Tensor:
    """Return a tensor whose dimensions of one element are repeated if the other operand has more of them."""
    shape = tuple(sizes[label] if label in others else n for label, n in zip(labels, tensor.shape, strict=True))
    if shape == tensor.shape:
        return tensor
    if any(n not in (1, wanted) for n, wanted in zip(tensor.shape, shape, strict=True)):
        raise Unsupported(f"operands of shape {list(tensor.shape)} and {list(shape)}")
    return t.emit("BROADCAST_TO", [tensor, numbers(t, shape, "shape")], shape)


@dataclass(frozen=True)
class Weights:
    """Weights of a layer, results first, and the bias."""

    content: Any
    quantization: Quantization | None
    """None: float32. The axis is 0."""
    bias: Any
    """[results] int32 or float32; None: zeros. float32 with integer weights: added before the sums are rounded."""


def weights_of(t: Translation, op: Op, axis: int, end: Epilogue, factor: float = 1.0) -> Weights:
    """Return the constants of a layer whose results are dimension `axis` of the weights.

    Integers if the data, the weights and the result have 8 bits, else float32. Raises Unsupported.
    """
    data, item, bias = op.input(0), op.input(1), op.optional(2)
    fixed = t.fixed.get(item)
    whole = _integers(fixed, axis) if fixed is not None and data in t.real and end.quantization is not None else None
    added = None if bias is None else t.constant_values(bias, "the bias").reshape(-1)
    if whole is None:
        real = t.values_of(item)
        if real is None:
            raise Unsupported(f"the weights '{item.name}' are computed when the model runs", "constants")
        real = real if factor == 1 else real * np.float32(factor)
        return Weights(np.moveaxis(real, axis, 0), None, added)
    content, scales, zeros = whole
    if factor != 1:
        scales = (scales * np.float32(factor)).astype(np.float32)
    quantization = Quantization(tuple(map(float, scales)), tuple(map(int, zeros)), 0 if len(scales) > 1 else None)
    source = t.real[data].tensor.quantization
    assert source is not None
    is_exact = t.rules.float_requantization and t.rules.inverse_scales
    if bias is not None:
        added = _bias(t.fixed.get(bias), added, np.float32(source.scale) * scales, is_exact)
    return Weights(np.moveaxis(content, axis, 0), quantization, added)


def _bias(fixed: Constant | None, real: Any, scales: Any, is_exact: bool) -> Any:
    """Return the bias as int32 with the scales of the sums; `is_exact`: as float32 if it has other scales."""
    if len(scales) not in (1, real.size):  # groups of a transposed convolution have the scales in common
        scales = np.tile(scales, real.size // len(scales))
    if fixed is not None and fixed.content.dtype == np.int32 and not fixed.zeros.any():
        each = np.broadcast_to(fixed.scales, (real.size,)) if len(fixed.scales) == 1 else fixed.scales
        if np.allclose(each, np.broadcast_to(scales, each.shape), rtol=1e-5, atol=0):
            return fixed.content.reshape(-1)
    if not np.isfinite(real).all():
        raise Unsupported("a bias that is not finite", "numbers")
    if is_exact:
        return real.astype(np.float32)
    with np.errstate(all="ignore"):  # scales of a damaged file
        whole = np.rint(real.astype(np.float64) / scales.astype(np.float64))
    if np.isnan(whole).any():
        raise Unsupported("a bias of 0 with a scale of 0", "scales above 0")
    return np.clip(whole, -(2**31), 2**31 - 1).astype(np.int32)


def _integers(fixed: Constant, axis: int) -> tuple[Any, Any, Any] | None:
    """Return int8 weights, scales and zero points; None if there is no such form."""
    is_8_bit = str(fixed.content.dtype) in ("int8", "uint8")
    if fixed.axis not in (None, axis) or not is_8_bit or len(set(fixed.zeros.tolist())) != 1:
        return None
    content, zeros = as_signed(fixed.content, fixed.zeros)
    return content, fixed.scales, zeros


def layer_data(t: Translation, item: Item, weights: Weights, order: tuple[int, ...]) -> Tensor:
    """Return the data of a layer: int8 if the weights are."""
    if weights.quantization is not None:
        return t.ordered(t.real[item], order)
    return t.tensor(item, order)


def append_layer(
    t: Translation, end: Epilogue, kind: str, data: Tensor, weights: Weights, kernel: Any, shape: Shape, **options: Any
) -> Tensor:
    """Return the result of a layer, float32 or int8; `kernel` are the weights in the layout of the operator."""
    quantization, target = weights.quantization, end.quantization if weights.quantization is not None else None
    if quantization is not None and quantization.axis is not None:
        axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
        quantization = Quantization(quantization.scales, quantization.zeros, axis)
    bias = [] if weights.bias is None else [t.constant(weights.bias, "bias")]
    if quantization is not None and weights.bias is not None and weights.bias.dtype == np.float32:
        bias, options["float_bias"] = [], tuple(map(float, weights.bias))
    inputs: list[Tensor | None] = [data, t.constant(kernel, "weights", quantization), *bias]
    if kind == "TRANSPOSE_CONV":
        inputs[:2] = [numbers(t, shape, "shape"), inputs[1], data]
    if kind == "FULLY_CONNECTED" and not bias:
        inputs.append(None)
    options["fused_activation_function"] = end.activation
    return t.emit(kind, inputs, shape, "float32" if target is None else "int8", target, end.item.name, **options)


@translates("Conv")
def convolution(op: Op, t: Translation) -> None:
    """One or two dimensions, or three that can be two; depthwise if every group has one channel."""
    data, end = op.input(0), t.end(op)
    weights = weights_of(t, op, 0, end)
    form = planar(op, weights.content)
    outputs, inputs, *_ = weights.content.shape
    groups = int(op.get("group", 1))
    if groups < 1 or inputs * groups != data.known[1] or outputs % groups:
        raise Unsupported(f"data {list(data.known)}, weights {list(weights.content.shape)}, {counted(groups, 'group')}")
    source = t.reshape(layer_data(t, data, weights, form.order), form.image)
    if groups > 1 and form.kernel.shape[1] == 1:
        kind, kernel = "DEPTHWISE_CONV_2D", np.transpose(form.kernel, (1, 2, 3, 0))
    else:
        kind, kernel = "CONV_2D", np.transpose(form.kernel, (0, 2, 3, 1))
    out = permuted(end.item.known, form.order)
    tensor = append_layer(t, end, kind, source, weights, kernel, form.planes(out), **form.options)
    t.settle(end, t.reshape(tensor, out), form.order)


@translates("Gemm")
def gemm(op: Op, t: Translation) -> None:
    """alpha * A' * B' + beta * C."""
    data, other, bias = op.input(0), op.input(1), op.optional(2)
    alpha, beta = float(op.get("alpha", 1.0)), float(op.get("beta", 1.0))
    over, rows = int(op.get("transB", 0)), int(op.get("transA", 0))
    added = None if bias is None else t.values_of(bias)
    results = other.known[0 if over else 1]
    is_vector = bias is None or (
        added is not None and added.size == results and added.shape[-1:] in ((), (1,), (results,))
    )
    if t.values_of(other) is not None and is_vector and beta == 1.0:
        end = t.end(op)
        weights = weights_of(t, op, 0 if over else 1, end, alpha)
        dense(t, end, data, weights, (1, 0) if rows else (0, 1))
        return
    end = t.end(op, bias is None)
    left, right = t.tensor(data), t.tensor(other)
    shape = (left.shape[1 if rows else 0], right.shape[0 if over else 1])
    product = t.emit("BATCH_MATMUL", [left, right], shape, adj_x=bool(rows), adj_y=bool(over))
    if alpha != 1.0:
        product = t.emit("MUL", [product, t.constant(np.float32(alpha))], product.shape)
    if end.activation != "NONE":  # fused without a bias only
        product = t.emit(end.activation, [product], shape)
    if bias is not None:
        offset = t.tensor(bias)
        if beta != 1.0:
            offset = t.emit("MUL", [offset, t.constant(np.float32(beta))], offset.shape)
        product = t.emit("ADD", [product, offset], product.shape)
    t.settle(end, product, identity(2))


def dense(t: Translation, end: Epilogue, data: Item, weights: Weights, order: tuple[int, ...]) -> None:
    """Append FULLY_CONNECTED: the last dimension of the data in `order` times weights [results, length]."""
    content = weights.content
    if data in t.columns and order == identity(2):
        content = content[:, t.columns[data]]
    source = layer_data(t, data, weights, order)
    shape = (*source.shape[:-1], len(content))
    options = {"keep_num_dims": len(shape) != 2}
    tensor = append_layer(t, end, "FULLY_CONNECTED", source, weights, content, shape, **options)
    t.settle(end, t.reshape(tensor, end.item.known), identity(end.item.rank))


@translates("MatMul")
def matmul(op: Op, t: Translation) -> None:
    """With constant weights [length, results] a fully connected layer; a third input is a bias."""
    data, other = op.input(0), op.input(1)
    if t.values_of(other) is not None and other.rank == 2 and data.rank >= 2:
        end = t.end(op)
        dense(t, end, data, weights_of(t, op, 1, end), identity(data.rank))
        return
    if op.optional(2) is not None:
        raise Unsupported("a bias of a product of two results")
    end = t.end(op, False)
    if min(data.rank, other.rank) < 2:
        _with_vector(t, end, data, other)
        return
    both = data in t.real and other in t.real and end.quantization is not None
    tensors, flags = [], []
    for item in (data, other):
        held = t.real[item] if both else t.stored(item)
        swapped = (*range(item.rank - 2), item.rank - 1, item.rank - 2)
        transposed = held.order == swapped
        order = swapped if transposed else identity(item.rank)
        tensors.append(t.ordered(held, order) if both else t.tensor(item, order))
        flags.append(transposed)
    rank = max(data.rank, other.rank)
    tensors = [t.with_rank(tensor, rank) for tensor in tensors]
    options: dict[str, Any] = {"adj_x": flags[0], "adj_y": flags[1]}
    if both:
        t.finish(end, "BATCH_MATMUL", tensors, end.item.known, **options)
    else:
        t.settle(end, t.emit("BATCH_MATMUL", tensors, end.item.known, **options), identity(end.item.rank))


def _with_vector(t: Translation, end: Epilogue, data: Item, other: Item) -> None:
    """Append the float32 product with a vector: a matrix of one row or one column."""
    left, right = t.tensor(data), t.tensor(other)
    if min(data.rank, other.rank) < 1:
        raise Unsupported(f"shapes {list(data.known)} and {list(other.known)}", "1 or more dimensions each")
    left = t.reshape(left, (1, *left.shape)) if data.rank == 1 else left
    right = t.reshape(right, (*right.shape, 1)) if other.rank == 1 else right
    rank = max(len(left.shape), len(right.shape))
    left, right = (t.with_rank(tensor, rank) for tensor in (left, right))
    shape = (*broadcast([left.shape[:-2], right.shape[:-2]]), left.shape[-2], right.shape[-1])
    product = t.emit("BATCH_MATMUL", [left, right], shape)
    t.settle(end, t.reshape(product, end.item.known), identity(end.item.rank))

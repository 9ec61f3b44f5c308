# SPDX-License-Identifier: Apache-2.0
"""Convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.build import Builder, Context, Value, broadcast, translates


@translates("conv1d", "conv2d", "conv3d")
def convolution(x: Context, b: Builder) -> Value:
    """With padding of numbers, or `same` or `valid`."""
    weight = x.tensor("weight")
    spatial = weight.rank - 2
    dilation = spread(x.integers("dilation", [1]), spatial)
    stride = spread(x.integers("stride", [1]), spatial)
    padding = x.get("padding", [0])
    if padding == "valid":
        padding = [0]
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        pads = [n // 2 for n in total] + [n - n // 2 for n in total]
    else:
        pads = spread(x.integers("padding", [0]) if padding != [0] else [0], spatial) * 2
    groups = x.integer("groups", 1)
    return _convolved(x, b, weight, stride, pads, dilation, groups)


def _convolved(
    x: Context, b: Builder, weight: Value, stride: list[int], pads: list[int], dilation: list[int], groups: int
) -> Value:
    """Return a convolution; data without a batch gets one."""
    data, bias = x.tensor("input"), x.optional("bias")
    shape = x.meta.shape
    batched = data.rank == weight.rank
    if not batched:
        data, shape = b.reshape(data, (1, *data.shape)), (1, *shape)
    options: dict[str, Any] = {"strides": stride, "pads": pads, "dilations": dilation, "group": groups}
    result = b.op("Conv", [data, weight, bias], shape, kernel_shape=list(weight.shape[2:]), **options)
    return result if batched else b.reshape(result, x.meta.shape)


@translates("convolution", "_convolution")
def any_convolution(x: Context, b: Builder) -> Value:
    """The operator of decomposed programs, transposed or not."""
    if x.flag("transposed"):
        return _transposed(x, b, x.integers("output_padding", [0]))
    weight = x.tensor("weight")
    spatial = weight.rank - 2
    pads = spread(x.integers("padding", [0]), spatial) * 2
    stride, dilation = (spread(x.integers(name, [1]), spatial) for name in ("stride", "dilation"))
    return _convolved(x, b, weight, stride, pads, dilation, x.integer("groups", 1))


@translates("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed(x: Context, b: Builder) -> Value:
    """The transposed form."""
    return _transposed(x, b, x.integers("output_padding", [0]))


def _transposed(x: Context, b: Builder, added: list[int]) -> Value:
    data, weight, bias = x.tensor("input"), x.tensor("weight"), x.optional("bias")
    spatial = weight.rank - 2
    shape = x.meta.shape
    batched = data.rank == weight.rank
    if not batched:
        data, shape = b.reshape(data, (1, *data.shape)), (1, *shape)
    options: dict[str, Any] = {
        "strides": spread(x.integers("stride", [1]), spatial),
        "dilations": spread(x.integers("dilation", [1]), spatial),
        "pads": spread(x.integers("padding", [0]), spatial) * 2,
        "output_padding": spread(added, spatial),
        "group": x.integer("groups", 1),
        "kernel_shape": list(weight.shape[2:]),
    }
    result = b.op("ConvTranspose", [data, weight, bias], shape, **options)
    return result if batched else b.reshape(result, x.meta.shape)


def spread(numbers: Sequence[int], count: int) -> list[int]:
    """Return a number for each dimension. Raises Unsupported."""
    if len(numbers) == 1:
        return list(numbers) * count
    if len(numbers) != count:
        raise Unsupported(f"{list(numbers)} for {count} dimensions")
    return list(numbers)


@translates("linear")
def linear(x: Context, b: Builder) -> Value:
    """Data times weights [results, length], plus a bias."""
    data, weight, bias = x.tensor("input"), x.tensor("weight"), x.optional("bias")
    if data.rank == 2 and weight.rank == 2:
        return b.op("Gemm", [data, weight, bias], x.meta.shape, transB=1)
    if weight.rank == 2 and data.rank > 2:
        product = b.op("MatMul", [data, b.transpose(weight, (1, 0))], x.meta.shape)
        return product if bias is None else b.binary("Add", product, bias)
    if weight.rank == 2:
        rows = b.reshape(data, (1, data.size))
        return b.reshape(b.op("Gemm", [rows, weight, bias], (1, weight.shape[0]), transB=1), x.meta.shape)
    product = b.op("MatMul", [data, weight], x.meta.shape)
    return product if bias is None else b.binary("Add", product, bias)


@translates("addmm", "baddbmm", "addmv")
def with_addend(x: Context, b: Builder) -> Value:
    """beta * self + alpha * product."""
    added = x.tensor("self")
    names = {"aten.addmm": ("mat1", "mat2"), "aten.addmv": ("mat", "vec"), "aten.baddbmm": ("batch1", "batch2")}
    one, other = (x.tensor(name) for name in names[x.call.operator])
    alpha, beta = float(x.number("alpha", 1)), float(x.number("beta", 1))
    if x.call.operator == "aten.addmm":
        return b.op("Gemm", [one, other, added], x.meta.shape, alpha=alpha, beta=beta)
    product = b.op("MatMul", [one, other], x.meta.shape)
    product = product if alpha == 1 else b.binary("Mul", product, alpha)
    return product if beta == 0 else b.binary("Add", added if beta == 1 else b.binary("Mul", added, beta), product)


@translates("mm", "bmm", "matmul", "mv", "dot", "__matmul__")
def matmul(x: Context, b: Builder) -> Value:
    """A product of matrices or vectors."""
    names = {"aten.mm": "mat2", "aten.bmm": "mat2", "aten.mv": "vec", "aten.dot": "tensor"}
    return b.op("MatMul", [x.tensor("self"), x.tensor(names.get(x.call.operator, "other"))], x.meta.shape)


@translates("outer", "ger")
def outer(x: Context, b: Builder) -> Value:
    """All products of two vectors."""
    one, other = x.tensor("self"), x.tensor("vec2")
    return b.binary("Mul", b.reshape(one, (one.size, 1)), b.reshape(other, (1, other.size)))


@translates("einsum")
def einsum(x: Context, b: Builder) -> Value:
    """A sum of products by letters."""
    equation = x.text("equation", "").replace(" ", "")
    return b.op("Einsum", x.tensors("tensors"), x.meta.shape, equation=equation)


@translates("embedding")
def embedding(x: Context, b: Builder) -> Value:
    """Rows of the weights."""
    return b.op("Gather", [x.tensor("weight"), x.tensor("indices")], x.meta.shape, axis=0)


@translates("bilinear")
def bilinear(x: Context, b: Builder) -> Value:
    """Sums of products of two inputs with weights [results, n, m]."""
    one, other, weight = x.tensor("input1"), x.tensor("input2"), x.tensor("weight")
    made = b.op("Einsum", [one, weight, other], x.meta.shape, equation="...i,oij,...j->...o")
    bias = x.optional("bias")
    return made if bias is None else b.binary("Add", made, bias)


@translates("_trilinear")
def trilinear(x: Context, b: Builder) -> Value:
    """The sum of products of three tensors with new dimensions: what bilinear is decomposed to."""
    made: Value | None = None
    for number in (1, 2, 3):
        part = x.tensor(f"i{number}")
        shape = list(part.shape)
        for axis in sorted(x.integers(f"expand{number}")):
            shape.insert(axis, 1)
        part = b.reshape(part, shape)
        made = part if made is None else b.binary("Mul", made, part)
    assert made is not None
    return b.op("ReduceSum", [made, b.ints(x.integers("sumdim"))], x.meta.shape, keepdims=0)


@translates("cosine_similarity")
def cosine(x: Context, b: Builder) -> Value:
    """A product of directions."""
    one, other = x.tensor("x1"), x.tensor("x2")
    shape = broadcast(one.shape, other.shape)
    axis = x.integer("dim", 1) % len(shape)
    least = float(x.number("eps", 1e-8))
    axes = b.ints([axis])

    def length(value: Value) -> Value:
        kept = [1 if i == axis else n for i, n in enumerate(value.shape)]
        norm = b.unary("Sqrt", b.op("ReduceSum", [b.binary("Mul", value, value), axes], kept, keepdims=1))
        return b.binary("Max", norm, least)

    parts = b.binary("Mul", b.binary("Div", one, length(one)), b.binary("Div", other, length(other)))
    return b.op("ReduceSum", [parts, axes], x.meta.shape, keepdims=0)

# SPDX-License-Identifier: Apache-2.0
"""Einsum as products of matrices, from left to right. Source: onnx/docs/Operators.md, Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Tensor
from opwest.importers.models.onnx.elements import settle_float
from opwest.importers.models.onnx.registry import translates
from opwest.importers.models.onnx.translation import Translation, identity
from opwest.importers.models.onnx.values import Op


@translates("Einsum")
def einsum(op: Op, t: Translation) -> None:
    """float32. A letter occurs once in each operand."""
    items = [op.input(number) for number in range(len(op.inputs))]
    terms, result = _terms(str(op.get("equation", "")), [item.rank for item in items])
    tensor, labels = t.tensor(items[0]), terms[0]
    for number, item in enumerate(items[1:], 1):
        wanted = result.union_of(terms[number + 1 :])
        tensor, labels = _product(t, (tensor, t.tensor(item)), (labels, terms[number]), wanted)
    tensor, labels = _summed(t, tensor, labels, set(result.labels))
    tensor = t.transpose(tensor, tuple(labels.index(one) for one in result.labels))
    end = t.end(op, False)
    settle_float(t, end, t.reshape(tensor, op.output.known), identity(op.output.rank))


class _Result:
    """The letters of the result."""

    def __init__(self, labels: str) -> None:
        self.labels = labels

    def union_of(self, others: Sequence[str]) -> set[str]:
        """Return the letters of the result and of operands that follow."""
        return set(self.labels).union(*others)


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], _Result]:
    """Return the letters of the operands and of the result; digits are the dimensions of an ellipsis."""
    left, arrow, right = "".join(equation.split()).partition("->")
    given = left.split(",")
    if len(given) != len(ranks):
        raise Unsupported(f"equation '{equation}' for {len(ranks)} operands")
    terms, most = [], 0
    for term, rank in zip(given, ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        if ("..." not in term and count) or count < 0 or count > 9:
            raise Unsupported(f"equation '{equation}': '{term}' for {rank} dimensions")
        most = max(most, count if "..." in term else 0)
        terms.append((term, count))
    ellipsis = "0123456789"[:most]
    found = [term.replace("...", ellipsis[most - count :] if count else "") for term, count in terms]
    every = "".join(found)
    if any(len(set(term)) != len(term) for term in found):
        raise Unsupported(f"equation '{equation}': a letter occurs twice in an operand", "different letters")
    if arrow:
        result = right.replace("...", ellipsis)
    else:
        result = ellipsis + "".join(sorted(one for one in set(every) - set(ellipsis) if every.count(one) == 1))
    if len(set(result)) != len(result) or not set(result) <= set(every):
        raise Unsupported(f"equation '{equation}'")
    return found, _Result(result)


def _summed(t: Translation, tensor: Tensor, labels: str, wanted: set[str]) -> tuple[Tensor, str]:
    """Return the sum over the dimensions that nothing else needs."""
    axes = [axis for axis, one in enumerate(labels) if one not in wanted]
    if not axes:
        return tensor, labels
    shape = tuple(n for axis, n in enumerate(tensor.shape) if axis not in axes)
    index = t.constant(np.asarray(axes, np.int32), "axes")
    return t.emit("SUM", [tensor, index], shape, keep_dims=False), "".join(one for one in labels if one in wanted)


def _product(
    t: Translation, tensors: tuple[Tensor, Tensor], terms: tuple[str, str], wanted: set[str]
) -> tuple[Tensor, str]:
    """Return the product of two operands: dimensions of both are a batch, or summed if nothing else needs them."""
    one, first = _summed(t, tensors[0], terms[0], wanted | set(terms[1]))
    other, second = _summed(t, tensors[1], terms[1], wanted | set(terms[0]))
    sizes = dict(zip(first, one.shape, strict=True))
    for label, n in zip(second, other.shape, strict=True):
        sizes[label] = max(n, sizes.get(label, n))
    one, other = _spread(t, one, first, sizes, second), _spread(t, other, second, sizes, first)
    batch = "".join(label for label in first if label in second and label in wanted)
    inner = "".join(label for label in first if label in second and label not in wanted)
    rows = "".join(label for label in first if label not in second)
    columns = "".join(label for label in second if label not in first)

    def size(labels: str) -> int:
        return prod(sizes[label] for label in labels)

    one = t.transpose(one, tuple(first.index(label) for label in batch + rows + inner))
    other = t.transpose(other, tuple(second.index(label) for label in batch + columns + inner))
    one = t.reshape(one, (size(batch), size(rows), size(inner)))
    other = t.reshape(other, (size(batch), size(columns), size(inner)))
    shape = (size(batch), size(rows), size(columns))
    found = t.emit("BATCH_MATMUL", [one, other], shape, adj_x=False, adj_y=True)
    labels = batch + rows + columns
    return t.reshape(found, tuple(sizes[label] for label in labels)), labels


def _spread(t: Translation, tensor: Tensor, labels: str, sizes: dict[str, int], others: str) -> Tensor:
    """Return a tensor whose dimensions of one element are repeated if the other operand has more of them."""
    shape = tuple(sizes[label] if label in others else n for label, n in zip(labels, tensor.shape, strict=True))
    if shape == tensor.shape:
        return tensor
    if any(n not in (1, wanted) for n, wanted in zip(tensor.shape, shape, strict=True)):
        raise Unsupported(f"operands of shape {list(tensor.shape)} and {list(shape)}")
    return t.emit("BROADCAST_TO", [tensor, t.constant(np.asarray(shape, np.int32), "shape")], shape)

# SPDX-License-Identifier: Apache-2.0
"""Matrix products of two tensors. Sources in TFLite: kernels/batch_matmul.cc, internal/reference/batch_matmul.h."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.spec import Operator, Result, broadcast, specify
from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import one_quantization
from opwest.importers.models.operators.hybrid import check_hybrid, is_hybrid


def _product(node: Node) -> Sequence[Result]:
    one, other = node.input(0), node.input(1)
    shapes = f"{list(one.shape)} and {list(other.shape)}"
    if not (2 <= len(one.shape) <= 5 and 2 <= len(other.shape) <= 5):
        raise Unsupported(f"matrices {shapes}", "2 to 5 dimensions")
    rows, depth = one.shape[-2:][::-1] if node.options["adj_x"] else one.shape[-2:]
    inner, columns = other.shape[-2:][::-1] if node.options["adj_y"] else other.shape[-2:]
    if depth != inner:
        raise Unsupported(f"matrices {shapes} with {depth} columns and {inner} rows")
    has_sums = has_plain_sums(node)
    if one.dtype != "float32" and not has_sums:
        for tensor in (one, other, node.output):
            one_quantization(tensor)
    if is_hybrid(node):
        check_hybrid(node)
    check_depth(one.dtype, other.dtype, depth)
    return [("int32" if has_sums else one.dtype, (*broadcast((one.shape[:-2], other.shape[:-2])), rows, columns))]


def has_plain_sums(node: Node) -> bool:
    """Whether an int8 product has int32 results: sums of products without zero points. Source: EvalInt8Int32."""
    return node.input(0).dtype == node.input(1).dtype == "int8" and node.output.dtype == "int32"


def check_depth(one: str, other: str, depth: int) -> None:
    """Raise Unsupported if sums of products of elements that are computed do not fit in 32 bits."""
    if one in ("int8", "uint8") and other in ("int8", "uint8") and depth >= (1 << 31) // 255**2:
        raise Unsupported(f"sums of {depth} products", f"at most {(1 << 31) // 255**2 - 1}")


specify(
    Operator(
        "BATCH_MATMUL",
        _product,
        ("float32 float32", "float32 int8", "int8 int8", "int16 int16", "int16 int8"),
        {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False},
    )
)

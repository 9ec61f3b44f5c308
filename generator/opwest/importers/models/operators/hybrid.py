# SPDX-License-Identifier: Apache-2.0
"""Layers with float32 data and int8 weights (dynamic range): the data are quantised when the model runs.

Sources in TFLite: kernels/conv.cc, depthwise_conv.cc, fully_connected.cc (EvalHybrid, EvalHybridPerChannel),
transpose_conv.cc, batch_matmul.cc (EvalHybrid), internal/reference/portable_tensor_utils.cc
(PortableSymmetricQuantizeFloats, PortableAsymmetricQuantizeFloats).

With several dimensions of batches above 1, LiteRT's BATCH_MATMUL takes the scales and zero points of other rows
(internal/reference/batch_matmul.h, ioff_ext0). The rule here is the same for all numbers of dimensions.
"""

from __future__ import annotations

from opwest.importers.models.graph.faults import Unsupported
from opwest.importers.models.graph.types import Node, Tensor

KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL")


def data_of(node: Node) -> Tensor:
    """Return the input with the data."""
    return node.input(2 if node.kind == "TRANSPOSE_CONV" else 0)


def bias_of(node: Node) -> Tensor | None:
    """Return the input with the bias."""
    return node.optional(3 if node.kind == "TRANSPOSE_CONV" else 2)


def is_hybrid(node: Node) -> bool:
    """Whether a node has float32 data and int8 weights."""
    return node.kind in KINDS and data_of(node).dtype == "float32" and node.input(1).dtype == "int8"


def check_hybrid(node: Node) -> None:
    """Raise Unsupported if the weights are not symmetric constants."""
    weights = node.input(1)
    hint = "convert the model with float or with fully quantised tensors"
    if not weights.is_constant:
        raise Unsupported("int8 weights that are computed when the model runs, with float32 data", "constants", hint)
    if weights.quantization is None:
        raise Unsupported(f"'{weights.name}' is int8 without a scale", "a quantised tensor")
    if any(weights.quantization.zeros):
        raise Unsupported(
            f"int8 weights '{weights.name}' with a zero point, with float32 data", "the zero point 0", hint
        )
    bias = bias_of(node)
    if bias is not None and not bias.is_constant:
        raise Unsupported("a bias that is computed when the model runs, with int8 weights", "a constant", hint)
    if is_batched(node) and len(weights.quantization.scales) != 1:
        raise Unsupported("a batch of int8 matrices with several scales, with float32 data", "one scale", hint)


def is_batched(node: Node) -> bool:
    """Whether the weights of BATCH_MATMUL are several matrices."""
    return node.kind == "BATCH_MATMUL" and any(n != 1 for n in node.input(1).shape[:-2])


def has_faulty_reference(node: Node) -> bool:
    """Whether LiteRT's result is wrong: BATCH_MATMUL with several dimensions of batches above 1."""
    if node.kind != "BATCH_MATMUL" or not is_hybrid(node):
        return False
    return any(sum(n > 1 for n in node.input(i).shape[:-2]) > 1 for i in (0, 1))


def is_asymmetric(node: Node) -> bool:
    """Whether the data are quantised with a zero point: convolutions with one scale are not, or by an option."""
    if node.kind in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        return bool(node.options["asymmetric_quantize_inputs"])
    scales = node.input(1).quantization
    assert scales is not None
    is_grouped = node.kind == "CONV_2D" and node.input(0).shape[3] != node.input(1).shape[3]
    return node.kind in ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV") or is_grouped or len(set(scales.scales)) > 1


def scales_of(node: Node, results: int) -> tuple[float, ...]:
    """Return the scale of each result."""
    found = node.input(1).quantization
    assert found is not None
    if len(found.scales) == 1:
        return found.scales * results
    if len(found.scales) != results:
        raise Unsupported(f"{len(found.scales)} scales for {results} results")
    return found.scales

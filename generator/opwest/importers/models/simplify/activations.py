# SPDX-License-Identifier: Apache-2.0
"""Activations that the producer of their input can apply."""

from __future__ import annotations

from opwest.importers.models.graph.types import Node
from opwest.importers.models.operators.fixed_point import limits_of
from opwest.importers.models.simplify.net import Net, with_options

ACTIVATIONS = ("RELU", "RELU6", "RELU_N1_TO_1")
PRODUCERS = frozenset(
    ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D")
)
"""Operators that clamp their results last."""


def absorb_activation(node: Node, net: Net) -> None:
    """Let the producer clamp, if its result is read here only and has the scale and zero point of this one.

    The activation is then a clamp to stored values, at the same limits. Source: kernels/activations.cc, QuantizedReluX.
    """
    if node.kind not in ACTIVATIONS:
        return
    data, result = node.input(0), node.output
    producer = net.producer(data)
    if producer is None or producer.kind not in PRODUCERS or net.only_user(data) is not node:
        return
    if data.dtype != result.dtype or data.quantization != result.quantization:
        return
    both = _both(producer.options["fused_activation_function"], node.kind)
    if both is not None:
        net.remove(node)
        options = with_options(producer, fused_activation_function=both)
        net.replace(producer, outputs=(result,), options=options)


def _both(first: str, second: str) -> str | None:
    """Return the activation that equals two in sequence; None if there is none."""
    low, high = zip(*(limits_of(one) for one in (first, second)), strict=True)
    lows, highs = [v for v in low if v is not None], [v for v in high if v is not None]
    wanted = (max(lows) if lows else None, min(highs) if highs else None)
    return next((one for one in ("NONE", *ACTIVATIONS) if limits_of(one) == wanted), None)

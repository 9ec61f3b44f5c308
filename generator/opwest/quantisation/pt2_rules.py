# SPDX-License-Identifier: Apache-2.0
"""Which operators of PyTorch are quantised, and where the scales of their results come from: one row for each.

The rows agree with rules.py; names are those of ATen. Every other operator stays float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from opwest.base.frozen_dataclass import dataclass


@dataclass(frozen=True)
class AtenRule:
    """What an operator requires of its quantised form."""

    scales: Literal["own", "equal", "fixed"]
    """own: the result has the scale of its range; equal: that of the data; fixed: that of the operator."""
    is_layer: bool = True
    """False: the operator moves elements, and is quantised where its data are."""
    fixed: tuple[float, int] | None = None
    weight_axis: int | None = None
    """The dimension of the weights, the second argument, that counts the channels."""
    is_activation: bool = False
    """Whether a layer before it, with no other reader, computes it: its result alone is quantised."""


_LAYERS = ("conv1d.default", "conv2d.default", "conv2d.padding", "linear.default")
_OWN = (
    "add.Tensor",
    "add_.Tensor",
    "sub.Tensor",
    "mul.Tensor",
    "mul_.Tensor",
    "mean.dim",
    "adaptive_avg_pool2d.default",
)
_ACTIVATIONS = (
    "relu.default",
    "relu_.default",
    "relu6.default",
    "relu6_.default",
    "hardtanh.default",
    "hardtanh_.default",
)
_CURVES = ("leaky_relu.default", "leaky_relu_.default", "hardswish.default", "hardswish_.default", "elu.default")
_EQUAL = ("max_pool2d.default", "avg_pool2d.default", "cat.default", "upsample_nearest2d.vec", "amax.default")
_MOVES = (
    *("view.default", "reshape.default", "flatten.using_ints", "permute.default", "transpose.int", "squeeze.dim"),
    *("squeeze.dims", "squeeze.default", "unsqueeze.default", "slice.Tensor", "select.int", "clone.default"),
    *("dropout.default", "contiguous.default", "unflatten.int"),
)
ATEN: Mapping[str, AtenRule] = {
    f"aten.{name}": rule
    for names, rule in (
        (_LAYERS, AtenRule("own", weight_axis=0)),
        (("conv_transpose2d.input",), AtenRule("own", weight_axis=1)),
        (_OWN, AtenRule("own")),
        (_ACTIVATIONS, AtenRule("own", is_activation=True)),
        (_CURVES, AtenRule("own")),
        (
            ("sigmoid.default", "sigmoid_.default", "softmax.int", "_softmax.default"),
            AtenRule("fixed", fixed=(1 / 256, -128)),
        ),
        (("tanh.default", "tanh_.default"), AtenRule("fixed", fixed=(1 / 128, 0))),
        (_EQUAL, AtenRule("equal")),
        (_MOVES, AtenRule("equal", is_layer=False)),
    )
    for name in names
}
"""By the name of the operator and its overload."""
MERGED = frozenset(f"aten.{name}" for name in (*_LAYERS, "conv_transpose2d.input", "add.Tensor", "add_.Tensor"))
"""The operators that compute an activation after them."""

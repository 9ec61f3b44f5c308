# SPDX-License-Identifier: Apache-2.0
"""Quantisers of torchao's PT2E: one that annotates nodes with given scales, one that keeps the module it is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from opwest.compiler.graph.types import Quantization
from opwest.quantisation.pt2_graph import data_of, rule_of


def annotator(scales: Mapping[str, Quantization], quantised: Collection[str]) -> Any:
    """Return a quantiser; the scales of values and the quantised nodes are known by name."""
    import torch
    from torchao.quantization.pt2e import PerChannelMinMaxObserver
    from torchao.quantization.pt2e.quantizer import (
        FixedQParamsQuantizationSpec,
        QuantizationAnnotation,
        QuantizationSpec,
        Quantizer,
    )

    def spec_of(name: str) -> Any:
        scale = scales[name]
        return FixedQParamsQuantizationSpec(torch.int8, scale.scale, scale.zero, -128, 127, torch.per_tensor_affine)

    def weights_spec(axis: int) -> Any:
        observer = PerChannelMinMaxObserver.with_args(eps=2**-40)
        return QuantizationSpec(torch.int8, observer, -127, 127, torch.per_channel_symmetric, axis)

    class Annotator(Quantizer):  # type: ignore[misc]
        """Annotates each quantised node."""

        def annotate(self, model: Any) -> Any:
            """Set the annotations of a module."""
            for node in model.graph.nodes:
                rule = rule_of(node) if node.name in quantised else None
                if rule is None:
                    continue
                inputs = {one: spec_of(one.name) for one in data_of(node) if one.name in scales}
                if rule.weight_axis is not None:
                    inputs[node.args[1]] = weights_spec(rule.weight_axis)
                output = spec_of(node.name) if node.name in scales else None
                node.meta["quantization_annotation"] = QuantizationAnnotation(inputs, output, _annotated=True)
            return model

        def validate(self, model: Any) -> None:
            """Accept the module."""

    return Annotator()


def capture() -> Any:
    """Return a quantiser that annotates nothing; its `module` is what it was asked to annotate."""
    from torchao.quantization.pt2e.quantizer import Quantizer

    class Capture(Quantizer):  # type: ignore[misc]
        """Keeps the module."""

        module: Any = None

        def annotate(self, model: Any) -> Any:
            """Keep a module."""
            self.module = model
            return model

        def validate(self, model: Any) -> None:
            """Accept the module."""

    return Capture()

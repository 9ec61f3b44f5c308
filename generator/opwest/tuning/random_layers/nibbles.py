# SPDX-License-Identifier: Apache-2.0
"""Random layers with weights of 4 bits."""

from __future__ import annotations

import dataclasses
from typing import Any

from opwest.compiler.ir.program import Program
from opwest.tuning.random_layers.layers import convolution, dense
from opwest.tuning.random_layers.numbers import KINDS, Random, bias_of, makes, program, requantisation


@makes("int8")
def nibbles(random: Random, dtype: str = "int8", **keys: Any) -> Program:
    """A fully connected layer, or a convolution, with weights from -8 to 7."""
    made = dense(random, dtype=dtype, **keys) if keys or random.random() < 0.7 else convolution(random, dtype=dtype)
    layer: Any = made.operations[0]
    weights = layer.weights >> 4
    kind = str(keys.get("kind") or random.choice(KINDS))
    finish = requantisation(random, weights, kind, layer.finish.rounding, dtype)
    bias = bias_of(random, len(weights))
    return program(dataclasses.replace(layer, weights=weights, bias=bias, finish=finish))

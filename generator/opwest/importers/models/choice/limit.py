# SPDX-License-Identifier: Apache-2.0
"""The limit of flash of the variants of a model, if the import has no `--max-flash`."""

from __future__ import annotations

from opwest.importers.models.choice.choose import constant_bytes
from opwest.importers.models.choice.geometry import kind_of
from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.ir.operations import Convolution, Depthwise
from opwest.importers.models.ir.program import Program

ROOM = 36 << 10
"""The bytes for the code of operators and for packed constants.

An interpreter with its kernels needs as much: images of tflite-micro with CMSIS-NN have 74 to 77 kB of flash besides
the file of the model, images of opwest 37 kB besides the operators (mps2/an385, newlib).
"""
CONVOLUTION_ROOM = 40 << 10
"""The additional bytes for models with convolutions; these images of tflite-micro have 115 to 121 kB."""


def default_limit(program: Program) -> int:
    """Return the bytes of constants and code that the variants of a program may have."""
    is_convolutional = any(
        isinstance(one, Depthwise) or (isinstance(one, Convolution) and kind_of(one) == "convolution")
        for one in program.operations
    )
    constants = sum(constant_bytes(candidates(one, "")["portable"]) for one in program.operations)
    return constants + ROOM + (CONVOLUTION_ROOM if is_convolutional else 0)

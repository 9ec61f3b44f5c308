# SPDX-License-Identifier: Apache-2.0
"""The request for an import of Vela's output."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.frozen_dataclass import dataclass

SRAM_ONLY = "Sram_Only"
"""Vela's memory mode without a second memory."""
KERNELS = ("auto", "portable")
ARENA, FAST, WEIGHTS = "arena", "fast", "weights"
POOLS = (ARENA, FAST, WEIGHTS)
"""The pools of the NPU in the manifest: the shared arena, the fast scratch memory, the weights."""


@dataclass(frozen=True)
class Options:
    """The request for an import."""

    model: str | None = None
    """The model's name; None: the file's, without `_vela`."""
    kernels: str = KERNELS[0]
    """The variants of the operators that Vela left on the processor."""
    pools: Sequence[str] = ()
    """Memory regions of pools: NAME=BOARD:NODELABEL, NAME one of POOLS."""
    boards: Sequence[str] = ()
    """The boards of the manifest."""
    npu: str | None = None
    """The configuration to compile for; None: the file is Vela's output."""
    npu_config: str | None = None
    """Vela's --config: a file."""
    system_config: str | None = None
    memory_mode: str | None = None
    """Of Vela, when it runs here, and for the weights: in Sram_Only they are copied to the arena's memory."""
    array: str | None = None
    """The array of a C source that is the model."""

# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the DSP extension (Cortex-M4, M7, M33)."""

from opwest.importers.models.emit.kernels.dsp import convolution, dense, depthwise, elements, pool, wide, wide_dense

__all__ = ["convolution", "dense", "depthwise", "elements", "pool", "wide", "wide_dense"]

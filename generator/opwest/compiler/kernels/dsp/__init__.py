# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the DSP extension (Cortex-M4, M7, M33)."""

from opwest.compiler.kernels.dsp import convolution, dense, depthwise, elements

__all__ = ["convolution", "dense", "depthwise", "elements"]

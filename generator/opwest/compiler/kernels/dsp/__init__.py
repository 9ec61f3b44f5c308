# SPDX-License-Identifier: Apache-2.0
"""Variants for processors with the DSP extension (Cortex-M4, M7, M33).

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: registers of the FPU.
"""

from opwest.compiler.kernels.dsp import convolution, curves, dense, depthwise, elements, filters, lstm, lstm_hybrid

__all__ = ["convolution", "curves", "dense", "depthwise", "elements", "filters", "lstm", "lstm_hybrid"]

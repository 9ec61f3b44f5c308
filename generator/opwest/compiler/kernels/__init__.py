# SPDX-License-Identifier: Apache-2.0
"""Variants for classes of processors: their instructions, weights packed in the order of use, calls of CMSIS-NN.

Enters: an operation with folded numbers. Leaves: its call, or None where a variant does not apply. Never: a choice
between variants, the format of a model.
"""

from opwest.compiler.kernels import cmsis_nn, dsp, lanes, lookups, mla, mve, rvv

__all__ = [
    "cmsis_nn",
    "dsp",
    "lanes",
    "lookups",
    "mla",
    "mve",
    "rvv",
]

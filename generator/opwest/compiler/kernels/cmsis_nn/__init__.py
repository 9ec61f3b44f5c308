# SPDX-License-Identifier: Apache-2.0
"""The variants that call CMSIS-NN.

Enters: an operation with folded numbers. Leaves: its call, or None where the variant does not apply.
Never: results other than those of the portable variant.
"""

from opwest.compiler.kernels.cmsis_nn import layers

__all__ = ["layers"]

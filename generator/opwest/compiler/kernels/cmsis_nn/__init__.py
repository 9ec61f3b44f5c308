# SPDX-License-Identifier: Apache-2.0
"""The variants that call CMSIS-NN: layers and elements with results that equal those of the portable variants."""

from opwest.compiler.kernels.cmsis_nn import layers

__all__ = ["layers"]

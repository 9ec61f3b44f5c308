# SPDX-License-Identifier: Apache-2.0
"""The variants that call CMSIS-NN: layers and elements with results that equal those of the portable variants."""

from opwest.importers.models.emit.cmsis_nn import elements, layers, pools

__all__ = ["elements", "layers", "pools"]

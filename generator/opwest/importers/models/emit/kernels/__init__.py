# SPDX-License-Identifier: Apache-2.0
"""Variants for classes of processors: layers with their instructions, and weights packed in the order of their use."""

from opwest.importers.models.emit.kernels import dsp, mla, mve

__all__ = ["dsp", "mla", "mve"]

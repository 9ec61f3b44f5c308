# SPDX-License-Identifier: Apache-2.0
"""The elements that regions of strided copies read and write, as arrays of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.ir.movement import Region


def places_of(region: Region) -> tuple[Any, Any]:
    """Return the indices of the elements in the source, and of those in the result, in the order of the copies."""
    source, place = np.full(1, region.start, np.int64), np.full(1, region.place, np.int64)
    for axis in region.axes:
        counts = np.arange(axis.count, dtype=np.int64)
        offsets = np.asarray(axis.source, np.int64) if isinstance(axis.source, tuple) else counts * axis.source
        if region.source is not None:
            source = (source[:, None] + offsets).reshape(-1)
        place = (place[:, None] + counts * axis.result).reshape(-1)
    return source, place

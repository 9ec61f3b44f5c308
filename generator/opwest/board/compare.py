# SPDX-License-Identifier: Apache-2.0
"""How far an output is from a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


@dataclass(frozen=True)
class Difference:
    """The difference of two arrays of one shape."""

    elements: int
    differing: int
    largest: float
    mean: float
    at: tuple[int, ...] | None
    """Where it is largest."""

    def as_text(self) -> str:
        """Return it in a few words."""
        if not self.differing:
            return "equal to the reference"
        where = f" at {list(self.at)}" if self.at else ""
        return (
            f"{self.differing} of {self.elements} elements differ from the reference: largest error "
            f"{self.largest:.6g}{where}, mean {self.mean:.6g}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "elements": self.elements,
            "differing": self.differing,
            "largest_error": self.largest,
            "mean_error": self.mean,
            "at": list(self.at) if self.at else None,
        }


def difference(actual: Array, reference: Array) -> Difference:
    """Compare two arrays of one shape; NaN equals NaN, and is infinitely far from any number."""
    import numpy as np

    if actual.size == 0:
        return Difference(0, 0, 0.0, 0.0, None)
    wide = all(array.dtype.kind in "iu" and array.dtype.itemsize == 8 for array in (actual, reference))
    # Integers of 64 bits do not fit a double.
    kind: Any = object if wide else np.float64
    one, other = actual.astype(kind), reference.astype(kind)
    with np.errstate(all="ignore"):
        errors = np.abs(one - other).astype(np.float64)
    same = one == other
    if not wide:
        same |= np.isnan(one) & np.isnan(other)
        errors[np.isnan(errors)] = np.inf
    errors[same.astype(bool)] = 0.0
    worst = int(np.argmax(errors))
    at = tuple(int(i) for i in np.unravel_index(worst, errors.shape)) if errors[same == False].size else None  # noqa: E712
    return Difference(
        actual.size, int(np.count_nonzero(~same.astype(bool))), float(errors.max()), float(errors.mean()), at
    )

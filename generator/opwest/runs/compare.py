# SPDX-License-Identifier: Apache-2.0
"""The difference between an output and its reference, and the tolerances of the user and of the manifest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements as Array


@dataclass(frozen=True)
class Tolerance:
    """The largest error that is accepted: `absolute` + `relative` * |reference|, as in the manifest's tests."""

    absolute: float = 0.0
    relative: float = 0.0

    def as_text(self) -> str:
        """Return the tolerance in words."""
        return f"{self.absolute:g}" + (f" + {self.relative:g} * |reference|" if self.relative else "")


EXACT: Final = Tolerance()


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of tensors by name, and that of all others."""

    named: Mapping[str, Tolerance]
    others: Tolerance | None = None
    """That of the user for all tensors, in place of the manifest's."""
    manifest: Mapping[str, Tolerance] | None = None

    def of(self, name: str) -> Tolerance:
        """Return the tolerance of a tensor: the user's, else the manifest's, else none."""
        if name in self.named:
            return self.named[name]
        return self.others or (self.manifest or {}).get(name, EXACT)


def read_tolerances(
    given: Mapping[str | None, Tolerance],
    model: Mapping[str, Any] | None,
    compared: Collection[str],
    faults: Diagnostics,
) -> Tolerances:
    """Return the given tolerances (None: of all other tensors) and those of a model's record.

    `compared` are the tensors with a reference. Reports tolerances without effect.
    """
    named: dict[str, Tolerance] = {}
    for name, tolerance in given.items():
        if name is not None and name not in compared:
            hint = nearest(name, compared)
            faults.error(f"--tolerance has no effect: {name!r} has no reference", hint=hint)
        elif name is not None:
            named[name] = tolerance
    others = given.get(None)
    if others is not None and compared and named.keys() >= set(compared):
        faults.error("--tolerance for all tensors has no effect: each tensor has its own")
    if given and not compared and not faults.has_errors:
        faults.error("--tolerance has no effect: no tensor has a reference")
    rows = (model or {}).get("tolerances", ())
    return Tolerances(named, others, {r["output"]: Tolerance(r["absolute"], r["relative"]) for r in rows})


@dataclass(frozen=True)
class Difference:
    """The difference between two arrays of the same shape."""

    elements: int
    differing: int
    largest: float
    mean: float
    at: tuple[int, ...] | None
    """Index of the largest error; None if the arrays are equal."""
    beyond: int = 0
    """The number of elements whose error exceeds the tolerance."""
    tolerance: Tolerance = EXACT

    def as_text(self) -> str:
        """Return one line of text."""
        if not self.differing:
            return "equal to the reference"
        where = f" at {list(self.at)}" if self.at else ""
        text = (
            f"{self.differing} of {counted(self.elements, 'element')} differ from the reference: largest error "
            f"{self.largest:.6g}{where}, mean {self.mean:.6g}"
        )
        if self.tolerance == EXACT:
            return text
        within = "all within" if not self.beyond else f"{self.beyond} beyond"
        return f"{text}; {within} the tolerance {self.tolerance.as_text()}"

    def as_json(self) -> dict[str, Any]:
        """Return the value for JSON output."""
        return {
            "elements": self.elements,
            "differing": self.differing,
            "largest_error": self.largest,
            "mean_error": self.mean,
            "at": list(self.at) if self.at else None,
            "beyond_tolerance": self.beyond,
            "tolerance": {"absolute": self.tolerance.absolute, "relative": self.tolerance.relative},
        }


def difference(actual: Array, reference: Array, tolerance: Tolerance = EXACT) -> Difference:
    """Compare two arrays of the same shape. NaN equals NaN; the error of NaN against a number is infinite.

    An infinite error exceeds every tolerance.
    """
    import numpy as np

    if actual.size == 0:
        return Difference(0, 0, 0.0, 0.0, None, tolerance=tolerance)
    # A double cannot represent all 64-bit integers.
    whole = all(array.dtype.kind in "biu" for array in (actual, reference))
    kind: Any = object if whole and 8 in (actual.dtype.itemsize, reference.dtype.itemsize) else np.float64
    left, right = actual.astype(kind).reshape(-1), reference.astype(kind).reshape(-1)
    with np.errstate(all="ignore"):
        errors = np.abs(left - right).astype(np.float64)
        most = tolerance.absolute + tolerance.relative * np.abs(right).astype(np.float64)
    differ = np.asarray(left != right, bool)
    if kind is not object:
        differ &= ~(np.isnan(left) & np.isnan(right))
        errors[np.isnan(errors)] = np.inf
    errors[~differ] = 0.0
    worst = int(np.argmax(errors))
    at = tuple(int(i) for i in np.unravel_index(worst, actual.shape)) if differ.any() else None
    beyond = differ & ~((errors <= most) & np.isfinite(errors))
    return Difference(
        actual.size,
        int(np.count_nonzero(differ)),
        float(errors.max()),
        float(errors.mean()),
        at,
        int(np.count_nonzero(beyond)),
        tolerance,
    )


def differences(
    actual: Mapping[str, Array], references: Mapping[str, Array], tolerances: Tolerances
) -> dict[str, Difference]:
    """Return the difference of every tensor with a reference, by name."""
    return {name: difference(actual[name], reference, tolerances.of(name)) for name, reference in references.items()}

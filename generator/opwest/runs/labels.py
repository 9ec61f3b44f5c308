# SPDX-License-Identifier: Apache-2.0
"""The classes of an output, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics
from opwest.manifest.arrays import ArrayError, load_numpy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


def label_lines(array: Array, labels: Sequence[str], *, frames: bool) -> list[str]:
    """Return one line with the class; for the frames of a stream one line per group of equal classes.

    Integers are numbers of classes unless the last dimension has one element per label: then the highest score selects
    the class.
    """
    if not labels:
        return []
    rows = array.reshape(len(array), -1) if frames else array.reshape(1, -1)
    width = array.shape[-1] if array.ndim > int(frames) else 1
    found = [_words(row, labels, scores=width == len(labels)) for row in rows]
    if not frames:
        return [f"  {found[0]}"]
    lines = []
    start = 0
    for index in range(1, len(found) + 1):
        if index == len(found) or found[index] != found[start]:
            which = f"frame {start}" if index - start == 1 else f"frames {start} to {index - 1}"
            lines.append(f"  {which}: {found[start]}")
            start = index
    return lines


def _words(row: Array, labels: Sequence[str], *, scores: bool) -> str:
    numbers = row.reshape(-1, len(labels)).argmax(axis=1) if scores else row
    return ", ".join(
        labels[int(number)] if 0 <= int(number) < len(labels) else f"no label {int(number)}"
        for number in numbers.tolist()
    )


def read_labels(
    given: Path | None, output: str | None, outputs: Sequence[Mapping[str, Any]], count: int, faults: Diagnostics
) -> tuple[str, Array] | None:
    """Return the output with the classes, and the class number of each case; report unusable files.

    The output is `output`, or the only one. Without `given` the result is None.
    """
    if given is None:
        return None
    names = [tensor["name"] for tensor in outputs]
    if output is None and len(names) != 1:
        faults.error(f"the model has {len(names)} outputs", expected=f"--labels NAME={given}")
        return None
    name = names[0] if output is None else output
    if name not in names:
        faults.error(f"unknown output {name!r}", expected=f"one of: {', '.join(names)}")
        return None
    try:
        array = load_numpy(given, None)
    except OSError as error:
        faults.error(f"cannot read '{given}': {error.strerror}", hint=path_suggestions.hint_for(given))
        return None
    except ArrayError as error:
        faults.error(error.message, hint=error.hint)
        return None
    expected = f"{count} integers, the class of each case"
    if isinstance(array, dict) or array.dtype.kind not in "iu" or array.size != count:
        seen = "an .npz file" if isinstance(array, dict) else f"{array.dtype.name} {list(array.shape)}"
        faults.error(f"labels: '{given}' is {seen}", expected=expected)
        return None
    return name, array.reshape(-1)


def classes_of(array: Array) -> Array:
    """Return the class of each case: [cases, ...] scores, of which the greatest counts, or one class number each."""
    rows = array.reshape(len(array), -1)
    if rows.shape[1] == 1 and array.dtype.kind in "iu":
        return rows[:, 0]
    found: Array = rows.argmax(axis=1)
    return found


def accuracy_line(name: str, found: Array, labels: Array) -> tuple[str, dict[str, Any]]:
    """Return the line to print, and its content as JSON values."""
    right = int((found == labels).sum())
    share = right / len(labels)
    line = f"accuracy of {name}: {share:.2%} ({right} of {len(labels)})"
    return line, {"output": name, "correct": right, "cases": len(labels), "accuracy": share}

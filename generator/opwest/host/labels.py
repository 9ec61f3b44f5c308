# SPDX-License-Identifier: Apache-2.0
"""The classes of an output, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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

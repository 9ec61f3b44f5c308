# SPDX-License-Identifier: Apache-2.0
"""The classes of outputs, by name."""

from __future__ import annotations

import numpy as np
from opwest.host.labels import label_lines

LABELS = ("silence", "yes", "no")


def test_class_numbers_and_scores() -> None:
    assert label_lines(np.array([2], np.int32), LABELS, frames=False) == ["  no"]
    assert label_lines(np.array(2, np.int32), LABELS, frames=False) == ["  no"]
    assert label_lines(np.array([[-3, 90, 1]], np.int8), LABELS, frames=False) == ["  yes"]
    assert label_lines(np.array([1, 2], np.int32), LABELS, frames=False) == ["  yes, no"]
    assert label_lines(np.array([3], np.int32), LABELS, frames=False) == ["  no label 3"]
    assert label_lines(np.array([3], np.int32), (), frames=False) == []


def test_equal_classes_of_a_stream_are_one_line() -> None:
    scores = np.zeros([6, 1, 3], np.float32)
    for frame, label in enumerate([0, 0, 1, 1, 1, 0]):
        scores[frame, 0, label] = 1
    expected = ["  frames 0 to 1: silence", "  frames 2 to 4: yes", "  frame 5: silence"]
    assert label_lines(scores, LABELS, frames=True) == expected
    assert label_lines(scores.argmax(axis=2).astype(np.int32), LABELS, frames=True) == expected
    assert label_lines(np.array([1], np.int32), LABELS, frames=True) == ["  frame 0: yes"]

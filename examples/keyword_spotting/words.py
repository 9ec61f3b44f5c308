# SPDX-License-Identifier: Apache-2.0
"""Print the words in the outputs of a stream: python examples/keyword_spotting/words.py outputs/output.npy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "silence", "unknown")
"""The model's classes, in the order of its outputs (get_dataset.py)."""
SURE = 0
"""A score of 50 %: the outputs have the scale 1/256 and the zero point -128."""


def lines(scores: Any) -> Iterator[str]:
    """Return a line for each change of the recognized word; `scores` is int8, [runs, 1, 12]. As application/main.c."""
    previous = None
    for run, row in enumerate(scores.reshape(len(scores), -1)):
        word = int(row.argmax())
        if row[word] >= SURE and word != previous:
            previous = word
            yield f"{(run + 1) // 10}.{(run + 1) % 10} s: {WORDS[word]}"


def main() -> int:
    """Print the words of a file."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print(f"usage: {sys.argv[0]} OUTPUT.npy", file=sys.stderr)
        return 2
    scores = np.load(sys.argv[1])
    if scores.dtype != np.int8 or scores.size != len(scores) * len(WORDS):
        print(f"error: {sys.argv[1]}: {scores.dtype} {list(scores.shape)}, expected int8 [runs, 12]", file=sys.stderr)
        return 1
    print("\n".join(lines(scores)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

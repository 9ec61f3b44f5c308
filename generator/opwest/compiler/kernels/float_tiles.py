# SPDX-License-Identifier: Apache-2.0
"""Tiles of float32 layers: sums of some pixels by some channels, and their C for processors without an FPU.

A tile is void f(x, stream, y, numbers, channels). The stream has for each block of channels: the first sums, the weights
[k][channel], and what is added to the sums at the end. `numbers` are NUMBERS. Offsets between pixels are in bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Lines
from opwest.compiler.ir.operations import Clamp

NUMBERS = ("rows", "runs", "quads", "rest", "after_run", "after_row", "pixel", "result", "low", "high")
"""The int32 numbers of a tile: the rows of a window, the runs of a row; the elements of a run as 4 times `quads` plus
`rest`; the bytes from the end of a run to the next one, and more after a row; the bytes between pixels of the data and
of the result; the limits, as float32."""
PARAMETERS = ("const float *x", "const float *stream", "float *y", "const int32_t *numbers", "int32_t channels")
QUAD = 4
"""The products of a turn of the inner loop."""


@dataclass(frozen=True)
class Tile(ABC):
    """A function for `rows` pixels by blocks of `channels`."""

    rows: int
    channels: int

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the function."""

    @abstractmethod
    def definition(self) -> str:
        """Return the C text of the function."""


@dataclass(frozen=True)
class Runs:
    """The elements of a window: `rows` times `runs` runs of `length` elements; distances are in bytes."""

    rows: int
    runs: int
    length: int
    after_run: int = 0
    after_row: int = 0

    def numbers(self, pixel: int, result: int, finish: Clamp) -> Any:
        """Return the numbers of a tile."""
        length = divmod(self.length, QUAD)
        numbers = [self.rows, self.runs, *length, self.after_run, self.after_row, pixel, result, *limits_of(finish)]
        return np.asarray(numbers, np.int32)


def limits_of(finish: Clamp) -> tuple[int, int]:
    """Return the bits of the limits as float32; infinite ones for none."""
    limits = [-np.inf if finish.low is None else finish.low, np.inf if finish.high is None else finish.high]
    low, high = np.asarray(limits, np.float32).view(np.int32)
    return int(low), int(high)


def read_limits(names: Sequence[str]) -> list[str]:
    """Return the C that reads the limits from the numbers with these names."""
    reads = [f"__builtin_memcpy(&{name}, numbers + {names.index(name)}, 4);" for name in ("low", "high")]
    return ["float low, high;", "", *reads]


def offset_of(number: str) -> int:
    """Return the byte of a number."""
    return 4 * NUMBERS.index(number)


ADDED = np.float32(-0.0)
"""The number that changes no sum, not even -0."""


def stream_of(weights: Any, bias: Any, channels: int) -> Any:
    """Return the stream of weights [o,k], with missing channels of the last block as zeros."""
    results, length = weights.shape
    count = -(-results // channels) * channels
    padded = np.zeros((count, length + 2), np.float32)
    padded[:results, 1:-1] = weights
    padded[:, -1] = ADDED
    if bias is not None:
        padded[:results, -1] = bias
    return np.ascontiguousarray(padded.reshape(-1, channels, length + 2).transpose(0, 2, 1)).reshape(-1)


def fallback(name: str, rows: int, channels: int) -> str:
    """Return the C of a tile, of any number of channels."""
    lines, names = Lines(), [f"s{c}" for c in range(channels)]
    lines.add(*(f"const int32_t {name} = numbers[{NUMBERS.index(name)}];" for name in ("rows", "runs")))
    lines.add(f"const int32_t length = {QUAD} * numbers[2] + numbers[3];")
    lines.add(*read_limits(NUMBERS), "")
    with lines.block(f"for (int32_t c = 0; c < channels; c += {channels}, y += {channels})"):
        lines.add("const float *end = stream;", "")
        with lines.loop("pixel", rows):
            lines.add(f"const float *w = stream + {channels};", "const int8_t *p = (const int8_t *)x;")
            lines.add("float *to = (float *)((int8_t *)y + pixel * numbers[7]);")
            lines.add(f"float {', '.join(f'{sum} = stream[{c}]' for c, sum in enumerate(names))};", "")
            lines.add("p += pixel * numbers[6];")
            with lines.block("for (int32_t row = 0; row < rows; row++, p += numbers[5])"):
                with lines.block("for (int32_t run = 0; run < runs; run++, p += numbers[4])"):
                    with lines.block(f"for (int32_t k = 0; k < length; k++, p += 4, w += {channels})"):
                        lines.add("const float value = *(const float *)p;", "")
                        lines.add(*(f"{sum} += value * w[{c}];" for c, sum in enumerate(names)))
            for c, sum in enumerate(names):
                with lines.block(f"if (c + {c} < channels)"):
                    lines.add(f"{sum} += w[{c}];", f"to[{c}] = {sum} < low ? low : {sum} > high ? high : {sum};")
            lines.add(f"end = w + {channels};")
        lines.add("stream = end;")
    return f"static void {name}({', '.join(PARAMETERS)})\n{{\n{lines}}}\n"


def guarded(condition: str, assembly: str, otherwise: str) -> str:
    """Return a function in assembly for processors that have its instructions, and its C for others."""
    return f"#if {condition}\n{assembly}#else\n{otherwise}#endif\n"

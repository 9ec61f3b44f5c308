# SPDX-License-Identifier: Apache-2.0
"""Tiles of float32 layers: sums of some pixels by some channels, and their C for processors without an FPU.

A tile is void f(x, stream, y, numbers, channels, skipped). The stream has for each block of channels: first sums, the
weights [k][channel], and what is added to the sums at the end. Offsets between pixels are in bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.expressions import plus
from opwest.compiler.emission.function import Lines
from opwest.compiler.ir.operations import Clamp, Convolution, Depthwise, MatrixProduct

NUMBERS = ("rows", "runs", "quads", "rest", "after_run", "after_row", "pixel", "result", "low", "high")
"""The int32 numbers of a tile: the rows of a window, the runs of a row; the elements of a run as 4 times `quads` plus
`rest`; the bytes from the end of a run to the next one, and more after a row; the bytes between pixels of the data and
of the result; the limits, as float32."""
PARAMETERS = (
    *("const float *x", "const float *stream", "float *y", "const int32_t *numbers"),
    *("int32_t channels", "int32_t skipped"),
)
"""`skipped`: the first pixels, whose results are in memory already; functions in assembly compute them again."""
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


def finish_of(operation: Convolution | Depthwise | MatrixProduct) -> Clamp | None:
    """Return the limits of an operation on float32 tensors and weights; None for others."""
    values = (*operation.inputs, *operation.results)
    dtypes = {value.dtype for value in values} | {str(getattr(operation, "weights", np.zeros(0, np.float32)).dtype)}
    return operation.finish if isinstance(operation.finish, Clamp) and dtypes == {"float32"} else None


def limits_of(finish: Clamp) -> tuple[int, int]:
    """Return the bits of the limits as float32; infinite ones for none."""
    limits = [-np.inf if finish.low is None else finish.low, np.inf if finish.high is None else finish.high]
    low, high = np.asarray(limits, np.float32).view(np.int32)
    return int(low), int(high)


def read_limits(names: Sequence[str]) -> list[str]:
    """Return the C that reads the limits from the numbers with these names. Comparisons with infinite ones are slow."""
    low, high = (f"numbers[{names.index(name)}]" for name in ("low", "high"))
    return [
        f"const int has_low = {low} != {-0x00800000}, has_high = {high} != 0x7f800000;",
        "float low, high;",
        "",
        f"__builtin_memcpy(&low, &{low}, sizeof(low));",
        f"__builtin_memcpy(&high, &{high}, sizeof(high));",
    ]


def store_limited(to: str, value: str) -> list[str]:
    """Return the C that stores a variable between the limits of `read_limits`."""
    return [
        f"{value} = has_low && {value} < low ? low : {value};",
        f"{to} = has_high && {value} > high ? high : {value};",
    ]


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


def streams_of(weights: Any, bias: Any, parts: Sequence[tuple[int, int]]) -> tuple[Any, list[int]]:
    """Return the streams of weights [o,k], one after the other, and their starts.

    `parts`: of the channels, with those of their blocks.
    """
    streams: list[Any] = []
    starts, first = [0], 0
    for some, channels in parts:
        chosen = slice(first, first + some)
        streams.append(stream_of(weights[chosen], None if bias is None else bias[chosen], channels))
        starts.append(starts[-1] + len(streams[-1]))
        first += some
    return np.concatenate(streams), starts[:-1]


def fallback(name: str, rows: int, channels: int) -> str:
    """Return the C of a tile, of any number of channels: 4 sums at a time, then those of the rest."""
    lines, rest = Lines(), channels % QUAD
    lines.add(f"const int32_t length = {QUAD} * numbers[2] + numbers[3];")
    lines.add(f"const int32_t size = (numbers[0] * numbers[1] * length + 2) * {channels};", *read_limits(NUMBERS), "")
    with lines.block(f"for (int32_t pixel = skipped; pixel < {rows}; pixel++)"):
        if channels > rest:
            whole = f"channels - {rest}" if rest else "channels"
            with lines.block(f"for (int32_t c = 0; c < {whole}; c += {QUAD})"):
                _sums(lines, channels, QUAD)
        if rest:
            with lines.block(f"for (int32_t c = {channels - rest}; c < channels; c += {channels})"):
                _sums(lines, channels, rest)
    return f"static void {name}({', '.join(PARAMETERS)})\n{{\n{lines}}}\n"


def _sums(lines: Lines, channels: int, some: int) -> None:
    """Append the results of `some` channels from c on, of a pixel."""
    names, place = [f"s{c}" for c in range(some)], f"c / {channels} * size"
    place += f" + c % {channels}" if some < channels else ""
    lines.add(f"const float *w = stream + {place};", "const int8_t *p = (const int8_t *)x + pixel * numbers[6];")
    lines.add("float *to = (float *)((int8_t *)y + pixel * numbers[7]) + c;")
    lines.add(f"float {', '.join(f'{sum} = w[{c}]' for c, sum in enumerate(names))};", "")
    lines.add(f"w += {channels};")
    rows_of = lines.block("for (int32_t row = 0; row < numbers[0]; row++, p += numbers[5])")
    with rows_of, lines.block("for (int32_t run = 0; run < numbers[1]; run++, p += numbers[4])"):
        for number, count in ((2, QUAD), (3, 1)):
            step = f"p += {4 * count}, w += {count * channels}"
            with lines.block(f"for (int32_t k = numbers[{number}]; k > 0; k--, {step})"):
                for k in range(count):
                    with lines.block(""):
                        lines.add(f"const float value = ((const float *)p)[{k}];", "")
                        lines.add(*(f"{sum} += value * w[{k * channels + c}];" for c, sum in enumerate(names)))
    for c, sum in enumerate(names):
        with lines.block(f"if (c{plus(c)} < channels)"):
            lines.add(f"{sum} += w[{c}];", *store_limited(f"to[{c}]", sum))


def guarded(functions: Sequence[tuple[str, str]], otherwise: str) -> str:
    """Return a function in assembly for the first condition that a processor meets; its C for other processors."""
    parts = [f"#{'el' * (place > 0)}if {condition}\n{text}" for place, (condition, text) in enumerate(functions)]
    return f"{''.join(parts)}#else\n{otherwise}#endif\n"

# SPDX-License-Identifier: Apache-2.0
"""Depthwise results of one channel for windows of any size, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Lines
from opwest.compiler.kernels.dsp.intrinsics import SMLABT, SMLAD, ended
from opwest.compiler.kernels.dsp.planes import Planes
from opwest.compiler.kernels.dsp.tiles import Epilogue

MAX_COLUMNS = 16
"""The columns of a window whose products are not a loop."""
MAX_UNROLLED = 25


@dataclass(frozen=True)
class AnyTaps:
    """A function for the results of one channel: stride 1 or 2, no dilation; for the long form, and very large windows.

    For each row of the window there are words (t0, t1), (t2, t3), ... for results at even columns; with stride 1 also
    (t1, t2), (t3, t4), ... for those at odd columns, whose first product is that of t0 and the second half of a word.
    """

    planes: Planes
    results: int
    ending: Epilogue

    @property
    def name(self) -> str:
        """The name of the C function."""
        (kh, kw), columns = self.planes.window.size, self.planes.window.result[1]
        stride = "x".join(map(str, self.planes.window.stride))
        return f"taps_{kh}x{kw}_{stride}_{columns}_{self.planes.words}_{self.results}_{self.ending.name}"

    @property
    def even(self) -> int:
        """The words of a row for even columns."""
        return (self.planes.window.size[1] + 1) // 2

    @property
    def odd(self) -> int:
        """The words of a row for odd columns."""
        return self.planes.window.size[1] // 2 if self.planes.window.stride[1] == 1 else 0

    @property
    def constants(self) -> int:
        """The words of a channel."""
        return self.planes.window.size[0] * (self.even + self.odd) + 4

    def words(self, taps: Any) -> Any:
        """Return the words of channels for taps [channel,kh,kw] as int64 [channel,words]."""
        channels, kh, kw = taps.shape
        padded = np.zeros((channels, kh, kw + 3), np.int64)
        padded[:, :, :kw] = taps
        halves = padded & 0xFFFF
        pairs = halves[:, :, :-1] | halves[:, :, 1:] << 16
        rows = [pairs[:, :, 0 : 2 * self.even : 2], pairs[:, :, 1 : 1 + 2 * self.odd : 2]]
        return np.concatenate(rows, axis=2).reshape(channels, -1)

    def definitions(self) -> tuple[str, ...]:
        """Return the C function (rows of words, constants, result, rows of results) and those that it calls."""
        lines = Lines()
        end, text = ended(self.ending)
        columns, (kh, _) = self.planes.window.result[1], self.planes.window.size
        at_once = 2 if self.odd or (self.planes.window.stride[1] == 1) else 1
        turns, rest = divmod(columns, at_once)
        first = kh * (self.even + self.odd)
        lines.add(
            f"const int32_t first = constants[{first}], multiplier = constants[{first + 1}];",
            f"const int32_t addend = constants[{first + 2}], shift = constants[{first + 3}];",
            "",
        )
        pitch = self.planes.pitch // 4
        with lines.block(f"for (; rows > 0; rows--, words += {self.planes.window.stride[0] * pitch})"):
            lines.add("const uint32_t *p = words;", "")
            with lines.block(f"for (int i = 0; i < {turns}; i++, p += 4)"):
                self._sums(lines, pitch, at_once)
                for place in range(at_once):
                    lines.add(f"*result = {end}(s{place}, multiplier, addend, shift);", f"result += {self.results};")
            if rest:
                with lines.block(""):
                    self._sums(lines, pitch, 1)
                    lines.add(f"*result = {end}(s0, multiplier, addend, shift);", f"result += {self.results};")
        parameters = f"const uint32_t *words, const int32_t *constants, {self.ending.kind} *result, int32_t rows"
        head = f"static void {self.name}(\n\t{parameters})"
        used = (SMLAD, SMLABT) if at_once == 2 else (SMLAD,)
        return *used, text, f"{head}\n{{\n{lines}}}\n"

    def _sums(self, lines: Lines, pitch: int, count: int) -> None:
        """Append the sums s0 and s1 of the window at p."""
        kh, kw = self.planes.window.size
        per_row = self.even + self.odd
        lines.add(f"int32_t {', '.join(f's{place} = first' for place in range(count))};", "")
        if kh * kw <= MAX_UNROLLED:
            for row in range(kh):
                self._row(lines, f"p + {row * pitch}", f"constants + {row * per_row}", count)
            return
        lines.add("const uint32_t *q = p;", "const int32_t *w = constants;", "")
        with lines.block(f"for (int ky = 0; ky < {kh}; ky++, q += {pitch}, w += {per_row})"):
            self._row(lines, "q", "w", count)

    def _row(self, lines: Lines, words: str, weights: str, count: int) -> None:
        for place in range(self.even):
            lines.add(f"s0 = smlad(({words})[{4 * place}], (uint32_t)({weights})[{place}], s0);")
        if count == 1:
            return
        lines.add(f"s1 = smlabt((uint32_t)({weights})[0], ({words})[0], s1);")
        for place in range(self.odd):
            lines.add(f"s1 = smlad(({words})[{4 * place + 4}], (uint32_t)({weights})[{self.even + place}], s1);")

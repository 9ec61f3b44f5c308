# SPDX-License-Identifier: Apache-2.0
"""Depthwise windows of one channel over padded rows in assembly: some neighbouring columns of results share loads.

The rows of a window are loaded one after the other: weights and data follow each other without other instructions,
because a Cortex-M3 overlaps the second and further loads. Sums start with MUL, which is faster than MLA.
"""

from __future__ import annotations

from opwest.importers.models.emit.kernels.mla.assembly import REGISTERS, End, naked
from opwest.records import dataclass

FARTHEST = 4095
"""The greatest offset of a load or store."""
MOST_COLUMNS = 5
MOST_WEIGHTS = 4
"""Weights of a row in registers."""


@dataclass(frozen=True)
class Columns:
    """The function for some channels of a strip of rows."""

    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    columns: int
    """The columns of the results."""
    row: int
    """The bytes of a padded row."""
    depth: int
    results: int
    """The channels of the results; those of a call are results / depth apart."""
    end: End

    @property
    def name(self) -> str:
        """The name of the function."""
        (kh, kw), (sy, sx), (dy, dx) = self.size, self.stride, self.dilation
        shape = f"{kh}x{kw}_stride{sy}x{sx}_dilation{dy}x{dx}_{self.columns}_{self.row}_{self.depth}_{self.results}"
        return f"mla_columns_{shape}_{self.end.name}"

    @property
    def record(self) -> int:
        """The words of a channel: its numbers, then its weights as bytes."""
        return self.end.numbers + -(-self.size[0] * self.size[1] // 4)

    def best(self) -> int:
        """Return the columns of a tile with the fewest cycles; 0: an offset is out of reach."""
        found = {
            some: self._cost(some) for some in range(1, min(self.columns, MOST_COLUMNS) + 1) if self._reaches(some)
        }
        return min(found, key=lambda some: (found[some], some), default=0)

    def _reaches(self, some: int) -> bool:
        last = ((some - 1) * self.stride[1] + (self.size[1] - 1) * self.dilation[1]) * self.depth
        return max(last, (some - 1) * self.results * self.end.size) <= FARTHEST and self.record * 4 <= FARTHEST

    def _cost(self, some: int) -> int:
        turns, rest = divmod(self.columns, some)
        return turns * (cycles(self._tile(some)) + (7 if turns > 1 else 0)) + (cycles(self._tile(rest)) if rest else 0)

    def text(self) -> str:
        """Return the definition.

        Arguments: the first value of the strip, the first word of the channels, the first result, the rows of
        results, the end of the words.
        """
        parameters = ("const int8_t *x", "const int32_t *w", "void *y", "uint32_t rows", "const int32_t *w_end")
        some = self.best()
        turns, rest = divmod(self.columns, some)
        lines = ["push {r4-r11, lr}", "push {r0, r2, r3}", "sub sp, sp, #8"]
        lines += ["1:", "ldr r3, [sp, #16]", "str r3, [sp, #4]", "2:"]
        if turns > 1:
            lines += [f"mov r3, #{turns}", "str r3, [sp]", "3:"]
        lines += self._tile(some)
        if turns > 1:
            lines += ["ldr r3, [sp]", "subs r3, r3, #1", "str r3, [sp]", "bne 3b"]
        if rest:
            lines += self._tile(rest)
        lines += add("r0", self.stride[0] * self.row - self.columns * self.stride[1] * self.depth)
        lines += ["ldr r3, [sp, #4]", "subs r3, r3, #1", "str r3, [sp, #4]", "bne 2b"]
        lines += [f"add r1, r1, #{4 * self.record}", "ldr r0, [sp, #8]", "add r0, r0, #1", "str r0, [sp, #8]"]
        lines += ["ldr r2, [sp, #12]", f"add r2, r2, #{self.results // self.depth * self.end.size}"]
        lines += ["str r2, [sp, #12]", "ldr r3, [sp, #56]", "cmp r1, r3", "bne 1b"]
        return naked(self.name, parameters, [*lines, "add sp, sp, #20", "pop {r4-r11, pc}"])

    def _tile(self, some: int) -> list[str]:
        """Return the code for some columns; it advances both pointers."""
        sums, free = list(REGISTERS[3 : 3 + some]), list(REGISTERS[3 + some :])
        started: set[str] = set()
        lines: list[str] = []
        (kh, kw), stride, dilation = self.size, self.stride[1], self.dilation[1]
        reach = ((some - 1) * stride + (kw - 1) * dilation) * self.depth
        base = 0
        for ky in range(kh):
            offset = ky * self.dilation[0] * self.row
            if offset - base + reach > FARTHEST:
                lines += add("r0", offset - base)
                base = offset
            for first in range(0, kw, MOST_WEIGHTS):
                taps = range(first, min(first + MOST_WEIGHTS, kw))
                weights = dict(zip(taps, free, strict=False))
                pending = [f"ldrsb {one}, [r1, #{4 * self.end.numbers + ky * kw + kx}]" for kx, one in weights.items()]
                places = sorted({p * stride + kx * dilation for p in range(some) for kx in taps})
                registers = free[len(weights) :]
                for start in range(0, len(places), len(registers)):
                    data = dict(zip(places[start:], registers, strict=False))
                    lines += pending
                    pending = []
                    lines += [
                        f"ldrsb {one}, [r0, #{offset - base + place * self.depth}]" for place, one in data.items()
                    ]
                    for p, value in enumerate(sums):
                        for kx, weight in weights.items():
                            one = data.get(p * stride + kx * dilation, "")
                            if one and value in started:
                                lines.append(f"mla {value}, {one}, {weight}, {value}")
                            elif one:
                                lines.append(f"mul {value}, {one}, {weight}")
                                started.add(value)
        lines += add("r0", some * stride * self.depth - base)
        numbers, low = free[1 : 1 + self.end.numbers], free[0]
        lines.append(f"ldr {numbers[0]}, [r1]" if len(numbers) == 1 else f"ldmia r1, {{{', '.join(numbers)}}}")
        for p, value in enumerate(sums):
            lines += self.end.lines(value, numbers, low)
            at = p * self.results * self.end.size
            lines.append(f"{self.end.store} {value}, [r2, #{at}]")
        return lines + add("r2", some * self.results * self.end.size)


def add(register: str, value: int) -> list[str]:
    """Return the addition of a constant."""
    name, rest = ("add", value) if value >= 0 else ("sub", -value)
    found = [f"{name}w {register}, {register}, #{rest & 4095}"] if rest & 4095 else []
    rest >>= 12
    place = 12
    while rest:
        if rest & 255:
            found.append(f"{name} {register}, {register}, #{(rest & 255) << place}")
        rest >>= 8
        place += 8
    return found


def cycles(lines: list[str]) -> int:
    """Return the cycles of code without branches: the model of tuning/qemu/count.c."""
    total, after = 0, False
    for line in lines:
        word = line.split()[0]
        is_load = word.startswith("ldr")
        total += {"mla": 2, "smull": 4, "ldmia": 5}.get(word, 1) + (is_load and not after)
        after = is_load
    return total

# SPDX-License-Identifier: Apache-2.0
"""Tiles of float32 layers for the FPU: VLDM loads weights and data, products are added in the order of k.

Registers: r0 to r3 pixels, r4 stream, r5 to r7 counters, r8 result, r9 numbers, r10 first pixel, r11 channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.floats.tiles import PARAMETERS, QUAD, Tile, fallback, guarded, offset_of

HAS_FPU = "defined(__ARM_FP) && (__ARM_FP & 4)"
SAVED = 9 * 4 + 16 * 4
"""The bytes of r4 to r11, lr and s16 to s31 on the stack."""
REGISTERS = 32
HELD = 8
"""The most weights in registers."""


@dataclass(frozen=True)
class FloatTile(Tile):
    """A tile whose sums are in registers: at most 16 of them.

    A Cortex-M7 adds products by VMLA, which rounds as VMUL and VADD do; on a Cortex-M4 it takes 3 cycles.
    `has_rest`: the channels can be no whole blocks; only those that exist are stored.
    """

    has_rest: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"float_tile_{self.rows}x{self.channels}"

    def definition(self) -> str:
        """Return the C text of the function."""
        return guarded([(HAS_FPU, self.assembly(self.name))], fallback(self.name, self.rows, self.channels))

    def assembly(self, name: str) -> str:
        """Return the function with a name."""
        return naked(name, PARAMETERS, self._lines(is_joined=False), paired=self._lines(is_joined=True))

    @property
    def _sums(self) -> int:
        return self.rows * self.channels

    @property
    def _together(self) -> int:
        """The elements of a pixel that one instruction loads."""
        for count in (4, 2):
            if self._sums + count * self.rows + min(self.channels, HELD) + 2 <= REGISTERS:
                return count
        return 1

    def _lines(self, is_joined: bool) -> Iterator[str]:
        steps = range(1, self.rows)
        yield from ("push {r4-r11, lr}", "vpush {s16-s31}", "mov r10, r0", "mov r4, r1", "mov r8, r2", "mov r9, r3")
        yield f"ldr r11, [sp, #{SAVED}]"
        yield from ("1:", f"ldr r12, [r9, #{offset_of('pixel')}]", "mov r0, r10")
        yield from (f"add r{r}, r{r - 1}, r12" for r in steps)
        yield f"vldm r4!, {span(0, self.channels)}"
        yield from (f"vmov.f32 s{i}, s{i % self.channels}" for i in range(self.channels, self._sums))
        yield from (f"ldr r7, [r9, #{offset_of('rows')}]", "2:", f"ldr r6, [r9, #{offset_of('runs')}]", "3:")
        yield from (f"ldr r5, [r9, #{offset_of('quads')}]", "cmp r5, #0", "beq 5f", "4:")
        for _ in range(QUAD // self._together):
            yield from self._products(self._together, is_joined)
        yield from ("subs r5, r5, #1", "bne 4b", "5:", f"ldr r5, [r9, #{offset_of('rest')}]", "cmp r5, #0")
        yield from ("beq 7f", "6:", *self._products(1, is_joined), "subs r5, r5, #1", "bne 6b", "7:")
        for number, counter, label in (("after_run", 6, 3), ("after_row", 7, 2)):
            yield f"ldr r12, [r9, #{offset_of(number)}]"
            yield from (f"add r{r}, r{r}, r12" for r in range(self.rows))
            yield from (f"subs r{counter}, r{counter}, #1", f"bne {label}b")
        yield from end_of_sums(self.rows, self.channels, offset_of, self.has_rest)
        yield from (f"subs r11, r11, #{self.channels}", "bgt 1b", "vpop {s16-s31}", "pop {r4-r11, pc}")

    def _products(self, count: int, is_joined: bool) -> Iterator[str]:
        """Yield the products of `count` elements of each pixel. `is_joined`: by VMLA."""
        data, weights = self._sums, self._sums + self.rows * count
        yield from (f"vldm r{r}!, {span(data + r * count, count)}" for r in range(self.rows))
        free = [f"s{i}" for i in range(weights + min(self.channels, HELD), REGISTERS)][:4]
        for k in range(count):
            for first in range(0, self.channels, HELD):
                some = range(first, min(first + HELD, self.channels))
                yield f"vldm r4!, {span(weights, len(some))}"
                pairs = [
                    (f"s{r * self.channels + c}", f"s{data + r * count + k}", f"s{weights + c - first}")
                    for r in range(self.rows)
                    for c in some
                ]
                yield from add_products(pairs, free, is_joined)


def add_products(products: Sequence[tuple[str, str, str]], free: Sequence[str], is_joined: bool) -> Iterator[str]:
    """Yield the additions of products: sums and their factors. `free`: at least two registers. `is_joined`: by VMLA."""
    if is_joined:
        yield from (f"vmla.f32 {total}, {one}, {other}" for total, one, other in products)
        return
    # A result that the next instruction reads takes a cycle more.
    waiting: list[str] = []
    for place, (total, one, other) in enumerate(products):
        product = free[place % len(free)]
        yield f"vmul.f32 {product}, {one}, {other}"
        waiting.append(f"vadd.f32 {total}, {total}, {product}")
        if len(waiting) == 2:
            yield waiting.pop(0)
    yield from waiting


def end_of_sums(rows: int, channels: int, offset_of: Callable[[str], int], has_rest: bool = False) -> Iterator[str]:
    """Yield the ends of the sums s0 and following: what is added, limits, stores at r8, which moves to the next block.

    r4: the stream; r9: the numbers, with their bytes `offset_of`; r11: the channels that are left, if there can be
    fewer than those of a block; r12 and lr are changed.
    """
    added, limit = rows * channels, f"s{REGISTERS - 1}"
    sums = [f"s{i}" for i in range(added)]
    yield f"vldm r4!, {span(added, channels)}"
    yield from (f"vadd.f32 {s}, {s}, s{added + i % channels}" for i, s in enumerate(sums))
    yield from limited(sums, limit, ("r9", offset_of), (8, 9))
    yield from (f"ldr r12, [r9, #{offset_of('result')}]", "mov lr, r8", f"add r8, r8, #{4 * channels}")
    if has_rest:
        yield from (f"cmp r11, #{channels}", "bge 10f")
        for row in range(rows):
            for c in range(channels - 1):
                yield from (f"cmp r11, #{c + 1}", "it ge", f"vstrge s{row * channels + c}, [lr, #{4 * c}]")
            yield from (["add lr, lr, r12"] if row + 1 < rows else [])
        yield from ("b 11f", "10:")
    for row in range(rows):
        yield f"vstm lr, {span(row * channels, channels)}"
        yield from (["add lr, lr, r12"] if row + 1 < rows else [])
    yield from (["11:"] if has_rest else [])


def limited(
    values: Sequence[str], free: str, numbers: tuple[str, Callable[[str], int]], labels: tuple[int, int]
) -> Iterator[str]:
    """Yield the clamps of values to the limits in `numbers`: a register and the bytes of each. `free`, r12: changed."""
    register, offset_of = numbers
    # Infinite limits: the bits of -infinity and infinity.
    for number, none, label, condition in (
        ("low", "cmn r12, #0x00800000", labels[0], "mi"),
        ("high", "cmp r12, #0x7f800000", labels[1], "gt"),
    ):
        yield from (f"ldr r12, [{register}, #{offset_of(number)}]", none, f"beq {label}f", f"vmov {free}, r12")
        for value in values:
            yield from (f"vcmp.f32 {value}, {free}", "vmrs APSR_nzcv, FPSCR", f"it {condition}")
            yield f"vmov{condition}.f32 {value}, {free}"
        yield f"{label}:"


def span(first: int, count: int) -> str:
    """Return registers as operand of VLDM and VSTM."""
    return f"{{s{first}}}" if count == 1 else f"{{s{first}-s{first + count - 1}}}"

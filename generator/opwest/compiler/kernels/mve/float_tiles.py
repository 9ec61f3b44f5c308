# SPDX-License-Identifier: Apache-2.0
"""Tiles of float32 layers for the vector extension with floating point: vectors of 4 channels, multiplied by elements.

Registers: r0 to r3 pixels, r4 to r11 elements, r12 stream, lr turns; q0 to q3 sums, then weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.kernels.assembly import naked
from opwest.compiler.kernels.dsp.float_tiles import HAS_FPU, FloatTile
from opwest.compiler.kernels.floats.tiles import PARAMETERS, QUAD, Tile, fallback, guarded, offset_of

HAS_MVE_FLOAT = "defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)"
LANES = 4
FRAME = 28
"""The bytes of the stack for X, Y, NUMBERS and LEFT, and the counters of rows and runs."""
X, Y, NUMBERS, LEFT, ROWS, RUNS = range(0, 24, 4)
SAVED = 9 * 4 + 8 * 8
"""The bytes of r4 to r11, lr and d8 to d15 on the stack."""


@dataclass(frozen=True)
class VectorTile(Tile):
    """A tile of at most 4 vectors of sums. The last vectors of the channels can be stored in part."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"mve_float_tile_{self.rows}x{self.channels}"

    def definition(self) -> str:
        """Return the C text of the function."""
        assembly = (HAS_MVE_FLOAT, naked(self.name, PARAMETERS, self._lines()))
        # Vectors of integers only, but an FPU.
        scalar = (HAS_FPU, FloatTile(self.rows, self.channels, has_rest=True).assembly(self.name))
        return guarded([assembly, scalar], fallback(self.name, self.rows, self.channels))

    @property
    def _vectors(self) -> int:
        return self.channels // LANES

    def _sums(self, row: int) -> list[int]:
        return [row * self._vectors + v for v in range(self._vectors)]

    def _lines(self) -> Iterator[str]:
        yield from ("push {r4-r11, lr}", "vpush {d8-d15}", f"sub sp, #{FRAME}", "strd r0, r2, [sp]", "mov r12, r1")
        yield from (f"ldr r4, [sp, #{FRAME + SAVED}]", f"strd r3, r4, [sp, #{NUMBERS}]", "1:")
        yield from (f"ldr r4, [sp, #{NUMBERS}]", f"ldr r5, [r4, #{offset_of('pixel')}]", f"ldr r0, [sp, #{X}]")
        yield from (f"add r{r}, r{r - 1}, r5" for r in range(1, self.rows))
        yield from (f"vldrw.32 q{q}, [r12], #16" for q in self._sums(0))
        yield from (f"vmov q{q}, q{v}" for r in range(1, self.rows) for v, q in enumerate(self._sums(r)))
        yield from (f"ldr r5, [r4, #{offset_of('rows')}]", f"str r5, [sp, #{ROWS}]", "2:", f"ldr r4, [sp, #{NUMBERS}]")
        yield from (f"ldr r5, [r4, #{offset_of('runs')}]", f"str r5, [sp, #{RUNS}]", "3:", f"ldr r4, [sp, #{NUMBERS}]")
        yield from (f"ldr r5, [r4, #{offset_of('quads')}]", "wls lr, r5, 5f", "4:", *self._quad(), "le lr, 4b", "5:")
        yield from (f"ldr r4, [sp, #{NUMBERS}]", f"ldr r5, [r4, #{offset_of('rest')}]", "wls lr, r5, 7f", "6:")
        yield from (*self._single(), "le lr, 6b", "7:", f"ldr r4, [sp, #{NUMBERS}]")
        for number, place, label in (("after_run", RUNS, 3), ("after_row", ROWS, 2)):
            yield from (f"ldr r5, [r4, #{offset_of(number)}]", f"ldr r6, [sp, #{place}]")
            yield from (f"add r{r}, r{r}, r5" for r in range(self.rows))
            yield from ("subs r6, #1", f"str r6, [sp, #{place}]", f"bne {label}b")
        yield from self._end()
        yield from (f"add sp, #{FRAME}", "vpop {d8-d15}", "pop {r4-r11, pc}")

    def _quad(self) -> Iterator[str]:
        """Yield the products of 4 elements of each pixel: pairs of pixels, whose sums alternate."""
        sums, vectors = self.rows * self._vectors, self._vectors
        if vectors > 1:
            yield from (f"ldm r{r}!, {{r{4 + 4 * r}-r{7 + 4 * r}}}" for r in range(self.rows))
            for k in range(QUAD):
                yield from (f"vldrw.32 q{sums + v}, [r12], #16" for v in range(vectors))
                yield from (
                    f"vfma.f32 q{q}, q{sums + v}, r{4 + 4 * r + k}"
                    for r in range(self.rows)
                    for v, q in enumerate(self._sums(r))
                )
            return
        yield f"vldrw.32 q{sums}, [r12], #16"
        for first in range(0, self.rows, 2):
            pair = range(first, min(first + 2, self.rows))
            yield from (f"ldm r{r}!, {{r{4 + 4 * (r - first)}-r{7 + 4 * (r - first)}}}" for r in pair)
            for k in range(QUAD):
                if first == 0 and k + 1 < QUAD:
                    yield f"vldrw.32 q{sums + k + 1}, [r12], #16"
                yield from (f"vfma.f32 q{r}, q{sums + k}, r{4 + 4 * (r - first) + k}" for r in pair)

    def _single(self) -> Iterator[str]:
        """Yield the products of an element of each pixel."""
        sums = self.rows * self._vectors
        yield from (f"ldr r{4 + r}, [r{r}], #4" for r in range(self.rows))
        yield from (f"vldrw.32 q{sums + v}, [r12], #16" for v in range(self._vectors))
        yield from (
            f"vfma.f32 q{q}, q{sums + v}, r{4 + r}" for r in range(self.rows) for v, q in enumerate(self._sums(r))
        )

    def _end(self) -> Iterator[str]:
        """Yield the ends of sums: what is added, limits, stores."""
        sums = self.rows * self._vectors
        for v in range(self._vectors):
            yield f"vldrw.32 q{sums}, [r12], #16"
            yield from (f"vadd.f32 q{self._sums(r)[v]}, q{self._sums(r)[v]}, q{sums}" for r in range(self.rows))
        yield from limited(range(sums), "r4", offset_of, "r5")
        yield from (f"ldrd r6, r5, [sp, #{Y}]", f"ldr r8, [sp, #{LEFT}]", f"ldr r7, [r5, #{offset_of('result')}]")
        yield from (f"add r5, r6, #{4 * self.channels}", f"str r5, [sp, #{Y}]")
        for v in range(self._vectors):
            yield from ("vctp.32 r8", *(["mov r9, r6"] if self.rows > 1 else []))
            place = "r9" if self.rows > 1 else "r6"
            for r in range(self.rows):
                yield from ("vpst", f"vstrwt.32 q{self._sums(r)[v]}, [{place}]")
                if r + 1 < self.rows:
                    yield f"add {place}, {place}, r7"
            yield f"subs r8, r8, #{LANES}"
            if v + 1 < self._vectors:
                # VCTP takes a negative number for a large one.
                yield from ("it lt", "movlt r8, #0", f"add r6, r6, #{4 * LANES}")
        yield from (f"str r8, [sp, #{LEFT}]", "bgt 1b")


def limited(vectors: Iterable[int], numbers: str, offset_of: Callable[[str], int], free: str) -> Iterator[str]:
    """Yield the clamps of vectors to the limits in the numbers, which have the bytes `offset_of`; `free` is changed."""
    vectors = list(vectors)
    # Infinite limits: the bits of -infinity and infinity.
    for number, none, label, condition in (
        ("low", f"cmn {free}, #0x00800000", "8", "lt"),
        ("high", f"cmp {free}, #0x7f800000", "9", "gt"),
    ):
        yield from (f"ldr {free}, [{numbers}, #{offset_of(number)}]", none, f"beq {label}f")
        for q in vectors:
            yield from (f"vpt.f32 {condition}, q{q}, {free}", f"vdupt.32 q{q}, {free}")
        yield f"{label}:"

# SPDX-License-Identifier: Apache-2.0
"""The functions of the gates of integer LSTMs with vector instructions, bit for bit.

LiteRT's are polynomials in 16 bits: VQRDMULH is their product. tflite-micro's are between samples, in 32 bits. Each is
a C function void f(from, to, count[, samples]) of int16 values, of which the last ones need not fill a vector.
"""

from __future__ import annotations

from collections.abc import Iterator

from opwest.compiler.kernels.assembly import constant, naked
from opwest.compiler.kernels.gates import FACTORS, stages_of
from opwest.compiler.kernels.scaling import Scaling
from opwest.compiler.semantics.recurrent import LstmNumbers
from opwest.compiler.semantics.tables import SigmoidNumbers

GATE_BITS = 3
"""The integer bits of gates."""
_FACTORS = ("r4", "r5", "r6", "r7", "r8", "r9")
_PARAMETERS = ("const int16_t *from", "int16_t *to", "int32_t count")
_SAVE, _RESTORE = ("push {r4-r11, lr}", "vpush {d8-d15}"), ("vpop {d8-d15}", "pop {r4-r11, pc}")


def power_function(bits: int, is_tanh: bool) -> tuple[str, str]:
    """Return the name and the definition of LiteRT's tanh of numbers with `bits` integer bits, or of logistic."""
    name = f"mve_{'tanh' if is_tanh else 'logistic'}_{bits}"
    return name, naked(name, _PARAMETERS, _power_lines(bits + is_tanh, is_tanh))


def _power_lines(bits: int, is_tanh: bool) -> Iterator[str]:
    """Yield the function: the value is in q0, exp of its negated magnitude has `bits` integer bits."""
    yield from (*_SAVE, "mov lr, r2")
    numbers = [("r2", 28918), ("r3", 10923), *zip(_FACTORS, FACTORS, strict=True), ("r10", 23130), ("r11", 15420)]
    for register, value in [*numbers, ("r12", 32768)]:
        yield from constant(register, value)
    yield from ("rsbs r11, r11, #0", "vmov.i16 q4, #0x2000", "vmov.i16 q5, #0x1000", "dlstp.16 lr, lr", "1:")
    yield from ("vldrh.u16 q0, [r0], #16", "vabs.s16 q1, q0", "vneg.s16 q1, q1")
    # The rest below a quarter has all high bits; those of its difference to the magnitude select the factors.
    mask = 0x10000 - (1 << (13 - bits))
    if mask & 0xFF:
        yield from ("vmvn.i16 q2, #0xff", f"vorr.i16 q2, #{mask & 0xFF:#x}", "vorr q2, q1, q2")
    else:
        yield from ("vmov q2, q1", f"vorr.i16 q2, #{mask:#x}")
    yield from ("vsub.i16 q1, q2, q1", f"vshl.i16 q2, q2, #{bits}", "vadd.i16 q2, q2, q5")
    yield from ("vqrdmulh.s16 q3, q2, q2", "vqrdmulh.s16 q6, q3, q3", "vrshr.s16 q6, q6, #2")
    yield from ("vqrdmulh.s16 q7, q3, q2", "vadd.i16 q6, q6, q7", "vqrdmulh.s16 q6, q6, r3", "vrhadd.s16 q6, q6, q3")
    yield from ("vadd.i16 q6, q6, q2", "vqrdmulh.s16 q6, q6, r2", "vqadd.s16 q2, q6, r2")
    for stage in range(bits + 2):
        yield from (f"vshl.i16 q3, q1, #{2 + bits - stage}", "vpt.s16 lt, q3, zr")
        is_zero = stage >= stages_of(bits)
        yield "veort q2, q2, q2" if is_zero else f"vqrdmulht.s16 q2, q2, {_FACTORS[stage]}"
    yield from ("vhadd.u16 q2, q2, r12", "vqrdmulh.s16 q3, q2, r11", "vadd.i16 q3, q3, r10")
    for _ in range(3):
        yield from ("vqrdmulh.s16 q6, q2, q3", "vsub.i16 q6, q4, q6", "vqrdmulh.s16 q6, q3, q6")
        yield from ("vshl.i16 q6, q6, #2", "vadd.i16 q3, q3, q6")
    if is_tanh:
        yield from ("vsub.i16 q3, q3, q4", "vqshl.s16 q3, q3, #2", "vpt.s16 lt, q0, zr", "vnegt.s16 q3, q3")
        yield from ("vpt.i16 eq, q0, zr", "veort q3, q3, q3")
    else:
        # 32767 less a number without sign is its complement.
        yield from ("vqadd.s16 q3, q3, q3", "vptt.s16 lt, q0, zr", "vmvnt q3, q3", "vbict.i16 q3, #0x8000")
        yield from ("vpt.i16 eq, q0, zr", "vmovt.i16 q3, #0x4000")
    yield from ("vstrh.16 q3, [r1], #16", "letp lr, 1b", *_RESTORE)


def sampled_function(by: SigmoidNumbers, is_tanh: bool) -> tuple[str, str]:
    """Return the name and the definition of tflite-micro's function (from, to, count, samples)."""
    name = f"mve_{'tanh' if is_tanh else 'logistic'}_samples_{by.multiplier}_{by.places}"
    return name, naked(name, (*_PARAMETERS, "const uint32_t *samples"), _sampled_lines(by, is_tanh))


def _sampled_lines(by: SigmoidNumbers, is_tanh: bool) -> Iterator[str]:
    """Yield the function: the input is in q0, its magnitude in q1."""
    bits = 8 if is_tanh else 9
    # The greatest magnitude of an input, which is rounded.
    is_bounded = (32768 * by.multiplier + (1 << by.places >> 1)) >> by.places + bits < 255
    yield from ("push {r4, lr}", "vpush {d8-d11}", *constant("r4", by.multiplier))
    yield from constant("r12", (128 - (1 << 23)) if is_tanh else 512)
    yield from ("vmov.i32 q4, #0xff", "vmov.i32 q5, #0xff")
    if not is_tanh:
        yield "vorr.i32 q4, #0x100"
    yield from ("dlstp.32 lr, r2", "mov r2, #32768", "1:", "vldrh.s32 q0, [r0], #8", "vmul.i32 q0, q0, r4")
    if by.places:
        yield f"vrshr.s32 q0, q0, #{by.places}"
    yield from ("vabs.s32 q1, q0", f"vshr.u32 q2, q1, #{bits}", "vand q1, q1, q4")
    if not is_bounded:
        yield "vmin.u32 q2, q2, q5"
    yield from ("vldrw.u32 q3, [r3, q2, uxtw #2]", "vmullb.u16 q1, q1, q3", "vshr.u32 q3, q3, #16")
    yield from (f"vshl.i32 q3, q3, #{bits}", "vadd.i32 q1, q1, q3", "vadd.i32 q1, q1, r12")
    yield f"vshr.s32 q1, q1, #{8 if is_tanh else 10}"
    if is_tanh:
        yield from ("vpt.s32 lt, q0, zr", "vnegt.s32 q1, q1")
    else:
        yield from ("vptt.s32 lt, q0, zr", "vnegt.s32 q1, q1", "vaddt.i32 q1, q1, r2")
    yield from ("vstrh.32 q1, [r1], #8", "letp lr, 1b", "vpop {d8-d11}", "pop {r4, pc}")


def cell_function(numbers: LstmNumbers, is_coupled: bool) -> tuple[str, str]:
    """Return the name and the definition of void f(input gates, forget gates, new cells, count, cells).

    Coupled gates have no input gates; `new cells` are the functions of their gate.
    """
    rule = "micro" if numbers.is_micro else "litert"
    clip = "" if numbers.clip is None else f"_clip{numbers.clip}"
    name = f"mve_cell_{rule}_m{-numbers.power}{'_coupled' * is_coupled}{clip}"
    pointers = ("const int16_t *enter", "const int16_t *forget", "const int16_t *fresh", "int32_t count")
    return name, naked(name, (*pointers, "int16_t *cell"), _cell_lines(numbers, is_coupled))


def _cell_lines(numbers: LstmNumbers, is_coupled: bool) -> Iterator[str]:
    products = numbers.products
    places = (15, 30 + numbers.power) if products is None else (-products[0].shift, -products[1].shift)

    def rounded(value: str, right: int) -> Iterator[str]:
        if products is not None:
            # The product times 2**30, doubled: its high half, rounded.
            yield f"vrshr.s32 {value}, {value}, #1"
        yield from (
            f"vshr.s32 q2, {value}, #31",
            f"vadd.i32 {value}, {value}, q2",
            f"vrshr.s32 {value}, {value}, #{right}",
        )
        if products is not None:
            yield from (f"vqmovnb.s32 {value}, {value}", f"vmovlb.s16 {value}, {value}")

    yield from ("push {r4, lr}", "ldr r4, [sp, #8]")
    if numbers.clip is not None:
        yield from (*constant("r12", numbers.clip), "vdup.32 q3, r12")
    if is_coupled:
        yield "movw r0, #32767"
    yield from ("dlstp.32 lr, r3", "1:")
    yield from ("vldrh.s32 q0, [r1], #8", "vldrh.s32 q1, [r4]")
    yield "vmul.i32 q0, q0, q1"
    yield from rounded("q0", places[0])
    if is_coupled:
        yield from ("vldrh.s32 q1, [r1, #-8]", "vneg.s32 q1, q1", "vadd.i32 q1, q1, r0")
    else:
        yield "vldrh.s32 q1, [r0], #8"
    yield from ("vldrh.s32 q2, [r2], #8", "vmul.i32 q1, q1, q2")
    yield from rounded("q1", places[1])
    yield "vadd.i32 q0, q0, q1"
    if numbers.clip is not None:
        yield from ("vmin.s32 q0, q0, q3", "vneg.s32 q1, q3", "vmax.s32 q0, q0, q1")
    else:
        yield "vqmovnb.s32 q0, q0"
    yield from ("vstrh.32 q0, [r4], #8", "letp lr, 1b", "pop {r4, pc}")


def result_function(hidden: Scaling, zero: int, bits: int) -> tuple[str, str]:
    """Return the name and the definition of void f(output gates, functions of cells, count, results)."""
    fixed, right = int(hidden.multipliers[0]), int(hidden.shifts[0])
    name = f"mve_hidden_{bits}_{fixed}_{right}_{zero}".replace("-", "m")
    pointers = ("const int16_t *gate", "const int16_t *curve", "int32_t count", f"int{bits}_t *result")
    lines = ["push {r4, lr}", *constant("r4", fixed), *constant("r12", zero), "dlstp.32 lr, r2", "1:"]
    lines += ["vldrh.s32 q0, [r0], #8", "vldrh.s32 q1, [r1], #8", "vmul.i32 q0, q0, q1", "vqrdmulh.s32 q0, q0, r4"]
    lines += ["vshr.s32 q1, q0, #31", "vadd.i32 q0, q0, q1", f"vrshr.s32 q0, q0, #{right}", "vadd.i32 q0, q0, r12"]
    lines += ["vqmovnb.s32 q0, q0"]
    lines += ["vqmovnb.s16 q0, q0", "vstrb.32 q0, [r3], #4"] if bits == 8 else ["vstrh.32 q0, [r3], #8"]
    return name, naked(name, pointers, [*lines, "letp lr, 1b", "pop {r4, pc}"])

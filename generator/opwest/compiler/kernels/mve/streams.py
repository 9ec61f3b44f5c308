# SPDX-License-Identifier: Apache-2.0
"""Copies of columns to the stream of `products.py`: for each two of them vectors [step][column], and their sums.

Rows whose elements do not follow each other are copied as well: to whole vectors, with zeros at their end.
"""

from __future__ import annotations

from opwest.compiler.kernels.mve.epilogue import Assembly

LAYOUT = ("column", "step", "length", "zero", "constant")
"""The int32 numbers of a copy: bytes between columns and between their elements, elements, and from a sum s of a column
to its number: constant - zero * s."""


def function_of(is_spread: bool, has_sums: bool, is_short: bool) -> tuple[str, str]:
    """Return the name and the definition of void f(to, from, layout, pairs).

    `is_spread`: elements of a column do not follow each other. `is_short`: a column is one vector.
    What is behind the elements of a column in its last vector is undefined: rows have zeros there.
    """
    code = Assembly()
    code.add("push {r4-r11, lr}", "ldrd r4, r12, [r2]", "ldr r6, [r2, #8]", "ldrd r9, r11, [r2, #12]")
    if is_spread:
        code.add("movs r8, #0", "vidup.u16 q3, r8, #1", "vmul.i16 q3, q3, r12", "lsl r12, r12, #3")
    is_short = is_short and not is_spread
    code.add(*(["vctp.8 r6"] if is_short else []), "1:", "mov r5, r1", "add r7, r1, r4")
    code.add(*(["movs r8, #0", "movs r10, #0"] if has_sums and not is_short else []))
    if is_spread:
        _spread(code, has_sums)
    elif is_short:
        code.add("vpstt", "vldrbt.u8 q0, [r5]", "vldrbt.u8 q1, [r7]", "vstrb.8 q0, [r0], #16", "vstrb.8 q1, [r0], #16")
        code.add(*(["vaddv.s8 r8, q0", "vaddv.s8 r10, q1"] if has_sums else []))
    else:
        code.add("dlstp.8 lr, r6", "2:", "vldrb.8 q0, [r5], #16", "vldrb.8 q1, [r7], #16")
        code.add("vstrb.8 q0, [r0], #16", "vstrb.8 q1, [r0], #16")
        code.add(*(["vaddva.s8 r8, q0", "vaddva.s8 r10, q1"] if has_sums else []), "letp lr, 2b")
    if has_sums:
        code.add("mls r8, r8, r9, r11", "mls r10, r10, r9, r11", "strd r8, r10, [r0], #8")
    code.add("add r1, r1, r4, lsl #1", "subs r3, #1", "bne 1b", "pop {r4-r11, pc}")
    name = "mve_pack" + "_spread" * is_spread + "_short" * is_short + "_sums" * has_sums
    parameters = ["int32_t *to", "const int8_t *from", "const int32_t *layout", "int pairs"]
    return name, code.function(name, parameters, "Two columns at a time as vectors.")


def rows_function() -> tuple[str, str]:
    """Return the name and the definition of void f(to, from, layout, count): lines one byte apart become rows."""
    code = Assembly()
    code.add("push {r4-r7, lr}", "ldrd r4, r6, [r2, #4]", "movs r2, #0", "vidup.u16 q3, r2, #1", "vmul.i16 q3, q3, r4")
    code.add("lsl r4, r4, #3", "1:", "mov r5, r1", "mov r7, r6", "2:")
    for number in range(2):
        code.add("vctp.16 r7", "vpst", f"vldrbt.s16 q{number}, [r5, q3]", "add r5, r4", "subs r7, #8")
        # The predicate takes a number without a sign.
        code.add(*(["it lt", "movlt r7, #0"] if number == 0 else []))
    code.add("vstrb.16 q0, [r0], #8", "vstrb.16 q1, [r0], #8", "cmp r7, #0", "bgt 2b")
    code.add("adds r1, #1", "subs r3, #1", "bne 1b", "pop {r4-r7, pc}")
    parameters = ["int8_t *to", "const int8_t *from", "const int32_t *layout", "int count"]
    return "mve_pack_rows", code.function("mve_pack_rows", parameters, "Lines as rows of whole vectors.")


def _spread(code: Assembly, has_sums: bool) -> None:
    """Append the copy of two columns: 8 elements of each are gathered."""

    def half(place: int, predicate: str) -> None:
        t = "t" if predicate else ""
        code.add(*([predicate] if predicate else []), f"vldrb{t}.s16 q0, [r5, q3]", f"vldrb{t}.s16 q1, [r7, q3]")
        code.add(f"vstrb.16 q0, [r0, #{place}]", f"vstrb.16 q1, [r0, #{16 + place}]")
        code.add(*(["vaddva.s16 r8, q0", "vaddva.s16 r10, q1"] if has_sums else []), "add r5, r12", "add r7, r12")

    code.add("lsrs lr, r6, #4", "beq 3f", "dls lr, lr", "2:")
    half(0, "")
    half(8, "")
    code.add("adds r0, #32", "le lr, 2b", "3:", "ands lr, r6, #15", "beq 4f", "vctp.16 lr")
    half(0, "vpstt")
    code.add("subs lr, #8", "ble 5f", "vctp.16 lr")
    half(8, "vpstt")
    code.add("5:", "adds r0, #32", "4:")

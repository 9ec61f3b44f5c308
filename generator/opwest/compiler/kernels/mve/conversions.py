# SPDX-License-Identifier: Apache-2.0
"""float32 numbers as quantised values, and back: 4 at a time, with the divisions of the FPU.

Processors whose vectors have no floating point compute them in C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opwest.compiler.emission.function import Call, Lines, c_type, call_for
from opwest.compiler.ir.elements import Dequantised, Quantised
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.assembly import NAKED, naked
from opwest.compiler.semantics.elementwise import QuantizeNumbers

HAS_FLOAT = "defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)"
LEAST_SCALE = 2.0**-60
"""Vectors flush numbers below 2**-126 to 0: results are the same for scales from this one on, and below its inverse."""
LOADS = {"int8": ("vldrb.s32", 4), "uint8": ("vldrb.u32", 4), "int16": ("vldrh.s32", 8)}
"""The load of 4 values, and their bytes."""
START = ("push {r4-r6, lr}", "ldm r2, {r2, r4, r5, r6}")
END = "pop {r4-r6, pc}"


def conversion_call(operation: Elementwise, function: Quantised | Dequantised) -> Call | None:
    """Return the call; None for other dtypes, and for extreme scales."""
    data, [result] = operation.inputs[0], operation.results
    if isinstance(function, Quantised):
        dtypes, scale = (result.dtype, data.dtype), function.numbers.scale
    else:
        dtypes, scale = (data.dtype, result.dtype), function.scale
    if dtypes[0] not in LOADS or dtypes[1] != "float32" or not LEAST_SCALE < scale < 1 / LEAST_SCALE:
        return None
    if isinstance(function, Quantised):
        name, text, numbers = _quantise(function.numbers, result.dtype)
    else:
        name, text = _dequantise(data.dtype)
        numbers = [function.scale, 0.0, 0.0, function.zero]
    lines = Lines()
    lines.add(f"{name}(data, result, numbers, {data.size});")
    words = [*np.asarray(numbers[:3], np.float32).view(np.int32).tolist(), numbers[3]]
    arguments = {"data": data, "numbers": np.asarray(words, np.int32)}
    base = "quantize" if isinstance(function, Quantised) else "dequantize"
    return call_for(operation, base, lines, arguments, definitions=(NAKED, text))


def _guarded(name: str, kinds: tuple[str, str], lines: Sequence[str], values: Sequence[str], c: Sequence[str]) -> str:
    """Return the definition of void f(data, result, numbers, count): instructions, and C for an element."""
    parameters = [f"const {c_type(kinds[0])} *data", f"{c_type(kinds[1])} *result", "const int32_t *numbers"]
    parameters.append("int32_t count")
    body = Lines()
    body.add(f"float {', '.join(values)};", "")
    body.add(*(f"__builtin_memcpy(&{value}, numbers + {place}, 4);" for place, value in enumerate(values)))
    with body.block("for (int32_t i = 0; i < count; i++)"):
        body.add(*c)
    fallback = f"static void {name}({', '.join(parameters)})\n{{\n{body}}}\n"
    return f"#if {HAS_FLOAT}\n{naked(name, parameters, [*START, *lines, END])}#else\n{fallback}#endif\n"


def _quantise(given: QuantizeNumbers, dtype: str) -> tuple[str, str, list[float]]:
    """Return the name and the definition of the function, and its numbers: the scale or its inverse, limits, zero."""
    fraction, exponent = math.frexp(given.scale)
    is_power = fraction == 0.5 and abs(exponent) < 100
    load, size = LOADS[dtype]
    store = load.replace("ldr", "str").split(".")[0]
    limits = ["vmaxnm.f32 q0, q0, q1", "vminnm.f32 q0, q0, q2", "vcvta.s32.f32 q0, q0", "vadd.i32 q0, q0, r6"]
    lines = ["vdup.32 q1, r4", "vdup.32 q2, r5"]
    if is_power:
        lines += ["dlstp.32 lr, r3", "1: vldrw.u32 q0, [r0], #16", "vmul.f32 q0, q0, r2", *limits]
        lines += [f"{store}.32 q0, [r1], #{size}", "letp lr, 1b"]
    else:
        # The elements of q0 are s0 to s3. Instructions of the FPU have no predicate.
        lines += ["vmov s12, r2", "1: vctp.32 r3", "vpst", "vldrwt.u32 q0, [r0], #16"]
        lines += [*(f"vdiv.f32 s{lane}, s{lane}, s12" for lane in range(4)), *limits]
        lines += ["vpst", f"{store}t.32 q0, [r1], #{size}", "subs r3, #4", "bgt 1b"]
    name = f"mve_quantise_{dtype}_{'multiply' if is_power else 'divide'}"
    scaled = f"data[i] {'*' if is_power else '/'} factor"
    # As round_quotient().
    c = [f"const float value = {scaled};", "const float inside = value > low ? (value < high ? value : high) : low;"]
    c += ["const int32_t whole = (int32_t)inside;", "const float rest = inside - (float)whole;", ""]
    c += [f"result[i] = ({c_type(dtype)})(whole + (rest >= 0.5f) - (rest <= -0.5f) + numbers[3]);"]
    text = _guarded(name, ("float32", dtype), lines, ("factor", "low", "high"), c)
    factor = 1 / given.scale if is_power else given.scale
    return name, text, [factor, float(given.low - given.zero), float(given.high - given.zero), given.zero]


def _dequantise(dtype: str) -> tuple[str, str]:
    """Return the name and the definition of the function."""
    load, size = LOADS[dtype]
    lines = ["dlstp.32 lr, r3", f"1: {load} q0, [r0], #{size}", "vsub.i32 q0, q0, r6", "vcvt.f32.s32 q0, q0"]
    lines += ["vmul.f32 q0, q0, r2", "vstrw.32 q0, [r1], #16", "letp lr, 1b"]
    name = f"mve_dequantise_{dtype}"
    return name, _guarded(
        name, (dtype, "float32"), lines, ("scale",), ["result[i] = scale * (float)(data[i] - numbers[3]);"]
    )

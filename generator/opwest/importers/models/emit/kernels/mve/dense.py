# SPDX-License-Identifier: Apache-2.0
"""int8 layers of a single row: each vector of the data is multiplied by those of 8 channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.importers.models.emit.function import Call, Function, Parameter
from opwest.importers.models.emit.kernels.mve.assembly import NAKED, Assembly
from opwest.importers.models.emit.kernels.mve.layers import layer_of
from opwest.importers.models.emit.kernels.mve.ending import Ending, narrow, scale
from opwest.importers.models.emit.kernels.mve.pairs import padded
from opwest.importers.models.emit.registry import emits
from opwest.importers.models.emit.text import Lines
from opwest.importers.models.ir.operations import Convolution

SUMS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")
WIDE = len(SUMS)
UNROLLED = 8
"""Rows of more vectors are loops."""
SAVED = 16
"""Bytes of the stack: the data, the zero point, the end of the results."""


@emits(Convolution, "mve-dense")
def render(operation: Convolution) -> Call | None:
    """Return the call; None for several rows, other dtypes, and ends that differ."""
    data, result = operation.inputs[0], operation.results[0]
    results, kh, kw, length = operation.weights.shape
    if (kh, kw) != (1, 1) or data.size != length or result.size != results:
        return None
    layer = layer_of(operation)
    if layer is None:
        return None
    weights, bias, ending = layer
    name, text = _function(length, results, ending)
    lines = Lines()
    lines.add(f"{name}(data, numbers, result);")
    parameters = (Parameter("data", "int8"), Parameter("numbers", "int32"), Parameter("result", "int8", "out"))
    function = Function("dense", parameters, str(lines), definitions=(NAKED, text))
    content = _packed(weights.reshape(results, length), bias, ending)
    return Call(function, (data, content, result), operation.label)


def _packed(weights: Any, bias: Any, ending: Ending) -> Any:
    """Return numbers, then for each 8 channels weights [step][channel][16], and numbers of even and odd channels."""
    results, length = weights.shape
    wide = np.zeros((results, padded(length)), np.int8)
    wide[:, :length] = weights
    parts = [ending.numbers(0).view(np.int8)]
    for start in range(0, results, WIDE):
        chosen = wide[start : start + WIDE]
        parts.append(chosen.reshape(len(chosen), -1, 16).transpose(1, 0, 2).reshape(-1))
        for first in range(2):
            places = [start + first + 2 * one for one in range(4)]
            parts.append(ending.group(bias, [one if one < results else -1 for one in places]))
    return np.concatenate(parts).view(np.int32)


def _function(length: int, results: int, ending: Ending) -> tuple[str, str]:
    """Return the name and the definition of void f(data, numbers, result)."""
    name = f"mve_dense_{length}x{results}_{ending.name}"
    is_loop = padded(length) // 16 > UNROLLED
    code = Assembly()
    code.add("push {r4-r11, lr}")
    if ending.has_clamp:
        code.add("vpush {d8-d11}")
    code.add(f"sub sp, #{SAVED}", "mov r5, r1", "mov r7, r2", "mov r1, r0", "ldr r3, [r5]", "str r1, [sp]")
    if ending.has_clamp:
        code.add("ldrsb r4, [r5, #4]", "ldrsb r6, [r5, #8]", "vdup.8 q4, r4", "vdup.8 q5, r6")
    code.add("adds r5, #16")
    if length % 16:
        code.add(f"movs r0, #{length % 16}", "vctp.8 r0")
    whole, rest = results // WIDE, results % WIDE
    if whole:
        if whole > 1:
            code.add("mov r9, r7")
            code.plus("r9", whole * WIDE)
            code.add("2:")
        _block(code, (length, WIDE, is_loop), ending)
        code.add("vstrb.16 q0, [r7], #8")
        if whole > 1:
            code.add("cmp r7, r9", "bne 2b")
    if rest:
        _block(code, (length, rest, is_loop), ending)
        code.add(f"movs r0, #{rest}", "vctp.16 r0", "vpst", "vstrbt.16 q0, [r7]")
    code.add(f"add sp, #{SAVED}")
    if ending.has_clamp:
        code.add("vpop {d8-d11}")
    code.add("pop {r4-r11, pc}")
    parameters = ["const int8_t *data", "const int32_t *numbers", "int8_t *result"]
    return name, code.function(name, parameters, f"A row of {length} elements times {results} channels.")


def _block(code: Assembly, shape: tuple[int, int, bool], ending: Ending) -> None:
    """Append the results of some channels, in the even bytes of q0."""
    length, channels, is_loop = shape
    whole, rest = divmod(length, 16)
    if not is_loop:
        for step in range(whole):
            _step(code, channels, f"vldrb.8 q0, [r1, #{16 * step}]", step == 0)
        if rest:
            _step(code, channels, f"vldrbt.u8 q0, [r1, #{16 * whole}]", whole == 0)
    else:
        load = "vldrb.8 q0, [r1], #16"
        size = min(range(2, 9), key=lambda one: 16 * ((whole - 1) // one) + (2 * channels + 1) * ((whole - 1) % one + one))
        turns, more = divmod(whole - 1, size)
        _step(code, channels, load, True)
        for _ in range(more):
            _step(code, channels, load, False)
        code.constant("r11", turns)
        code.add("5:")
        for _ in range(size):
            _step(code, channels, load, False)
        code.add("subs r11, #1", "bne 5b")
        if rest:
            _step(code, channels, "vldrbt.u8 q0, [r1]", False)
        code.add("ldr r1, [sp]")
    code.add("vmov q0[2], q0[0], r0, r8", "vmov q1[2], q1[0], r2, r10")
    code.add("vmov q0[3], q0[1], r4, r12", "vmov q1[3], q1[1], r6, lr")
    scale(code, ending, ["q0"], "r5", ("q2", "q3"))
    scale(code, ending, ["q1"], "r5", ("q2", "q3"))
    code.add("vqmovnb.s32 q0, q0", "vqmovnt.s32 q0, q1")
    narrow(code, ending, "q0", "r3", ("q4", "q5"))


def _step(code: Assembly, channels: int, load: str, is_first: bool) -> None:
    """Append a vector of the data times those of the channels."""
    if load.startswith("vldrbt"):
        code.add("vpst")
    name = "vmladav.s8" if is_first else "vmladava.s8"
    code.add(load, "vldrw.32 q1, [r5], #16")
    for channel in range(channels):
        vector, other = ("q1", "q2") if channel % 2 == 0 else ("q2", "q1")
        if channel + 1 < channels:
            code.add(f"vldrw.32 {other}, [r5], #16")
        code.add(f"{name} {SUMS[channel]}, q0, {vector}")

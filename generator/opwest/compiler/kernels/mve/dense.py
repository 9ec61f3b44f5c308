# SPDX-License-Identifier: Apache-2.0
"""Layers of a single row: each vector of the data is multiplied by those of 8 channels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.assembly import NAKED
from opwest.compiler.kernels.mve.epilogue import (
    Assembly,
    Epilogue,
    add_steps,
    finish,
    gather_sums,
    narrow,
    scale,
    start,
)
from opwest.compiler.kernels.mve.pairs import ITEMS, is_single, layer_of, padded

SUMS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")
WIDE = len(SUMS)
UNROLLED = 8
"""Rows of more vectors are loops."""
SAVED = 16
"""Bytes of the stack: the data, the zero point, the end of the results."""


@emits(Convolution, "mve-dense")
def render(operation: Convolution) -> Call | None:
    """Return the call; None for several rows, other dtypes, and ends that differ."""
    data = operation.inputs[0]
    if not is_single(operation):
        return None
    results, length = len(operation.weights), data.size
    layer = layer_of(operation)
    if layer is None:
        return None
    weights, bias, ending = layer
    item = ITEMS[data.dtype]
    name, text = _function(length, results, ending, item)
    lines = Lines()
    lines.add(f"{name}(data, numbers, result);")
    numbers = _packed(weights, bias, ending, item)
    return call_for(operation, "dense", lines, {"data": data, "numbers": numbers}, definitions=(NAKED, text))


def _packed(weights: Any, bias: Any, ending: Epilogue, item: int) -> Any:
    """Return numbers, then for each 8 channels weights [step][channel][lane], and numbers of even and odd channels."""
    results, length = weights.shape
    wide = np.pad(weights, ((0, 0), (0, padded(length * item) // item - length)))
    parts = [ending.numbers(0).view(np.int8)]
    for begin in range(0, results, WIDE):
        chosen = wide[begin : begin + WIDE]
        parts.append(chosen.reshape(len(chosen), -1, 16 // item).transpose(1, 0, 2).reshape(-1))
        for first in range(2):
            places = [begin + first + 2 * lane for lane in range(4)]
            parts.append(ending.group(bias, [place if place < results else -1 for place in places]))
    return np.concatenate(parts).view(np.int32)


def _function(length: int, results: int, ending: Epilogue, item: int) -> tuple[str, str]:
    """Return the name and the definition of void f(data, numbers, result)."""
    name = f"mve_dense_{length}x{results}_{ending.name}{'_16' if item == 2 else ''}"
    size = length * item
    is_loop = padded(size) // 16 > UNROLLED
    code = Assembly()
    moves = [f"sub sp, #{SAVED}", "mov r5, r1", "mov r7, r2", "mov r1, r0", "ldr r3, [r5]", "str r1, [sp]"]
    start(code, ending, moves, "r5", item)
    code.add("adds r5, #16")
    if size % 16:
        code.add(f"movs r0, #{size % 16}", "vctp.8 r0")
    whole, rest = results // WIDE, results % WIDE
    if whole:
        if whole > 1:
            code.add("mov r9, r7")
            code.plus("r9", whole * WIDE * item)
            code.add("2:")
        _block(code, (size, WIDE, is_loop), ending, item)
        code.add("vstrb.16 q0, [r7], #8" if item == 1 else "vstrh.16 q0, [r7], #16")
        if whole > 1:
            code.add("cmp r7, r9", "bne 2b")
    if rest:
        _block(code, (size, rest, is_loop), ending, item)
        code.add(f"movs r0, #{rest}", "vctp.16 r0", "vpst", f"vstr{'b' if item == 1 else 'h'}t.16 q0, [r7]")
    finish(code, ending, SAVED)
    kind = f"int{8 * item}_t"
    parameters = [f"const {kind} *data", "const int32_t *numbers", f"{kind} *result"]
    return name, code.function(name, parameters, f"A row of {length} elements times {results} channels.")


def _block(code: Assembly, shape: tuple[int, int, bool], ending: Epilogue, item: int) -> None:
    """Append the results of some channels, in the even bytes of q0 or in all lanes."""
    size, channels, is_loop = shape
    whole, rest = divmod(size, 16)
    if not is_loop:
        for step in range(whole):
            _step(code, (channels, item), f"vldrb.8 q0, [r1, #{16 * step}]", step == 0)
        if rest:
            _step(code, (channels, item), f"vldrbt.u8 q0, [r1, #{16 * whole}]", whole == 0)
    else:
        load = partial(_step, code, (channels, item), "vldrb.8 q0, [r1], #16")
        add_steps(code, whole, range(2, 9), 2 * channels + 1, load)
        if rest:
            _step(code, (channels, item), "vldrbt.u8 q0, [r1]", False)
        code.add("ldr r1, [sp]")
    gather_sums(code)
    scale(code, ending, ["q0"], "r5", ("q2", "q3"))
    scale(code, ending, ["q1"], "r5", ("q2", "q3"))
    code.add("vqmovnb.s32 q0, q0", "vqmovnt.s32 q0, q1")
    narrow(code, ending, "q0", "r3", item)


def _step(code: Assembly, shape: tuple[int, int], load: str, is_first: bool) -> None:
    """Append a vector of the data times those of the channels."""
    channels, item = shape
    weights = "vldrw.32 {}, [r5], #16" if item == 1 else "vldrb.s16 {}, [r5], #8"
    if load.startswith("vldrbt"):
        code.add("vpst")
    name = f"vmladav{'' if is_first else 'a'}.s{8 * item}"
    code.add(load, weights.format("q1"))
    for channel in range(channels):
        vector, other = ("q1", "q2") if channel % 2 == 0 else ("q2", "q1")
        if channel + 1 < channels:
            code.add(weights.format(other))
        code.add(f"{name} {SUMS[channel]}, q0, {vector}")

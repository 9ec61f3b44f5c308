# SPDX-License-Identifier: Apache-2.0
"""Layers of a single row: each vector of the data is multiplied by those of 8 channels.

Weights of 4 bits are nibbles in flash: a byte has those of two channels. A shift to the left makes the product of the
first one 16 times as large, which a shift of its sums undoes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.emission.nibbles import are_nibbles
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
MAX_LENGTH = 1 << 16
"""The most elements of a row of nibbles: 16 times their sums have 32 bits."""
SAVED = 16
"""Bytes of the stack: the data, the zero point, the end of the results."""


@emits(Convolution, "mve-dense")
def render(operation: Convolution) -> Call | None:
    """Return the call; None for several rows, other dtypes, and ends that differ."""
    layer = layer_of(operation) if is_single(operation) else None
    return None if layer is None else _call(operation, layer, has_nibbles=False)


@emits(Convolution, "mve-nibbles")
def render_nibbles(operation: Convolution) -> Call | None:
    """Return the call; None for what `render` does not accept, int16 data, and weights of more than 4 bits."""
    layer = layer_of(operation) if is_single(operation) else None
    if layer is None or operation.inputs[0].dtype != "int8" or operation.inputs[0].size > MAX_LENGTH:
        return None
    return _call(operation, layer, has_nibbles=True) if are_nibbles(layer[0]) else None


def _call(operation: Convolution, layer: tuple[Any, Any, Epilogue], *, has_nibbles: bool) -> Call:
    data, (weights, bias, ending) = operation.inputs[0], layer
    item = ITEMS[data.dtype]
    name, text = _function(data.size, len(weights), ending, _Weights(item, has_nibbles))
    lines = Lines()
    lines.add(f"{name}(data, numbers, result);")
    numbers = _packed(weights, bias, ending, _Weights(item, has_nibbles))
    return call_for(operation, "dense", lines, {"data": data, "numbers": numbers}, definitions=(NAKED, text))


@dataclass(frozen=True)
class _Weights:
    """The form of the weights."""

    item: int
    """The bytes of an element of the data."""
    has_nibbles: bool

    def packed(self, vectors: Any) -> Any:
        """Return weights [step,channel,lane] as bytes in the order of their loads."""
        if not self.has_nibbles:
            return vectors.reshape(-1)
        steps, channels, lanes = vectors.shape
        pairs = np.pad(vectors, ((0, 0), (0, channels % 2), (0, 0))).reshape(steps, -1, 2, lanes)
        return (pairs[:, :, 1] << 4 | pairs[:, :, 0] & 15).reshape(-1)


def _packed(weights: Any, bias: Any, ending: Epilogue, form: _Weights) -> Any:
    """Return numbers, then for each 8 channels weights [step][channel][lane], and numbers of even and odd channels."""
    results, length = weights.shape
    item = form.item
    wide = np.pad(weights, ((0, 0), (0, padded(length * item) // item - length)))
    parts = [ending.numbers(0).view(np.int8)]
    for begin in range(0, results, WIDE):
        chosen = wide[begin : begin + WIDE]
        parts.append(form.packed(chosen.reshape(len(chosen), -1, 16 // item).transpose(1, 0, 2)))
        for first in range(2):
            places = [begin + first + 2 * lane for lane in range(4)]
            parts.append(ending.group(bias, [place if place < results else -1 for place in places]))
    return np.concatenate(parts).view(np.int32)


def _function(length: int, results: int, ending: Epilogue, form: _Weights) -> tuple[str, str]:
    """Return the name and the definition of void f(data, numbers, result)."""
    item = form.item
    suffix = "_nibbles" if form.has_nibbles else "_16" if item == 2 else ""
    name = f"mve_dense_{length}x{results}_{ending.name}{suffix}"
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
        _block(code, (size, WIDE, is_loop), ending, form)
        code.add("vstrb.16 q0, [r7], #8" if item == 1 else "vstrh.16 q0, [r7], #16")
        if whole > 1:
            code.add("cmp r7, r9", "bne 2b")
    if rest:
        _block(code, (size, rest, is_loop), ending, form)
        code.add(f"movs r0, #{rest}", "vctp.16 r0", "vpst", f"vstr{'b' if item == 1 else 'h'}t.16 q0, [r7]")
    finish(code, ending, SAVED)
    kind = f"int{8 * item}_t"
    parameters = [f"const {kind} *data", "const int32_t *numbers", f"{kind} *result"]
    return name, code.function(name, parameters, f"A row of {length} elements times {results} channels.")


def _block(code: Assembly, shape: tuple[int, int, bool], ending: Epilogue, form: _Weights) -> None:
    """Append the results of some channels, in the even bytes of q0 or in all lanes."""
    size, channels, is_loop = shape
    whole, rest = divmod(size, 16)
    if not is_loop:
        for step in range(whole):
            _step(code, (channels, form), f"vldrb.8 q0, [r1, #{16 * step}]", step == 0)
        if rest:
            _step(code, (channels, form), f"vldrbt.u8 q0, [r1, #{16 * whole}]", whole == 0)
    else:
        load = partial(_step, code, (channels, form), "vldrb.8 q0, [r1], #16")
        add_steps(code, whole, range(2, 9), (5 * channels // 2 if form.has_nibbles else 2 * channels) + 1, load)
        if rest:
            _step(code, (channels, form), "vldrbt.u8 q0, [r1]", False)
        code.add("ldr r1, [sp]")
    gather_sums(code)
    if form.has_nibbles:
        code.add("vshr.s32 q0, q0, #4")
    scale(code, ending, ["q0"], "r5", ("q2", "q3"))
    scale(code, ending, ["q1"], "r5", ("q2", "q3"))
    code.add("vqmovnb.s32 q0, q0", "vqmovnt.s32 q0, q1")
    narrow(code, ending, "q0", "r3", form.item)


def _step(code: Assembly, shape: tuple[int, _Weights], load: str, is_first: bool) -> None:
    """Append a vector of the data times those of the channels."""
    channels, form = shape
    weights = "vldrw.32 {}, [r5], #16" if form.item == 1 else "vldrb.s16 {}, [r5], #8"
    if load.startswith("vldrbt"):
        code.add("vpst")
    name = f"vmladav{'' if is_first else 'a'}.s{8 * form.item}"
    code.add(load)
    if form.has_nibbles:
        for channel in range(0, channels, 2):
            code.add(weights.format("q3"), "vshl.i8 q1, q3, #4", f"{name} {SUMS[channel]}, q0, q1")
            if channel + 1 < channels:
                code.add("vshr.s8 q2, q3, #4", f"{name} {SUMS[channel + 1]}, q0, q2")
        return
    code.add(weights.format("q1"))
    for channel in range(channels):
        vector, other = ("q1", "q2") if channel % 2 == 0 else ("q2", "q1")
        if channel + 1 < channels:
            code.add(weights.format(other))
        code.add(f"{name} {SUMS[channel]}, q0, {vector}")

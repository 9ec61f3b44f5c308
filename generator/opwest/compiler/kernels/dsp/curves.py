# SPDX-License-Identifier: Apache-2.0
"""LOGISTIC and TANH of int16 elements, between samples."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.ir.elements import Sigmoid
from opwest.compiler.ir.operations import Elementwise
from opwest.compiler.kernels.assembly import NAKED, constant, naked
from opwest.compiler.kernels.dsp.gate_functions import sampled
from opwest.compiler.kernels.gates import sample_pairs

_PARAMETERS = ("const int16_t *from", "int16_t *to", "int32_t count", "const uint32_t *samples")


@emits(Elementwise, "dsp-curves")
def render(operation: Elementwise) -> Call | None:
    """Return the call; None for other functions."""
    function, [result] = operation.function, operation.results
    if not isinstance(function, Sigmoid):
        return None
    kind, numbers = function.kind.lower(), function.numbers
    name = f"{kind}_samples_{numbers.multiplier}_{numbers.places}"
    definition = naked(name, _PARAMETERS, _lines(numbers.multiplier, numbers.places, function.kind == "TANH"))
    lines = Lines()
    lines.add(f"{name}(data, result, {result.size}, samples);")
    arguments = {"data": operation.inputs[0], "samples": sample_pairs(function.kind == "LOGISTIC")}
    return call_for(operation, kind, lines, arguments, ("data",), definitions=(NAKED, definition))


def _lines(multiplier: int, places: int, is_tanh: bool) -> Iterator[str]:
    """Yield the function, with the registers of `sampled`: two elements for each turn, after another one."""

    def element() -> Iterator[str]:
        yield from ("ldrsh r0, [r2], #2", "mla r0, r0, r10, r11")
        yield f"asrs r0, r0, #{places}" if places else "cmp r0, #0"
        yield from (*sampled("r5", 8 if is_tanh else 9), "strh r5, [r3], #2")

    yield from ("push {r4-r11}", "mov r6, r3", "mov r3, r1", "lsr r4, r2, #1", "and r12, r2, #1", "mov r2, r0")
    yield from constant("r9" if is_tanh else "r8", 128 - (1 << 23) if is_tanh else 512)
    yield from (*constant("r10", multiplier), *constant("r11", 1 << places >> 1))
    yield from ("cmp r12, #0", "beq 1f", *element(), "1: cmp r4, #0", "beq 3f")
    yield from ("2:", *element(), *element(), "subs r4, r4, #1", "bne 2b", "3: pop {r4-r11}", "bx lr")

# SPDX-License-Identifier: Apache-2.0
"""SVDF layers with int8 data and an int16 state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opwest.compiler.emission.function import Call, Lines, Parameter, emits
from opwest.compiler.ir.operations import Filter
from opwest.compiler.kernels.assembly import NAKED, naked, repeated
from opwest.compiler.kernels.dsp.gate_sums import MAX_PACKED_LEFT, SUMS, WIDEN, add_row, packs, row_words, stream, sums
from opwest.compiler.kernels.filters import Filters, call_of_filters, filters_of

_WORDS = ("r8", "r9", "r10", "r11")


@emits(Filter, "dsp-svdf")
def render(operation: Filter) -> Call | None:
    """Return the call; None for other dtypes, and numbers that do not fit."""
    filters = filters_of(operation)
    if filters is None:
        return None
    lefts, length = filters.scales.lefts, operation.inputs[0].shape[1]
    is_packed = lefts[0] <= MAX_PACKED_LEFT and packs(filters.products)
    if not is_packed and lefts[0] >= MAX_PACKED_LEFT:
        return None
    words = stream(filters.products, is_packed, lefts, True, False).reshape(-1)
    right = filters.scales.rights[0]
    kind = "packed" if is_packed else "halves"
    first = f"svdf_features_{kind}_{length}_{f'{lefts[0]}l' if lefts[0] else right}"
    second = f"svdf_times_{filters.rank}x{filters.memory}"
    parameters = ("const uint32_t *rows", "const int32_t *stream", "int16_t *fresh", "const int32_t *scale")
    definitions = (
        NAKED,
        WIDEN,
        naked(first, (*parameters, "const int32_t *end"), _features(length, is_packed, lefts, right)),
        naked(
            second,
            ("int16_t *state", "const int32_t *times", "const int16_t *fresh", "int32_t *sums", "int32_t units"),
            _times(filters),
        ),
    )
    lines = Lines(0)
    add_row(lines, "x", length, 0, False)
    lines.add(f"{first}(rows, stream, fresh, scale, stream + {len(words)});")
    lines.add(f"{second}(s, times, fresh, sums, {filters.units});")
    scale = np.asarray([filters.scales.multipliers[0], filters.scales.addends[0]], np.int32)
    constants = (("stream", words), ("scale", scale), ("times", _time_words(filters)))
    scratch = (Parameter("rows", "uint32", "scratch", elements=row_words(length)),)
    return call_of_filters(operation, filters, str(lines).splitlines(), constants, scratch, definitions)


def _features(length: int, is_packed: bool, lefts: tuple[int, ...], right: int) -> Iterator[str]:
    """Yield the function for the new elements of four filters at a time."""
    yield from ("push {r0, r2-r11, lr}", "1:", "ldr r0, [sp]")
    yield from sums(length, is_packed, lefts)
    yield from ("ldr r0, [sp, #8]", "ldrd r6, r7, [r0]", "ldr r0, [sp, #4]")
    for total, value in zip(SUMS, _WORDS, strict=True):
        yield f"smmlar {value}, {total}, r6, r7"
        if right:
            yield f"add {value}, {value}, {total}, asr #31"
        yield f"ssat {value}, #16, {value}" + (f", asr #{right}" if right else "")
        yield f"strh {value}, [r0], #2"
    yield from ("str r0, [sp, #4]", "ldr r6, [sp, #48]", "cmp r1, r6", "bne 1b", "pop {r0, r2-r11, pc}")


def _times(filters: Filters) -> Iterator[str]:
    """Yield the function for the sums of units: the state moves by an element while it is multiplied."""
    yield from ("push {r4-r11, lr}", "ldr lr, [sp, #36]", "1:", "ldr r4, [r1], #4")
    yield from repeated(filters.rank, list(_filter(filters.memory)))
    yield from ("str r4, [r3], #4", "subs lr, lr, #1", "bne 1b", "pop {r4-r11, pc}")


def _filter(memory: int) -> Iterator[str]:
    """Yield the products of a filter, which are added to r4."""
    words = -(-memory // 2)
    yield "ldrsh r7, [r2], #2"
    for start in range(0, words, len(_WORDS)):
        some = _WORDS[: words - start]
        yield f"ldm r1!, {{{', '.join(some)}}}" if len(some) > 1 else f"ldr {some[0]}, [r1], #4"
        for number, word in enumerate(some, start):
            place = 4 * number
            if 2 * number + 1 < memory - 1:
                yield from (f"ldr r5, [r0, #{place + 2}]", f"str r5, [r0, #{place}]", f"smlad r4, r5, {word}, r4")
            elif 2 * number + 1 == memory - 1:
                yield from (f"ldrh r5, [r0, #{place + 2}]", "pkhbt r5, r5, r7, lsl #16", f"str r5, [r0, #{place}]")
                yield f"smlad r4, r5, {word}, r4"
            else:
                yield from (f"strh r7, [r0, #{place}]", f"smlabb r4, r7, {word}, r4")
    yield f"add r0, r0, #{2 * memory}"


def _time_words(filters: Filters) -> object:
    """Return for each unit the bias, and the weights of each filter in words."""
    padded = np.pad(filters.times, ((0, 0), (0, 0), (0, filters.memory % 2)))
    words = np.ascontiguousarray(padded.reshape(filters.units, -1).astype("<i2")).view("<i4")
    return np.concatenate([filters.bias[:, None], words], axis=1).astype(np.int32).reshape(-1)

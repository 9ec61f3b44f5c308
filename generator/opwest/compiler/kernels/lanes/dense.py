# SPDX-License-Identifier: Apache-2.0
"""Matrix products of a single row: a word has the weights of two channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwest.compiler.emission.epilogue import LayerEpilogue
from opwest.compiler.emission.function import Call, Lines, call_for, emits
from opwest.compiler.emission.matrix import blocks
from opwest.compiler.ir.operations import Convolution
from opwest.compiler.kernels.lanes.ends import end_of
from opwest.compiler.kernels.lanes.groups import Block, Groups, add_groups, add_taken, groups_of, lane_of, plus_of
from opwest.compiler.kernels.scaling import int8_sums
from opwest.compiler.semantics.fixed_point import Requantisation

WORDS = 4
"""The words of a tap in a block of channels."""


@emits(Convolution, "portable-words")
def render(operation: Convolution, shared: bool = False) -> Call | None:
    """Return the call; None for several rows, other dtypes, groups."""
    data, result, finish = operation.inputs[0], operation.results[0], operation.finish
    given = int8_sums(operation)
    if given is None or not isinstance(finish, Requantisation) or result.dtype != "int8":
        return None
    weights, bias, bounds = given
    channels, length = weights.shape
    shape = data.shape if len(data.shape) == 4 else (1, 1, 1, data.size)
    is_single = data.size == length and result.size == channels
    if not is_single or operation.window.is_padded((shape[1], shape[2])):
        return None
    end = end_of(finish, weights, bias, bounds, operation.zero, shared)
    padded = np.pad(weights, ((0, channels % 2), (0, 0)))
    parts = blocks(len(padded) // 2, WORDS)
    groups = groups_of(padded, [(2 * first, turns, 2 * some) for first, turns, some in parts], 1)
    lines = Lines()
    lines.add(*(line for line in end.prologue if " fill " not in line))
    lines.add("const uint32_t *q = weights;", *(["const int32_t *patch = patches;"] * groups.is_patched), "")
    for first, turns, words in parts:
        if turns > 1:
            with lines.block(f"for (int c = {2 * first}; c < {2 * (first + turns * words)}; c += {2 * words})"):
                _block(lines, (length, channels), groups, end, "c", words)
        else:
            with lines.block(""):
                _block(lines, (length, channels), groups, end, str(2 * first), words)
    arguments: dict[str, Any] = {"data": data, "weights": _ordered(_words(groups.weights), parts)}
    if groups.is_patched:
        arguments["patches"] = _patches(groups.rest, parts)
    arguments |= {"bias": bias, **end.constants}
    return call_for(operation, "dense", lines, arguments, helpers=end.helpers, headers=end.headers)


def _words(weights: Any) -> Any:
    """Return the words [channels / 2, length] of weights [channels, length]."""
    whole = weights.astype(np.int64)
    return ((whole[0::2] + (whole[1::2] << 16)) & 0xFFFFFFFF).astype(np.uint32)


def _ordered(words: Any, parts: list[Block]) -> Any:
    """Return words in the order of their use: blocks, then taps."""
    each = [
        words[first : first + turns * some].reshape(turns, some, -1).transpose(0, 2, 1).reshape(-1)
        for first, turns, some in parts
    ]
    return np.concatenate(each)


def _patches(rest: Any, parts: list[Block]) -> Any:
    """Return for each block the tap and the words of each patch, then -1."""
    words = _words(rest).view(np.int32)
    numbers: list[int] = []
    for first, turns, some in parts:
        for start in range(first, first + turns * some, some):
            own = words[start : start + some]
            for tap in np.flatnonzero(own.any(axis=0)):
                numbers += [int(tap), *own[:, tap].tolist()]
            numbers.append(-1)
    return np.asarray(numbers, np.int32)


def _block(lines: Lines, sizes: tuple[int, int], groups: Groups, end: LayerEpilogue, channel: str, words: int) -> None:
    """Append the results of two channels for each word, from `channel` on."""
    length, channels = sizes
    products = {str(word): f"x * w{word}" for word in range(words)}
    lines.add("const int8_t *p = data;")
    starts = []
    for word in range(words):
        at = plus_of(channel, 2 * word + 1)
        high = "0" if at == str(channels) else f"bias[{at}]"
        lines.add(f"int32_t h{word} = {high};")
        starts.append(f"uint32_t t{word} = (uint32_t)bias[{plus_of(channel, 2 * word)}] + ((uint32_t)h{word} << 16);")
    lines.add(*starts, "")
    loads = ["const uint32_t x = (uint32_t)p[{tap}];"]
    loads += [f"const uint32_t w{word} = q[{{tap}} * {words} + {word}];" for word in range(words)]
    add_groups(lines, (length, groups.size), loads, products, (1, words))
    if groups.is_patched:
        with lines.block(f"for (; *patch >= 0; patch += {1 + words})"):
            lines.add("const uint32_t x = (uint32_t)data[*patch];")
            lines.add(*(f"const uint32_t s{word} = x * (uint32_t)patch[{1 + word}];" for word in range(words)), "")
            add_taken(lines, list(products))
        lines.add("patch++;")
    for place in range(2 * words):
        at = plus_of(channel, place)
        if at == str(channels):
            continue
        with lines.block(""):
            lines.add(*end.loads(at), "")
            lines.add(f"result[{at}] = {end.result(lane_of(str(place // 2), place % 2 == 1))};")

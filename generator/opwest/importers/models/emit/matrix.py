# SPDX-License-Identifier: Apache-2.0
"""Matrix products blocked in registers: several rows of data times two or four channels of weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwest.importers.models.emit.finish import Ending
from opwest.importers.models.emit.text import Lines
from opwest.records import dataclass

UNROLLED = 4
"""Products of a row that follow each other without a branch."""


@dataclass(frozen=True, eq=False)
class Product:
    """results[row, channel] = end(bias[channel] + sum over k of data[row, k] * weights[channel, k])."""

    length: int
    """The number of products of a sum."""
    channels: int
    row: int
    """The distance between rows of data, in elements."""
    result_row: int
    """The distance between rows of results, in elements."""
    accumulator: str
    """The C type of the sums."""
    ending: Ending
    has_bias: bool
    bias_first: bool = True
    """Whether sums start with the bias: the order matters for float."""
    is_counted: bool = False
    """Whether the number of channels is a variable of the function."""
    joined: Callable[[str], tuple[tuple[str, ...], str]] | None = None
    """From a result to the declarations and the expression that replace it; {at} is its index from y."""


def tile(lines: Lines, product: Product, rows: int, channels: int, types: tuple[str, str], channel: str) -> None:
    """Append a tile of `rows` by `channels` sums; x, w and y are pointers, `channel` the first channel's index.

    The tile leaves x and y unchanged; w is the first weight of the channel.
    """
    data_type, weight_type = types
    sums = [[f"a{r}{c}" for c in range(channels)] for r in range(rows)]
    starts = _starts(product, channels, channel)
    for c in range(channels):
        names = ", ".join(f"{sums[r][c]} = {starts[c]}" for r in range(rows))
        lines.add(f"{product.accumulator} {names};")
    lines.add(f"const {data_type} *p = x;", f"const {weight_type} *q = w;", "")
    turns, rest = divmod(product.length, UNROLLED)
    if turns == 1:
        turns, rest = 0, product.length
    if turns:
        with lines.loop("k", turns):
            for step in range(UNROLLED):
                _products(lines, product, sums, step)
            lines.add(f"p += {UNROLLED};", f"q += {UNROLLED};")
    for step in range(rest):
        _products(lines, product, sums, step)
    for c in range(channels):
        with lines.block(""):
            lines.add(*product.ending.loads(_plus(channel, c)))
            for r in range(rows):
                value = sums[r][c]
                if product.has_bias and not product.bias_first:
                    value = f"{value} + bias[{_plus(channel, c)}]"
                at = _plus(channel, r * product.result_row + c)
                if product.joined is None:
                    lines.add(f"y[{at}] = {product.ending.result(value)};")
                    continue
                with lines.block(""):
                    lines.add(f"const int8_t part = (int8_t){product.ending.result(value)};")
                    declared, text = product.joined("part")
                    lines.add(*(line.format(at=at) for line in declared), f"y[{at}] = (int8_t){text.format(at=at)};")


def _starts(product: Product, channels: int, channel: str) -> list[str]:
    if product.has_bias and product.bias_first:
        return [f"bias[{_plus(channel, c)}]" for c in range(channels)]
    return ["0"] * channels


def _products(lines: Lines, product: Product, sums: list[list[str]], step: int) -> None:
    """Append the products of one k: every operand is loaded once."""
    rows, channels = len(sums), len(sums[0])
    with lines.block(""):
        operand = "float" if product.accumulator == "float" else "int32_t"
        wide = "(int64_t)" if product.accumulator == "int64_t" else ""
        for c in range(channels):
            lines.add(f"const {operand} w{c} = q[{c * product.length + step}];")
        for r in range(rows):
            lines.add(f"const {operand} x{r} = p[{r * product.row + step}];")
        for r in range(rows):
            lines.add(" ".join(f"{sums[r][c]} += {wide}x{r} * w{c};" for c in range(channels)))


def _plus(text: str, more: int) -> str:
    if text.isdigit():
        return str(int(text) + more)
    return text if more == 0 else f"{text} + {more}"


def blocks(count: int, greatest: int) -> list[tuple[int, int, int]]:
    """Return the parts of `count` as (first, turns, size): whole blocks, then smaller ones."""
    found, first, size = [], 0, greatest
    while first < count:
        turns = (count - first) // size
        if turns:
            found.append((first, turns, size))
            first += turns * size
        size = max(1, size // 2)
    return found


def accumulator(dtype: str) -> str:
    """Return the C type of sums for the dtype of the data."""
    return {"float32": "float", "int16": "int64_t"}.get(dtype, "int32_t")


def bound_of(weights: Any, bias: Any, dtype: str) -> Any:
    """Return the greatest magnitude of the sums of each channel: weights [o, ...], data of an 8-bit dtype."""
    import numpy as np

    least, greatest = (0, 255) if dtype == "uint8" else (-128, 127)
    each = np.abs(weights.reshape(len(weights), -1).astype(np.int64)).sum(axis=1) * max(-least, greatest)
    return each + (0 if bias is None else np.abs(bias))

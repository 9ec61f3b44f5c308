# SPDX-License-Identifier: Apache-2.0
"""Blocks of layers that are computed in stripes: a few rows of each layer at a time, so that most rows need no memory.

The block is one operation. Between its layers there are buffers with the rows that later stripes still read, all in
one scratch argument. A layer computes each row of its result once.
"""

from __future__ import annotations

from math import prod

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation, Value

ALIGN = 16
"""The alignment in bytes of buffers, and of the scratch memory of a block and of its layers."""


def pitch_of(value: Value) -> int:
    """Return the bytes of a row of [n,h,w,c]."""
    return prod(value.shape[2:]) * np.dtype(value.dtype).itemsize


@dataclass(frozen=True)
class Source:
    """The rows that a layer reads: row y of its result needs those from y * stride - before, `reach` of them."""

    buffer: int | None
    """The number of the buffer; None: `input` of the block, which has all rows."""
    input: int
    stride: int = 1
    before: int = 0
    reach: int = 1


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer of a block."""

    operation: Operation
    """The layer for `count` rows: its data are the rows that these need, its window has no padded rows."""
    variant: str
    count: int
    """The rows of one call; a divisor of `height`."""
    height: int
    """The rows of the whole result."""
    sources: tuple[Source, ...]
    """For each input that is no constant."""


@dataclass(frozen=True)
class Buffer:
    """The rows of a tensor that later stripes read."""

    layer: int | None
    """The layer that writes it; None: copies of the rows of `input`, because windows reach outside of it."""
    input: int
    pitch: int
    """The bytes of a row."""
    height: int
    """The rows of the tensor."""
    rows: int
    """The rows that it has room for."""
    top: int
    """The rows of padding above the tensor."""
    fill: int
    """The value of the bytes of padding."""
    offset: int
    """The first byte in the scratch memory."""


@dataclass(frozen=True, eq=False)
class Striped(Operation):
    """inputs: the tensors that the layers read from outside of the block; results [that of the last layer]."""

    layers: tuple[Layer, ...]
    """In order; the last one writes the result."""
    buffers: tuple[Buffer, ...]
    """In the order in which they are written."""
    copies: str
    """The class of processors whose functions copy rows; portable: those of the C library."""
    in_place: tuple[int, ...]
    """The inputs whose memory the result can replace: their rows are read before the result reaches them."""
    work: int
    """The first byte of the scratch memory of the layers, after the buffers."""
    scratch: int
    """The bytes of all scratch memory."""
    moved: int
    """The bytes that all turns copy between and in the buffers."""

# SPDX-License-Identifier: Apache-2.0
"""The compressed weights of an Ethos-U55, and the order in which it consumes them.

The stream is made of slices. A slice has a header, then chunks that interleave two kinds of symbols: the weights, and
(optionally) the lengths of the runs of zeros before each. A symbol is coded as Golomb and Rice did: a quotient in unary
digits, and a remainder in the next chunk. A symbol is an index into a palette, or a value beyond the palette; the
lowest bit of a value is its sign. Source: the codec of Vela, which the tests compare this with.
"""

import functools
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npu_model.faults import Invalid

_NO_RUNS, _END = 6, 7
_RAW = 7
_UNARY = 12
"""Digits of the weights in a chunk."""


class _Bits:
    """A stream of bits, the lowest bit of each byte first."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at, self.size = content, 0, 8 * len(content)

    def take(self, count: int) -> int:
        first, self.at = self.at, self.at + count
        if self.at > self.size:
            raise Invalid(f"the compressed weights end within a symbol, after {len(self.content)} bytes")
        word = int.from_bytes(self.content[first >> 3 : (self.at + 7) >> 3], "little")
        return word >> (first & 7) & ((1 << count) - 1)

    def align(self) -> None:
        self.at = (self.at + 7) & ~7


@dataclass
class _Palette:
    """Values of indices: `values`, then consecutive ones from `offset`."""

    values: list[int]
    offset: int
    bits: int

    @property
    def raw_bits(self) -> int:
        """Size of a symbol that is not compressed."""
        return (len(self.values) - 1).bit_length() if self.values else self.bits

    def decode(self, symbols: Any) -> Any:
        beyond = symbols - len(self.values) + self.offset
        if self.values:
            inside = np.asarray(self.values)[np.minimum(symbols, len(self.values) - 1)]
            beyond = np.where(symbols < len(self.values), inside, beyond)
        return np.where(beyond & 1, -(beyond >> 1), beyond >> 1)


@dataclass
class _Symbols:
    """Symbols of one kind within a slice, whose remainders follow one chunk after their quotients."""

    needed: int
    bits: int
    pending: list[int] = field(default_factory=list)
    found: int = 0
    carry: int = 0
    values: list[int] = field(default_factory=list)

    def wants(self) -> bool:
        return self.found < self.needed

    def add(self, quotients: list[int]) -> None:
        self.pending = quotients
        self.found += len(quotients)

    def remainders(self, bits: _Bits, quotients: list[int]) -> None:
        """Take the remainders of the quotients of the chunk before; those beyond the slice have none."""
        quotients = quotients[: self.needed - len(self.values)]
        word = bits.take(self.bits * len(quotients))
        mask = (1 << self.bits) - 1
        for quotient in quotients:
            self.values.append((quotient << self.bits) + (word & mask))
            word >>= self.bits


@functools.lru_cache(maxsize=64)
def decode(content: bytes) -> Any:
    """Return the weights of a stream (int16, in the order of the device). Raises Invalid for a damaged stream."""
    bits, parts = _Bits(content), []
    palette: _Palette | None = None
    had_runs = False
    while bits.at < bits.size:
        runs = bits.take(3)
        if runs == _END:
            bits.align()
            palette = None
            continue
        if runs > 3 and runs != _NO_RUNS:
            raise Invalid(f"a slice of the weights codes zeros in the unknown way {runs}")
        count, mode = bits.take(15) + 1, bits.take(3)
        truncated, is_new = bool(bits.take(1)), bool(bits.take(1))
        has_runs = runs != _NO_RUNS
        if is_new:
            palette = _palette(bits)
        elif palette is None or has_runs != had_runs:
            raise Invalid("a slice of the weights lacks the palette that it needs")
        had_runs = has_runs
        if mode > 5 and mode != _RAW:
            raise Invalid(f"a slice of the weights codes values in the unknown way {mode}")
        weights = _Symbols(count, palette.raw_bits if mode == _RAW else mode)
        zeros = _Symbols(count + is_new if has_runs else 0, runs if has_runs else 0)
        _chunks(bits, weights, zeros, mode == _RAW, truncated)
        values = palette.decode(np.asarray(weights.values, np.int64))
        parts.append(_spread(values, np.asarray(zeros.values, np.int64), is_new) if has_runs else values)
    found = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if len(found) and (found.max() > 255 or found.min() < -255):
        raise Invalid("a weight is outside of -255 to 255")
    return found.astype(np.int16)


def _palette(bits: _Bits) -> _Palette:
    offset, size, width = bits.take(5), bits.take(5), bits.take(3) + 2
    return _Palette([bits.take(width) for _ in range(size + 1 if size else 0)], offset, width)


def _chunks(bits: _Bits, weights: _Symbols, zeros: _Symbols, is_raw: bool, is_truncated: bool) -> None:
    """Fill both kinds of symbols. Whichever is far ahead of the other pauses for a chunk."""
    has_runs = bool(zeros.needed)
    zero_digits = 12 if zeros.bits < 3 else 8
    while weights.wants() or zeros.wants() or weights.pending or zeros.pending:
        ahead = weights.found - zeros.found if has_runs else 0
        take_weights = weights.wants() and ahead < 8
        take_zeros = zeros.wants() and ahead >= 0
        before = weights.pending, zeros.pending
        weights.pending, zeros.pending = [], []
        first = bits.take(_UNARY) if take_weights and not is_raw else 0
        if take_zeros:
            zeros.add(_runs(zeros, bits.take(zero_digits), zero_digits))
        if take_weights:
            if is_raw:
                weights.add([0] * (8 if weights.bits > 5 else _UNARY))
            else:
                weights.add(_quotients(weights, first, bits.take(first.bit_count()), is_truncated))
        weights.remainders(bits, before[0])
        zeros.remainders(bits, before[1])


def _runs(zeros: _Symbols, digits: int, count: int) -> list[int]:
    """Return quotients: the number of ones before each zero."""
    ones = [len(run) for run in f"{digits:0{count}b}"[::-1].split("0")]
    ones[0] += zeros.carry
    *found, zeros.carry = ones
    return found


def _quotients(weights: _Symbols, first: int, second: int, is_truncated: bool) -> list[int]:
    """Return quotients of digits 0 to 2: a one of `first` has a further digit in `second`; 2 is continued."""
    found, carry = [], weights.carry
    for i in range(_UNARY):
        digit = 0
        if first >> i & 1:
            digit = 1 + (second & 1)
            second >>= 1
        carry += digit
        if digit < 2 or is_truncated:
            found.append(carry)
            carry = 0
    weights.carry = carry
    return found


def _spread(values: Any, runs: Any, has_first: bool) -> Any:
    """Return weights with their runs of zeros between; a new palette has a run before its first weight too."""
    lead, runs = (int(runs[0]), runs[1:]) if has_first else (0, runs)
    spread = np.zeros(lead + len(values) + int(runs.sum()), np.int64)
    spread[lead + np.arange(len(values)) + np.concatenate(([0], np.cumsum(runs)[:-1]))] = values
    return spread


@dataclass(frozen=True)
class Order:
    """What the order of the weights depends on. `kernel` is height and width of the taps, `depths` those of the OFM
    and the IFM, `block` the depth of an OFM block, `units` the smallest depths of OFM and IFM, `window` the height and
    width of the largest part of a kernel."""

    kernel: tuple[int, int]
    depths: tuple[int, int]
    block: int
    units: tuple[int, int]
    window: tuple[int, int]
    bits: int
    is_depthwise: bool
    is_part_kernel: bool


def kernel_of(content: bytes, order: Order) -> Any:
    """Return the weights (kernel height, width, IFM depth, OFM depth) of a stream, as float64.

    Raises Invalid if the stream does not have the number of weights of the operator.
    """
    found, places = decode(content), _places(order)
    if len(found) != len(places):
        raise Invalid(f"the stream has {len(found)} weights, the operator {len(places)} with padding")
    (height, width), (ofm, ifm) = order.kernel, order.depths
    kernel = np.zeros(height * width * ifm * ofm + 1)
    kernel[places] = found
    return kernel[:-1].reshape(height, width, ifm, ofm)


@functools.lru_cache(maxsize=32)
def _places(order: Order) -> Any:
    """Return the place in the kernel of each weight of the stream; the place after the last is for padding."""
    (height, width), (ofm, ifm) = order.kernel, order.depths
    ofm_unit, ifm_unit = order.units
    ifm_block = 16 if order.is_part_kernel or order.bits == 16 else 32
    multiple = {16: 2}.get(order.bits, 4) if order.is_part_kernel else 4 if order.is_depthwise else 1
    parts = []
    for ofm_first in range(0, ofm, order.block):
        ofm_units = np.arange(ofm_first, ofm_first + min(order.block, ofm - ofm_first), ofm_unit)
        for ifm_first in range(0, 1 if order.is_depthwise else ifm, ifm_block):
            depth = min(ifm_block, ifm - ifm_first) if order.is_part_kernel else ifm_block
            ifm_units = np.arange(ifm_first, ifm_first + (1 if order.is_depthwise else depth), ifm_unit)
            for y, x in itertools.product(range(0, height, order.window[0]), range(0, width, order.window[1])):
                rows, columns = min(order.window[0], height - y), min(order.window[1], width - x)
                taps = np.arange(-(-rows * columns // multiple) * multiple)
                outer, inner = (ifm_units, [0]) if order.is_part_kernel else ([0], ifm_units)
                # Dimensions: IFM unit, OFM unit, tap, IFM unit, OFM in the unit, IFM in the unit.
                in_unit = np.arange(1 if order.is_depthwise else ifm_unit)
                outer, units, tap, inner, o, i = np.ix_(outer, ofm_units, taps, inner, np.arange(ofm_unit), in_unit)
                i, o, tap_y, tap_x = outer + inner + i, units + o, tap // columns, tap % columns
                used = (i < ifm) & (o < ofm) & (tap_y < rows)
                place = (((y + tap_y) * width + x + tap_x) * ifm + i) * ofm + o
                parts.append(np.where(used, place, height * width * ifm * ofm).reshape(-1))
    return np.concatenate(parts)

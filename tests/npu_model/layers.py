# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools: operators with a kernel."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from npu_model.commands import Registers
from npu_model.faults import Invalid, Unsupported
from npu_model.memory import Memory, feature_map
from npu_model.output import global_scale, has_global_scale, rounding_mode, store
from npu_model.payload import Product
from npu_model.rounding import average_scale, rescale
from npu_model.weights import Order, kernel_of

MAX, AVERAGE, SUM = 0, 1, 2
WORK, TAPS, WEIGHTS = 1 << 30, 1 << 16, 1 << 22
"""The limits of the model for one operator: products, taps of a kernel, weights. A damaged stream asks for more."""


@dataclass(frozen=True)
class Window:
    """A kernel over the IFM: taps, stride and dilation (height, width), padding above and to the left, the IFM's rows
    and columns after the enlargement, and the OFM's. `largest` is the part of a kernel that weights are ordered by."""

    taps: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    source: tuple[int, int]
    target: tuple[int, int]
    has_padding: bool
    is_part_kernel: bool
    largest: tuple[int, int]

    def steps(self) -> Iterator[tuple[int, int, Any, Any]]:
        """Yield for each tap: its place, and the row and column of the IFM for each row and column of the OFM."""
        for ky in range(self.taps[0]):
            rows = np.arange(self.target[0]) * self.stride[0] + ky * self.dilation[0] - self.before[0]
            for kx in range(self.taps[1]):
                columns = np.arange(self.target[1]) * self.stride[1] + kx * self.dilation[1] - self.before[1]
                yield ky, kx, rows, columns

    def inside(self, rows: Any, columns: Any) -> Any:
        """Return whether the places are not padding (rows, columns)."""
        return np.outer((rows >= 0) & (rows < self.source[0]), (columns >= 0) & (columns < self.source[1]))


def window(registers: Registers) -> Window:
    """Return the kernel of the registers. Raises Invalid if it does not fit the padding or its dilation."""
    bits = registers["KERNEL_STRIDE"]
    stride = (1 + (bits >> 1 & 1) + (bits >> 9 & 7) * 2, 1 + (bits & 1) + (bits >> 6 & 7) * 2)
    dilation = (1 + (bits >> 4 & 1), 1 + (bits >> 3 & 1))
    span = [registers["KERNEL_HEIGHT_M1"], registers["KERNEL_WIDTH_M1"]]
    if any(one % step for one, step in zip(span, dilation, strict=True)):
        raise Invalid(f"a kernel of {span[0] + 1} x {span[1] + 1} has no dilation of {dilation[0]} x {dilation[1]}")
    before = (registers["IFM_PAD_TOP"], registers["IFM_PAD_LEFT"])
    after = (registers["IFM_PAD_BOTTOM"], registers["IFM_PAD_RIGHT"])
    target = (registers["OFM_HEIGHT_M1"] + 1, registers["OFM_WIDTH_M1"] + 1)
    source = tuple((target[i] - 1) * stride[i] + span[i] + 1 - before[i] - after[i] for i in range(2))
    if min(source) < 1:
        raise Invalid(f"the kernel and its padding leave an IFM of {source[0]} x {source[1]}")
    taps = tuple(span[i] // dilation[i] + 1 for i in range(2))
    part = 4 if bits >> 5 & 1 else 8
    largest = (part // dilation[0], part // dilation[1])
    return Window(taps, stride, dilation, before, source, target, any(before + after), bool(bits >> 2 & 1), largest)


def source(registers: Registers, memory: Memory, over: Window) -> Any:
    """Return the IFM without its zero point (rows, columns, depth), enlarged."""
    mode, (rows, columns) = registers["IFM_UPSCALE"], over.source
    if mode > 2:
        raise Invalid(f"{mode} is not a mode of IFM_UPSCALE")
    depth = registers["IFM_DEPTH_M1"] + 1
    if mode == 0:
        return feature_map(registers, "IFM", (rows, columns, depth)).read(memory)
    small = feature_map(registers, "IFM", ((rows + 1) // 2, (columns + 1) // 2, depth)).read(memory)
    if mode == 1:
        return small.repeat(2, axis=0).repeat(2, axis=1)[:rows, :columns]
    large = np.zeros((rows, columns, depth), np.int64)
    large[::2, ::2] = small
    return large


def convolution(registers: Registers, memory: Memory, product: Product, is_depthwise: bool) -> None:
    over, depth = window(registers), registers["OFM_DEPTH_M1"] + 1
    ifm_depth = registers["IFM_DEPTH_M1"] + 1
    if is_depthwise and ifm_depth != depth:
        raise Invalid(f"a depthwise convolution has an IFM of depth {ifm_depth} and an OFM of depth {depth}")
    _limit(over, ifm_depth, 1 if is_depthwise else depth)
    data = source(registers, memory, over)
    if has_global_scale(registers):
        raise Unsupported("a convolution with the scale of OFM_SCALE")
    bits = 8 * feature_map(registers, "IFM", (1, 1, 1)).dtype.itemsize
    if bits == 32:
        raise Invalid("a convolution has an IFM of 32 bits")
    block = registers["OFM_BLK_DEPTH_M1"] + 1
    if block % product.ofm_unit:
        raise Invalid(f"the depth of a block is {block}, expected a multiple of {product.ofm_unit}")
    depths, units = (depth, 1 if is_depthwise else ifm_depth), (product.ofm_unit, product.ifm_unit)
    is_part_kernel = over.is_part_kernel and not is_depthwise
    order = Order(over.taps, depths, block, units, over.largest, bits, is_depthwise, is_part_kernel)
    kernel = kernel_of(memory.part(registers, "WEIGHT", "the weights").tobytes(), order)
    bias, scale, shift = _scales(registers, memory, depth)
    # Sums of products of 16 and 9 bits are exact in float64, and BLAS is fast.
    padded = np.zeros((over.source[0] + 1, over.source[1] + 1, ifm_depth))
    padded[:-1, :-1] = data
    sums = np.zeros((*over.target, depth))
    for ky, kx, rows, columns in over.steps():
        part = padded[np.ix_(_outside(rows, over.source[0]), _outside(columns, over.source[1]))]
        sums += part * kernel[ky, kx, 0] if is_depthwise else part @ kernel[ky, kx]
    total = sums.astype(np.int64) + bias
    _fits(total, registers["ACC_FORMAT"])
    store(registers, memory, rescale(total, scale, shift, rounding_mode(registers)))


def pool(registers: Registers, memory: Memory, mode: int) -> None:
    over = window(registers)
    depth, ifm_depth = registers["OFM_DEPTH_M1"] + 1, registers["IFM_DEPTH_M1"] + 1
    if mode > SUM:
        raise Invalid(f"{mode} is not a mode of a pool")
    if depth != (1 if mode == SUM else ifm_depth):
        raise Invalid(f"a pool has an IFM of depth {ifm_depth} and an OFM of depth {depth}")
    _limit(over, ifm_depth, 1)
    data = source(registers, memory, over)
    total = np.full((*over.target, ifm_depth), np.iinfo(np.int64).min if mode == MAX else 0)
    count = np.zeros(over.target, np.int64)
    for _, _, rows, columns in over.steps():
        part = data[np.ix_(np.clip(rows, 0, over.source[0] - 1), np.clip(columns, 0, over.source[1] - 1))]
        inside = over.inside(rows, columns)
        count += inside
        total = np.where(inside[..., None], np.maximum(total, part) if mode == MAX else total + part, total)
    if not count.all():
        raise Invalid("a pool has a result without any element that is not padding")
    if mode == SUM:
        total = total.sum(axis=-1, keepdims=True)
    if mode != MAX:
        _fits(total, registers["ACC_FORMAT"])
    store(registers, memory, _pooled(registers, over, total, count[..., None], mode))


def _pooled(registers: Registers, over: Window, total: Any, count: Any, mode: int) -> Any:
    """Return the results of a pool, scaled.

    An average without padding is scaled by OFM_SCALE like every other pool. With padding the device divides by the
    elements that are not padding; Vela gives OFM_SCALE of 1 then, or (in its older code) does not ask for it.
    """
    rounding = rounding_mode(registers)
    is_global = has_global_scale(registers)
    scale = global_scale(registers) if is_global else (1, 0)
    if mode == AVERAGE and over.has_padding:
        if scale != (1, 0):
            raise Unsupported(f"an average with padding has OFM_SCALE {scale[0]} / 2^{scale[1]} instead of 1")
        return rescale(total, *average_scale(count), rounding)
    if mode == AVERAGE and not is_global:
        raise Unsupported("an average without padding has no OFM_SCALE")
    return rescale(total, *scale, rounding)


def _scales(registers: Registers, memory: Memory, depth: int) -> tuple[Any, Any, Any]:
    """Return biases, factors and shifts by channel. Each is 10 bytes: 40, 32 and 6 bits, the last two bits unused."""
    if registers["SCALE_LENGTH"] < 10 * depth:
        raise Invalid(f"the scales have {registers['SCALE_LENGTH']} bytes, {depth} channels need {10 * depth}")
    raw = memory.part(registers, "SCALE", "the scales")[: 10 * depth].reshape(depth, 10)
    digits = raw.astype(np.int64)
    if (digits[:, 9] > 63).any():
        raise Invalid("the two unused bits of a scale are set")
    bias = digits[:, :5] @ (np.int64(1) << np.arange(0, 40, 8))
    scale = digits[:, 5:9] @ (np.int64(1) << np.arange(0, 32, 8))
    return np.where(bias >> 39, bias - (1 << 40), bias), scale, digits[:, 9]


def _fits(total: Any, form: int) -> None:
    """Raise Unsupported if an accumulator overflows: what the device does then is not public."""
    if form > 1:
        raise Unsupported(f"accumulators of the format {form}")
    bits = 40 if form else 32
    low, high = int(total.min()), int(total.max())
    if low < -(1 << (bits - 1)) or high >= 1 << (bits - 1):
        raise Unsupported(f"an accumulator of {bits} bits overflows: {low} to {high}")


def _limit(over: Window, ifm_depth: int, ofm_depth: int) -> None:
    taps = over.taps[0] * over.taps[1]
    weights = taps * ifm_depth * ofm_depth
    for count, limit, unit in (
        (taps, TAPS, "taps"),
        (weights, WEIGHTS, "weights"),
        (weights * over.target[0] * over.target[1], WORK, "products"),
    ):
        if count > limit:
            raise Unsupported(f"an operator of {count} {unit}, the model's limit is {limit}")


def _outside(places: Any, size: int) -> Any:
    """Return rows or columns, those of the padding replaced by the one after the last."""
    return np.where((places < 0) | (places >= size), size, places)

# SPDX-License-Identifier: Apache-2.0
"""Command streams written by hand, against loops over single elements: what Vela does not write is here too."""

import itertools
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from campaign import sized

from npu_model import execute
from npu_model.assembled import activation, feature_map, kernel, payload, raw_weights, scales, words
from npu_model.rounding import NATURAL, TRUNCATE
from npu_model.weights import Order, _places

U8, S8, S16, S32 = 0, 1, 5, 9
"""IFM_PRECISION."""
OFM = {U8: 0, S8: 1, S16: 3, S32: 5}
GLOBAL = 0x100
BLOCK = [("OFM_BLK_HEIGHT_M1", 3), ("OFM_BLK_WIDTH_M1", 3), ("OFM_BLK_DEPTH_M1", 15)]
NO_ENLARGEMENT = [("IFM_UPSCALE", 0), ("ACC_FORMAT", 0)]


def run(commands, *regions):
    regions = [bytearray(one) for one in regions]
    execute(payload(words(*commands, ("NPU_OP_STOP", 0xFFFF))), regions)
    return regions


def result(data, shape, *commands):
    """Return the result of commands on one IFM of int8. They replace what is set before: a copy by a pool of 1 x 1."""
    before = [
        *feature_map("IFM", 0, 0, data.shape, S8),
        *feature_map("OFM", 0, data.size, shape, OFM[S8] | GLOBAL),
        *(*kernel(), *activation(-128, 127), *NO_ENLARGEMENT, ("OFM_SCALE", 1)),
    ]
    [memory] = run([*before, *commands], data.tobytes() + bytes(int(np.prod(shape))))
    return np.frombuffer(memory, np.int8)[data.size :].reshape(shape)


def rounded(value, mode):
    """Return a fraction as an integer, of a shift of at most 31."""
    return int(value) if mode == TRUNCATE else floor(value + Fraction(1, 2))


@pytest.mark.parametrize("seed", range(sized(12, 200)))
def test_convolution(seed):
    random = np.random.default_rng(seed)
    is_depthwise, is_part_kernel = [(False, False), (False, True), (True, False)][seed % 3]
    mode, zero, ofm_zero = int(random.integers(0, 3)), int(random.integers(-128, 128)), int(random.integers(-50, 50))
    ends = ([11, 10], [4, 4], [3, 3], [4, 4])
    taps, stride, dilation, target = (random.integers(1, end).tolist() for end in ends)
    span = [(taps[i] - 1) * dilation[i] + 1 for i in range(2)]
    pad = [int(random.integers(0, min(one, 4))) for one in (span[0], span[1], span[0], span[1])]
    source = [(target[i] - 1) * stride[i] + span[i] - pad[i] - pad[i + 2] for i in range(2)]
    if min(source) < 1:
        pad, source = [0] * 4, [(target[i] - 1) * stride[i] + span[i] for i in range(2)]
    depth = int(random.integers(1, 20))
    ifm_depth = depth if is_depthwise else int(random.integers(1, 40))
    data = random.integers(-128, 128, (*source, ifm_depth)).astype(np.int8)
    weights = random.integers(-255, 256, (*taps, 1 if is_depthwise else ifm_depth, depth))
    rows = random.integers([-900, 1 << 12, 20], [900, 1 << 14, 28], (depth, 3)).tolist()
    window = (8 // dilation[0], 8 // dilation[1])
    order = Order(tuple(taps), (depth, weights.shape[2]), 16, (8, 8), window, 8, is_depthwise, is_part_kernel)
    stream = raw_weights([int(n) for n in np.append(weights.reshape(-1), 0)[_places(order)]])
    packed = scales(rows)
    [_, memory] = run(
        [
            *feature_map("IFM", 1, 0, (*source, ifm_depth), S8, zero),
            *feature_map("OFM", 1, data.size, (*target, depth), OFM[S8] | mode << 14, ofm_zero),
            *kernel(taps, stride, dilation, pad, is_part_kernel),
            *(("WEIGHT_REGION", 0), ("WEIGHT_BASE", len(packed)), ("WEIGHT_LENGTH", len(stream))),
            *(("SCALE_REGION", 0), ("SCALE_BASE", 0), ("SCALE_LENGTH", len(packed))),
            *activation(-100, 90),
            *(*BLOCK, *NO_ENLARGEMENT),
            "NPU_OP_DEPTHWISE" if is_depthwise else "NPU_OP_CONV",
        ],
        packed + stream,
        data.tobytes() + bytes(target[0] * target[1] * depth),
    )
    found = np.frombuffer(memory, np.int8)[data.size :].reshape(*target, depth)
    shifted = np.zeros((source[0] + pad[0] + pad[2], source[1] + pad[1] + pad[3], ifm_depth), int)
    shifted[pad[0] : pad[0] + source[0], pad[1] : pad[1] + source[1]] = data.astype(int) - zero
    for y, x, c in itertools.product(*map(range, found.shape)):
        part = shifted[y * stride[0] :: dilation[0], x * stride[1] :: dilation[1]][: taps[0], : taps[1]]
        total = int((part[..., c] * weights[:, :, 0, c] if is_depthwise else part * weights[..., c]).sum())
        bias, scale, shift = rows[c]
        wanted = rounded(Fraction((total + bias) * scale, 1 << shift), mode) + ofm_zero
        assert found[y, x, c] == min(max(wanted, -100), 90), (y, x, c)


def test_tiles_and_bricks():
    """A copy from four tiles of a map in bricks of 16 channels to a dense map, and back."""
    random = np.random.default_rng(5)
    data = random.integers(-128, 128, (5, 4, 20)).astype(np.int8)
    bases, heights, width = (0, 0x200, 0x400, 0x600), (3, 2), 3
    strides = (4 * 16 * 2, 16, 4 * 16)
    memory = bytearray(0x800 + data.size)
    for y, x, c in np.ndindex(5, 4, 20):
        left = x < width
        column = x if left else x - width
        below = y >= (heights[0] if left else heights[1])
        row = y - (heights[0] if left else heights[1]) if below else y
        base = bases[2 * below + (not left)]
        memory[base + row * strides[0] + c // 16 * strides[2] + column * 16 + c % 16] = int(data[y, x, c]) & 255

    def tiled(name, precision):
        return [
            *feature_map(name, 0, 0, data.shape, precision),
            *((f"{name}_BASE{i}", base) for i, base in enumerate(bases)),
            *((f"{name}_HEIGHT0_M1", 2), (f"{name}_HEIGHT1_M1", 1), (f"{name}_WIDTH0_M1", 2)),
            *((f"{name}_STRIDE_{axis}", one) for axis, one in zip("YXC", strides, strict=True)),
        ]

    common = [*kernel(), *activation(-128, 127), *NO_ENLARGEMENT, ("OFM_SCALE", 1), ("NPU_OP_POOL", 1)]
    dense = feature_map("OFM", 0, 0x800, data.shape, OFM[S8] | GLOBAL)
    [result] = run([*tiled("IFM", S8 | 0x40), *dense, *common], memory)
    assert np.array_equal(np.frombuffer(result, np.int8)[0x800:].reshape(data.shape), data)
    dense = feature_map("IFM", 0, 0x800, data.shape, S8)
    cleared = bytes(0x800) + bytes(result[0x800:])
    [again] = run([*dense, *tiled("OFM", OFM[S8] | GLOBAL | 0x40), *common], cleared)
    assert again == memory[:0x800] + result[0x800:]


def test_a_reversed_copy():
    """Strides of a result can be negative."""
    data = np.arange(12, dtype=np.int8).reshape(3, 4, 1)
    found = result(data, data.shape, ("OFM_BASE0", 15), ("OFM_STRIDE_X", -1), ("NPU_OP_POOL", 1))
    assert np.array_equal(found, data[:, ::-1])


@pytest.mark.parametrize(("mode", "pad"), [(0, (1, 2, 1, 0)), (0, (0, 0, 0, 0)), (1, (1, 2, 1, 0)), (2, (0, 0, 0, 0))])
def test_pools(mode, pad):
    data = np.random.default_rng(mode).integers(-128, 128, (4, 5, 3)).astype(np.int8)
    target = (3 + pad[0] + pad[2], 4 + pad[1] + pad[3] - 1)
    ofm = (*target, 1 if mode == 2 else 3)
    scale = [("OFM_SCALE", 1 << 32 | 3 if mode == 2 else 1), ("OFM_PRECISION", OFM[S8] | GLOBAL | NATURAL << 14)]
    found = result(data, ofm, *kernel((2, 3), pad=pad), *scale, ("NPU_OP_POOL", mode))
    for y, x in np.ndindex(*target):
        top, left = max(y - pad[0], 0), max(x - pad[1], 0)
        part = data[top : y - pad[0] + 2, left : x - pad[1] + 3].astype(int)
        if mode == 0:
            wanted = part.max(axis=(0, 1))
        elif mode == 1:
            count = part.shape[0] * part.shape[1]
            wanted = [floor(abs(Fraction(int(v), count)) + Fraction(1, 2)) * np.sign(v) for v in part.sum(axis=(0, 1))]
        else:
            wanted = [min(max(floor(Fraction(int(part.sum()) * 3, 2) + Fraction(1, 2)), -128), 127)]
        assert found[y, x].tolist() == list(wanted), (y, x)


OPERATORS = {0: lambda a, b: a * b, 1: lambda a, b: a + b, 2: lambda a, b: a - b, 3: min, 4: max}


@pytest.mark.parametrize("mode", OPERATORS)
@pytest.mark.parametrize("broadcast", [0, 1, 2, 4, 7, 0x40, 0x41, 0x80, 0xC0])
def test_elementwise_operators(mode, broadcast):
    random = np.random.default_rng([mode, broadcast])
    shape = (2, 3, 4)
    other = tuple(1 if broadcast >> i & 1 else n for i, n in enumerate(shape))
    one, two = random.integers(-9, 9, shape).astype(np.int8), random.integers(-9, 9, other).astype(np.int8)
    scalar, scaling = int(random.integers(-9, 9)), GLOBAL if mode < 3 else 0
    commands = [
        *feature_map("IFM", 0, 0, shape, S8, 2),
        *feature_map("IFM2", 0, 24, other, S8, -3),
        *feature_map("OFM", 0, 48, shape, OFM[S8] | scaling, 1),
        *(("IFM2_BROADCAST", broadcast), ("IFM2_SCALAR", scalar), ("OPA_SCALE", 2), ("OPB_SCALE", 5)),
        *(*activation(-128, 127), ("OFM_SCALE", 1), ("NPU_OP_ELEMENTWISE", mode)),
    ]
    [memory] = run(commands, one.tobytes() + two.tobytes() + bytes(72 - one.size - two.size))
    found = np.frombuffer(memory, np.int8)[48:].reshape(shape)
    second = np.broadcast_to(scalar if broadcast & 0x80 else two, shape)
    for at in np.ndindex(*shape):
        a, b = int(one[at]) - 2, int(second[at]) + 3
        a, b = (b, a) if broadcast & 0x40 else (a, b)
        a, b = (2 * a, 5 * b) if mode in (1, 2) else (a, b)
        assert found[at] == min(max(OPERATORS[mode](a, b) + 1, -128), 127), at


def test_operators_of_32_bits():
    """CLZ, SHL, SHR and MUL, whose factor does not apply."""
    values = np.asarray([1, 2, 255, 1 << 20, (1 << 31) - 1, 0, -1, -(1 << 31)], "<i4")
    shape, base = (1, 1, 8), values.nbytes

    def calculated(mode, second=None, precision=OFM[S32], scale=1):
        commands = [
            *feature_map("IFM", 0, 0, shape, S32),
            *feature_map("OFM", 0, 2 * base, shape, precision),
            *([] if second is None else feature_map("IFM2", 0, base, shape, S32)),
            *(("IFM2_BROADCAST", 0), ("OFM_SCALE", scale), *activation(-32768, 32767), ("NPU_OP_ELEMENTWISE", mode)),
        ]
        content = np.concatenate([values, np.zeros(8) if second is None else second, np.zeros(8)]).astype("<i4")
        [memory] = run(commands, content.tobytes())
        return np.frombuffer(memory, "<i4")[16:].tolist()

    assert calculated(7) == [31, 30, 24, 11, 1, 32, 0, 0]
    assert calculated(9, [30, 3, 4, 2, 0, 5, 31, 0])[:4] == [1 << 30, 16, 255 << 4, 1 << 22]
    assert calculated(8, [1] * 8, OFM[S32] | NATURAL << 14)[:7] == [1, 1, 128, 1 << 19, 1 << 30, 0, 0]
    assert calculated(8, [1] * 8)[6] == -1
    product = calculated(0, [1 << 30] * 8, OFM[S32] | GLOBAL, 31 << 32 | 1 << 30)
    assert product == [1, 1, 128, 1 << 19, 1 << 30, 0, 0, -(1 << 30)]


def test_leaky_relu_scales_negative_values():
    data = np.asarray([[[-100, -3, -1, 0, 7]]], np.int8)
    found = result(data, data.shape, ("OFM_SCALE", 32 << 32 | 1 << 31), ("NPU_OP_ELEMENTWISE", 5))
    assert found.tolist() == [[[-50, -2, -1, 0, 7]]]

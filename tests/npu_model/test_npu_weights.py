# SPDX-License-Identifier: Apache-2.0
"""Compressed weights and their order, against Vela's codec."""

import numpy as np
import pytest
from campaign import sized
from requirements_support import need

from npu_model.assembled import raw_weights
from npu_model.faults import Invalid
from npu_model.weights import Order, decode, kernel_of

COUNT = sized(40, 2000)


def _values(random):
    """Return weights of many distributions: few and many values, long runs of zeros, sections that differ."""
    parts = []
    for _ in range(int(random.integers(1, 4))):
        size = int(random.integers(1, 3000))
        kind = int(random.integers(0, 5))
        if kind == 0:
            values = random.integers(-255, 256, size)
        elif kind == 1:
            values = np.round(random.standard_normal(size) * random.choice([1, 5, 40])).clip(-255, 255)
        elif kind == 2:
            values = random.choice(random.integers(-255, 256, int(random.integers(1, 20))), size)
        else:
            values = random.integers(-9, 10, size) * (random.random(size) < random.choice([0.02, 0.2, 0.6]))
        parts.append(np.asarray(values, np.int16))
    return np.concatenate(parts)


def test_streams_of_vela_are_decoded():
    need("ethosu")
    from ethosu import mlw_codec

    random = np.random.default_rng(3)
    for number in range(COUNT):
        values = _values(random)
        stream = bytes(mlw_codec.encode(values.tolist()))
        assert decode(stream).tolist() == values.tolist(), f"stream {number}"
        assert list(mlw_codec.decode(bytearray(stream))) == values.tolist()


def test_the_order_is_that_of_vela():
    need("ethosu")
    from ethosu import mlw_codec

    random = np.random.default_rng(4)
    for number in range(COUNT):
        is_depthwise, is_part_kernel = [(False, False), (False, True), (True, False)][number % 3]
        shape = random.integers(1, [70, 11, 12, 70]).astype(int)  # OFM depth, height, width, IFM depth
        shape[3] = 1 if is_depthwise else shape[3]
        weights = random.integers(-255, 256, shape).astype(np.int16)
        bits, unit = int(random.choice([8, 16])), int(random.choice([4, 8]))
        block, window = int(random.choice([8, 16, 24, 64])), tuple(int(n) for n in random.choice([4, 8], 2))
        encoded, size = mlw_codec.reorder_encode(8, unit, weights, block, is_depthwise, is_part_kernel, bits, *window)
        ofm, *taps, ifm = shape.tolist()
        order = Order(tuple(taps), (ofm, ifm), block, (unit, 8), window, bits, is_depthwise, is_part_kernel)
        found = kernel_of(bytes(encoded), order)
        assert np.array_equal(found.transpose(3, 0, 1, 2), weights), f"{number}: {order}"
        assert len(decode(bytes(encoded))) == size


def test_weights_without_compression():
    values = [0, 1, -1, 255, -255, 17] * 9
    assert decode(raw_weights(values)).tolist() == values
    assert decode(raw_weights([])).tolist() == [] and decode(b"").tolist() == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (raw_weights([5] * 40)[:32], "end within a symbol, after 32 bytes"),
        (bytes([4]), "codes zeros in the unknown way 4"),
        (bytes([0b110, 0, 0b1011000, 0, 0, 0, 0, 0]), "codes values in the unknown way 6"),
        (bytes([0b110, 0, 0, 0, 0, 0, 0, 0]), "lacks the palette"),
    ],
)
def test_damaged_streams_are_refused(content, message):
    with pytest.raises(Invalid, match=message):
        decode(content)

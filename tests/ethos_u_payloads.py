# SPDX-License-Identifier: Apache-2.0
"""An assembler of payloads for Ethos-U, from the commands' public names and codes: independent of opwest's table.

Source of the codes: the technical reference manual of Ethos-U55, chapter "Command stream".
"""

import struct
from collections.abc import Iterable, Sequence

COP1 = 0x31504F43
CONFIG_U55_128 = 0x1807
CONFIG_U65_256 = 0x10003008
CONFIG_U85_256 = 0x20000118
ARCHITECTURE = 0x10066001
STOP = 0xFFFF0000
CODES = {
    "CONV": 2,
    "DEPTHWISE": 3,
    "POOL": 5,
    "ELEMENTWISE": 6,
    "DMA_START": 0x10,
    "DMA_WAIT": 0x11,
    "KERNEL_WAIT": 0x12,
    "IFM_PAD_TOP": 0x100,
    "IFM_PAD_LEFT": 0x101,
    "IFM_PAD_RIGHT": 0x102,
    "IFM_PAD_BOTTOM": 0x103,
    "IFM_DEPTH_M1": 0x104,
    "IFM_PRECISION": 0x105,
    "IFM_UPSCALE": 0x107,
    "IFM_ZERO_POINT": 0x109,
    "IFM_WIDTH0_M1": 0x10A,
    "IFM_HEIGHT0_M1": 0x10B,
    "IFM_HEIGHT1_M1": 0x10C,
    "IFM_REGION": 0x10F,
    "OFM_WIDTH_M1": 0x111,
    "OFM_HEIGHT_M1": 0x112,
    "OFM_DEPTH_M1": 0x113,
    "OFM_PRECISION": 0x114,
    "OFM_WIDTH0_M1": 0x11A,
    "OFM_HEIGHT0_M1": 0x11B,
    "OFM_HEIGHT1_M1": 0x11C,
    "OFM_REGION": 0x11F,
    "KERNEL_WIDTH_M1": 0x120,
    "KERNEL_HEIGHT_M1": 0x121,
    "KERNEL_STRIDE": 0x122,
    "PARALLEL_MODE": 0x123,
    "ACTIVATION": 0x125,
    "WEIGHT_REGION": 0x128,
    "SCALE_REGION": 0x129,
    "DMA0_SRC_REGION": 0x130,
    "DMA0_DST_REGION": 0x131,
    "IFM2_BROADCAST": 0x180,
    "IFM2_PRECISION": 0x185,
    "IFM2_WIDTH0_M1": 0x18A,
    "IFM2_HEIGHT0_M1": 0x18B,
    "IFM2_HEIGHT1_M1": 0x18C,
    "IFM2_REGION": 0x18F,
}
WITH_DATA = {
    "IFM_BASE0": 0x00,
    "IFM_BASE1": 0x01,
    "IFM_BASE2": 0x02,
    "IFM_BASE3": 0x03,
    "IFM_STRIDE_X": 0x04,
    "IFM_STRIDE_Y": 0x05,
    "IFM_STRIDE_C": 0x06,
    "OFM_BASE0": 0x10,
    "OFM_BASE1": 0x11,
    "OFM_BASE2": 0x12,
    "OFM_BASE3": 0x13,
    "OFM_STRIDE_X": 0x14,
    "OFM_STRIDE_Y": 0x15,
    "OFM_STRIDE_C": 0x16,
    "WEIGHT_BASE": 0x20,
    "WEIGHT_LENGTH": 0x21,
    "SCALE_BASE": 0x22,
    "SCALE_LENGTH": 0x23,
    "OFM_SCALE": 0x24,
    "DMA0_SRC": 0x30,
    "DMA0_DST": 0x31,
    "DMA0_LEN": 0x32,
    "IFM2_BASE0": 0x80,
    "IFM2_BASE1": 0x81,
    "IFM2_BASE2": 0x82,
    "IFM2_BASE3": 0x83,
    "IFM2_STRIDE_X": 0x84,
    "IFM2_STRIDE_Y": 0x85,
    "IFM2_STRIDE_C": 0x86,
    "WEIGHT1_BASE": 0x90,
    "WEIGHT1_LENGTH": 0x91,
    "SCALE1_BASE": 0x92,
    "SCALE1_LENGTH": 0x93,
}
Command = tuple[str, int]


def words_of(commands: Iterable[Command]) -> list[int]:
    """Return the words of commands, given by name and value."""
    found = []
    for name, value in commands:
        if name in WITH_DATA:
            found += [WITH_DATA[name] | 0x4000 | (value >> 32) << 16, value & 0xFFFFFFFF]
        else:
            found.append(CODES[name] | value << 16)
    return found


def payload(stream: Sequence[int], config: int = CONFIG_U55_128, revision: int = ARCHITECTURE) -> bytes:
    """Return a payload with one command stream."""
    header = [COP1, 0x100001, config, revision, 5, 5, 5, 2 | (len(stream) >> 16) << 8 | (len(stream) & 0xFFFF) << 16]
    return struct.pack(f"<{len(header) + len(stream)}I", *header, *stream)


def feature_map(name: str, region: int, base: int, shape: tuple[int, int, int]) -> list[Command]:
    """Return the commands for an int8 tensor in NHWC, in one tile; the shape is height, width, depth."""
    height, width, depth = shape
    return [
        (f"{name}_REGION", region),
        *((f"{name}_BASE{i}", base if i == 0 else 0) for i in range(4)),
        (f"{name}_HEIGHT0_M1", height - 1),
        (f"{name}_HEIGHT1_M1", height - 1),
        (f"{name}_WIDTH0_M1", width - 1),
        (f"{name}_STRIDE_C", 1),
        (f"{name}_STRIDE_Y", width * depth),
        (f"{name}_STRIDE_X", depth),
        (f"{name}_PRECISION", 1),
    ]


def convolution(
    source: tuple[int, int, int] = (1, 1, 16), result: tuple[int, int, int] = (1, 1, 16), at: int = 0, to: int = 16
) -> list[Command]:
    """Return a 1x1 convolution in region 1, whose weights (32 bytes) and scales (160 bytes) are in region 0."""
    return [
        *feature_map("IFM", 1, at, source),
        ("IFM_DEPTH_M1", source[2] - 1),
        ("IFM_UPSCALE", 0),
        *((f"IFM_PAD_{side}", 0) for side in ("TOP", "LEFT", "RIGHT", "BOTTOM")),
        *feature_map("OFM", 1, to, result),
        ("OFM_HEIGHT_M1", result[0] - 1),
        ("OFM_WIDTH_M1", result[1] - 1),
        ("OFM_DEPTH_M1", result[2] - 1),
        ("KERNEL_WIDTH_M1", 0),
        ("KERNEL_HEIGHT_M1", 0),
        ("KERNEL_STRIDE", 0),
        ("WEIGHT_REGION", 0),
        ("WEIGHT_BASE", 0),
        ("WEIGHT_LENGTH", 32),
        ("SCALE_REGION", 0),
        ("SCALE_BASE", 32),
        ("SCALE_LENGTH", 160),
        ("ACTIVATION", 0),
        ("CONV", 0),
    ]


def copy(source: tuple[int, int], target: tuple[int, int], length: int) -> list[Command]:
    """Return a transfer by DMA between addresses, given by region and offset."""
    return [
        ("DMA0_SRC_REGION", source[0]),
        ("DMA0_SRC", source[1]),
        ("DMA0_DST_REGION", target[0]),
        ("DMA0_DST", target[1]),
        ("DMA0_LEN", length),
        ("DMA_START", 0),
        ("DMA_WAIT", 0),
    ]


REGIONS = (192, 32)
"""The sizes of the regions of VALID."""
VALID = payload([*words_of(convolution()), STOP])

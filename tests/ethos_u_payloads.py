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
_CODES = """
CONV=2 DEPTHWISE=3 POOL=5 ELEMENTWISE=6 DMA_START=10 DMA_WAIT=11 KERNEL_WAIT=12
IFM_PAD_TOP=100 IFM_PAD_LEFT=101 IFM_PAD_RIGHT=102 IFM_PAD_BOTTOM=103 IFM_DEPTH_M1=104 IFM_PRECISION=105
IFM_UPSCALE=107 IFM_ZERO_POINT=109 IFM_WIDTH0_M1=10A IFM_HEIGHT0_M1=10B IFM_HEIGHT1_M1=10C IFM_REGION=10F
OFM_WIDTH_M1=111 OFM_HEIGHT_M1=112 OFM_DEPTH_M1=113 OFM_PRECISION=114
OFM_WIDTH0_M1=11A OFM_HEIGHT0_M1=11B OFM_HEIGHT1_M1=11C OFM_REGION=11F
KERNEL_WIDTH_M1=120 KERNEL_HEIGHT_M1=121 KERNEL_STRIDE=122 PARALLEL_MODE=123 ACTIVATION=125
WEIGHT_REGION=128 SCALE_REGION=129 DMA0_SRC_REGION=130 DMA0_DST_REGION=131
IFM2_BROADCAST=180 IFM2_PRECISION=185 IFM2_WIDTH0_M1=18A IFM2_HEIGHT0_M1=18B IFM2_HEIGHT1_M1=18C IFM2_REGION=18F
"""
_CODES_WITH_DATA = """
IFM_BASE0=00 IFM_BASE1=01 IFM_BASE2=02 IFM_BASE3=03 IFM_STRIDE_X=04 IFM_STRIDE_Y=05 IFM_STRIDE_C=06
OFM_BASE0=10 OFM_BASE1=11 OFM_BASE2=12 OFM_BASE3=13 OFM_STRIDE_X=14 OFM_STRIDE_Y=15 OFM_STRIDE_C=16
WEIGHT_BASE=20 WEIGHT_LENGTH=21 SCALE_BASE=22 SCALE_LENGTH=23 OFM_SCALE=24 DMA0_SRC=30 DMA0_DST=31 DMA0_LEN=32
IFM2_BASE0=80 IFM2_BASE1=81 IFM2_BASE2=82 IFM2_BASE3=83 IFM2_STRIDE_X=84 IFM2_STRIDE_Y=85 IFM2_STRIDE_C=86
WEIGHT1_BASE=90 WEIGHT1_LENGTH=91 SCALE1_BASE=92 SCALE1_LENGTH=93
"""


def _table(text: str) -> dict[str, int]:
    """Return the codes, which are hexadecimal, by name."""
    pairs = (word.split("=") for word in text.split())
    return {name: int(code, 16) for name, code in pairs}


CODES, WITH_DATA = _table(_CODES), _table(_CODES_WITH_DATA)
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
    words = feature_map("IFM", 1, at, source)
    words += [("IFM_DEPTH_M1", source[2] - 1), ("IFM_UPSCALE", 0)]
    words += [(f"IFM_PAD_{side}", 0) for side in ("TOP", "LEFT", "RIGHT", "BOTTOM")]
    words += feature_map("OFM", 1, to, result)
    words += [(f"OFM_{name}_M1", size - 1) for name, size in zip(("HEIGHT", "WIDTH", "DEPTH"), result, strict=True)]
    words += [("KERNEL_WIDTH_M1", 0), ("KERNEL_HEIGHT_M1", 0), ("KERNEL_STRIDE", 0)]
    words += [("WEIGHT_REGION", 0), ("WEIGHT_BASE", 0), ("WEIGHT_LENGTH", 32)]
    words += [("SCALE_REGION", 0), ("SCALE_BASE", 32), ("SCALE_LENGTH", 160)]
    return [*words, ("ACTIVATION", 0), ("CONV", 0)]


def copy(source: tuple[int, int], target: tuple[int, int], length: int) -> list[Command]:
    """Return a transfer by DMA between addresses, given by region and offset."""
    words = [("DMA0_SRC_REGION", source[0]), ("DMA0_SRC", source[1])]
    words += [("DMA0_DST_REGION", target[0]), ("DMA0_DST", target[1]), ("DMA0_LEN", length)]
    return [*words, ("DMA_START", 0), ("DMA_WAIT", 0)]


REGIONS = (192, 32)
"""The sizes of the regions of VALID."""
VALID = payload([*words_of(convolution()), STOP])

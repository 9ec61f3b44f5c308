# SPDX-License-Identifier: Apache-2.0
"""Payloads that tests write by hand, without Vela."""

import struct
from collections.abc import Sequence

from npu_model.commands import OPERATIONS, SETTINGS, WIDE

CONFIG_128 = 0x00001807
"""128 MACs, 24 KiB of internal memory, Ethos-U55."""
IDENTITY = 0x10060000
_CODES = {name: code for table in (OPERATIONS, SETTINGS) for code, (name, _) in table.items()}
_WIDE_CODES = {name: code for code, (name, _) in WIDE.items()}


def words(*commands: tuple[str, int] | str) -> list[int]:
    """Return the words of commands: a name, or a name and a value. A wide value has the parameter in bits 32 to 47."""
    found = []
    for one in commands:
        name, value = (one, 0) if isinstance(one, str) else one
        if name in _WIDE_CODES:
            value &= (1 << 40) - 1
            found += [value >> 32 << 16 | 0x4000 | _WIDE_CODES[name], value & 0xFFFFFFFF]
        else:
            found.append((value & 0xFFFF) << 16 | _CODES[name])
    return found


def payload(stream: Sequence[int], config: int = CONFIG_128) -> bytes:
    head = [int.from_bytes(b"COP1", "little"), 0x00100001, config, IDENTITY, 5, 5, 5]
    action = 2 | len(stream) >> 16 << 8 | (len(stream) & 0xFFFF) << 16
    return struct.pack(f"<{len(head) + 1 + len(stream)}I", *head, action, *stream)


def feature_map(name: str, region: int, base: int, shape: tuple[int, int, int], precision: int, zero: int = 0):
    """Return the commands of a dense NHWC feature map. Of the OFM they include its size, of the IFM its depth."""
    height, width, depth = shape
    size = 1 << (precision >> (1 if name == "OFM" else 2) & 3)
    found = [
        (f"{name}_REGION", region),
        *((f"{name}_BASE{i}", base if i == 0 else 0) for i in range(4)),
        *((f"{name}_HEIGHT{i}_M1", height - 1) for i in range(2)),
        (f"{name}_WIDTH0_M1", width - 1),
        *zip((f"{name}_STRIDE_{axis}" for axis in "YXC"), (width * depth * size, depth * size, size), strict=True),
        *((f"{name}_ZERO_POINT", zero), (f"{name}_PRECISION", precision)),
    ]
    if name == "OFM":
        found += [("OFM_HEIGHT_M1", height - 1), ("OFM_WIDTH_M1", width - 1)]
    return found if name == "IFM2" else [*found, (f"{name}_DEPTH_M1", depth - 1)]


def kernel(taps=(1, 1), stride=(1, 1), dilation=(1, 1), pad=(0, 0, 0, 0), is_part_kernel=False):
    """Return the commands of a kernel. `pad`: top, left, bottom, right."""
    bits = (stride[1] - 1 & 1) | (stride[0] - 1 & 1) << 1 | (stride[1] - 1 >> 1) << 6 | (stride[0] - 1 >> 1) << 9
    bits |= is_part_kernel << 2 | (dilation[1] - 1) << 3 | (dilation[0] - 1) << 4
    return [
        ("KERNEL_HEIGHT_M1", (taps[0] - 1) * dilation[0]),
        ("KERNEL_WIDTH_M1", (taps[1] - 1) * dilation[1]),
        ("KERNEL_STRIDE", bits),
        *zip(("IFM_PAD_TOP", "IFM_PAD_LEFT", "IFM_PAD_BOTTOM", "IFM_PAD_RIGHT"), pad, strict=True),
    ]


def activation(low: int, high: int, function: int = 0):
    return [("ACTIVATION", function), ("ACTIVATION_MIN", low), ("ACTIVATION_MAX", high)]


def scales(rows: Sequence[tuple[int, int, int]]) -> bytes:
    """Return biases, factors and shifts as the device reads them."""
    found = b"".join(
        (bias & (1 << 40) - 1).to_bytes(5, "little") + scale.to_bytes(4, "little") + bytes([shift])
        for bias, scale, shift in rows
    )
    return found + bytes(-len(found) % 16)


def raw_weights(values: Sequence[int]) -> bytes:
    """Return a stream of weights without compression: slices of values of 9 bits, the sign in the lowest."""
    fields = []
    for first in range(0, len(values), 1 << 15):
        part = values[first : first + (1 << 15)]
        fields += [(6, 3), (len(part) - 1, 15), (7, 3), (0, 1), (1, 1), (0, 5), (0, 5), (7, 3)]
        fields += [(abs(value) << 1 | (value < 0), 9) for value in part]
    fields.append((7, 3))
    digits = "".join(f"{value:0{size}b}"[::-1] for value, size in fields)  # the lowest bit first
    size = -(-len(digits) // 128) * 16
    return int(digits.ljust(8 * size, "1")[::-1], 2).to_bytes(size, "little")

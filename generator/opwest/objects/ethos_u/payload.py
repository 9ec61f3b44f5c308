# SPDX-License-Identifier: Apache-2.0
"""The driver actions of a custom operator payload: its name, the configuration of the NPU, one command stream.

Source: Arm's driver of Ethos-U (ethos-u-core-driver, ethosu_driver.c), which executes them. All numbers are words of 32
bits, little-endian.
"""

from __future__ import annotations

import struct

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.objects.compat import Fault

FAMILY = "ethos-u"
"""The start of the types of devices that are such NPUs."""
_PRODUCTS = {"u55": 0, "u65": 1, "u85": 2}
"""The field `product` of CONFIG."""
_MACS = {"u55": (32, 64, 128, 256), "u65": (128, 256, 512), "u85": (128, 256, 512, 1024, 2048)}
"""Multiplications per cycle."""


@dataclass(frozen=True)
class Npu:
    """One configuration of an NPU."""

    name: str
    """As in `--accelerator-config` of Vela: ethos-u55-128."""
    product: int
    macs: int
    """Multiplications per cycle."""


NPUS = {
    name: Npu(name, _PRODUCTS[series], macs)
    for series, choices in _MACS.items()
    for macs in choices
    for name in [f"{FAMILY.removesuffix('u')}{series}-{macs}"]
}
"""All configurations by name."""
U55, U65, U85 = _PRODUCTS.values()


def is_npu(device_type: str | None) -> bool:
    """Return whether the type of a device names an NPU of the series, known or not: `ethos-u`, `ethos-u55-128`."""
    return device_type is not None and device_type.startswith(FAMILY)


def npu_of_config(word: int) -> Npu | None:
    """Return the NPU that a value of CONFIG describes: product in bits 31 to 28, log2 of the MACs in bits 3 to 0."""
    return next((npu for npu in NPUS.values() if (npu.product, npu.macs) == (word >> 28, 1 << (word & 15))), None)


ALIGNMENT = 16
"""Bytes: the NPU reads command streams from, and has base pointers at, multiples of it."""
MAX_FAULTS = 8
"""The most faults that are reported of one payload."""
_NAME = b"COP1"
_LATER = b"COP2"
_CONFIG, _STREAM, _NOTHING = 1, 2, 5
"""The codes of actions, in bits 7 to 0. A stream's length in words has its low half in bits 31 to 16, and its high part
in bits 15 to 8; `config` is followed by values of the registers CONFIG and ID."""
_CUSTOM_DMA = 1 << 27
_STREAM_VERSION = 0
"""The only version of command streams of U55 and U65, in bits 7 to 4 of CONFIG."""
_ARCHITECTURES = {U55: 1, U65: 1, U85: 2}
"""The major revision of the architecture by product, in bits 31 to 28 of ID."""


@dataclass(frozen=True)
class Payload:
    """The actions of a payload."""

    npu: Npu | None
    """The NPU that it was made for; None: it has no configuration, or an unknown one."""
    stream: tuple[int, ...]
    """The words of the command stream; empty if there is none."""
    start: int
    """The position of the stream in the payload, bytes."""
    faults: tuple[Fault, ...]
    """Their messages contain the position."""


def read_payload(content: bytes) -> Payload:
    """Return the actions of a payload, with all faults in them."""
    if content[:4] == _LATER:
        hint = "compile without --cop-format COP2 and --separate-io-regions"
        return _nothing(Fault("the payload has the format COP2", "COP1, which Zephyr's driver executes", hint))
    if content[:4] != _NAME:
        begin = f"begins with {content[:4].hex(' ')}" if content else "is empty"
        return _nothing(Fault(f"the payload {begin}", "a custom operator payload of Vela, which begins with COP1"))
    if len(content) % 4:
        return _nothing(Fault(f"the payload is truncated: {counted(len(content), 'byte')}", "a multiple of 4 bytes"))
    return _Actions(struct.unpack(f"<{len(content) // 4}I", content)).read()


def _nothing(fault: Fault) -> Payload:
    return Payload(None, (), 0, (fault,))


class _Actions:
    """The actions, and what was found in them."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self.words = words
        self.faults: list[Fault] = []
        self.configs = 0
        self.npu: Npu | None = None
        self.streams: list[tuple[int, int]] = []
        """The first words and the ends of the command streams."""

    def read(self) -> Payload:
        """Walk through the actions."""
        at = 1
        while at < len(self.words):
            at = self._action(at)
        if not self.configs:
            self.fault("the payload has no configuration of the NPU", expected="an action of type 1")
        if len(self.streams) != 1 and not self.faults:
            self.fault(f"the payload has {len(self.streams)} command streams", expected="one")
        start, end = self.streams[0] if self.streams else (0, 0)
        return Payload(self.npu, self.words[start:end], start * 4, tuple(self.faults))

    def fault(self, message: str, expected: str | None = None, hint: str | None = None) -> None:
        """Add a fault, unless there are many."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(message, expected, hint))

    def _action(self, at: int) -> int:
        """Read the action at a word; return the position of the next one, the end after an action without a length."""
        word = self.words[at]
        code, left = word & 0xFF, len(self.words) - at - 1
        if code == _NOTHING:
            return at + 1
        if code == _CONFIG:
            if left < 2:
                return self._truncated(at, 2, left)
            self._config(at)
            return at + 3
        if code == _STREAM:
            length = word >> 16 | (word & 0xFF00) << 8
            if length > left:
                return self._truncated(at, length, left)
            start = at + 1
            if start * 4 % ALIGNMENT:
                text = f"the command stream begins at byte {start * 4} of the payload"
                self.fault(text, f"a multiple of {ALIGNMENT} bytes")
            self.streams.append((start, start + length))
            return start + length
        expected = f"{_CONFIG} (configuration), {_STREAM} (command stream) or {_NOTHING} (nothing)"
        self.fault(f"unknown driver action {code} at byte {at * 4} of the payload", expected)
        return len(self.words)

    def _truncated(self, at: int, length: int, left: int) -> int:
        self.fault(
            f"the payload is truncated: the driver action at byte {at * 4} has {length * 4} bytes, {left * 4} follow",
            hint="compile the model again, or copy the file again",
        )
        return len(self.words)

    def _config(self, at: int) -> None:
        """Check the values of CONFIG and ID that the command stream was made for."""
        config, revision = self.words[at + 1 : at + 3]
        self.configs += 1
        npu = npu_of_config(config)
        if npu is None:
            text = f"the payload is for product {config >> 28} with 2^{config & 15} MACs per cycle"
            self.fault(text, f"one of {', '.join(NPUS)}")
            return
        if self.npu is not None and self.npu != npu:
            self.fault(f"the payload is for {self.npu.name} and for {npu.name}", "one configuration")
        self.npu = npu
        version = config >> 4 & 15
        if npu.product != U85 and version != _STREAM_VERSION:
            self.fault(f"the command stream has version {version}", f"version {_STREAM_VERSION}")
        if config & _CUSTOM_DMA:
            self.fault("the payload is for an NPU with a custom DMA", "an NPU without one")
        major = _ARCHITECTURES[npu.product]
        if revision >> 28 != major:
            self.fault(f"the payload is for revision {revision >> 28} of the architecture", f"{major}, of {npu.name}")

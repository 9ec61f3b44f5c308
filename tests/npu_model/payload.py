# SPDX-License-Identifier: Apache-2.0
"""The payload of the driver: actions with the identifier COP1, the last of them the command stream."""

from dataclasses import dataclass

from npu_model.faults import Invalid, Unsupported

_CONFIG, _STREAM, _READ, _DUMP, _NOP = 1, 2, 3, 4, 5
_SHRAM_KB = {5: 16, 6: 16, 7: 24, 8: 48}
"""By the logarithm of the MACs in a cycle."""


@dataclass(frozen=True)
class Product:
    """The Ethos-U55 that a payload is for. `macs` are those in a cycle; `shram` is the internal memory in bytes."""

    macs: int
    shram: int

    @property
    def ofm_unit(self) -> int:
        """Depth of the smallest part of a result that the weights are ordered by."""
        return 4 if self.macs == 32 else 8

    @property
    def ifm_unit(self) -> int:
        """The same of the input."""
        return 8


@dataclass(frozen=True)
class Payload:
    """A command stream: its words, and the byte in the payload of the first."""

    product: Product
    words: list[int]
    start: int


def read(content: bytes) -> Payload:
    """Return the command stream of a payload. Raises Invalid or Unsupported with the byte of the action."""
    if len(content) % 4:
        raise Invalid(f"the payload has {len(content)} bytes, not a multiple of 4", len(content) & ~3)
    words = [int.from_bytes(content[i : i + 4], "little") for i in range(0, len(content), 4)]
    if content[:4] == b"COP2":
        raise Unsupported("the payload is COP2, the model reads COP1", 0)
    if content[:4] != b"COP1":
        raise Invalid(f"the payload begins with {content[:4]!r} instead of b'COP1'", 0)
    product: Product | None = None
    at = 1
    while at < len(words):
        action, high, low = words[at] & 0xFF, words[at] >> 8 & 0xFF, words[at] >> 16
        if action == _CONFIG:
            if at + 2 >= len(words):
                raise Invalid("the payload ends within the action of the configuration", 4 * at)
            product = _product(words[at + 1], words[at + 2], 4 * at)
            at += 3
        elif action == _NOP:
            at += 1
        elif action == _STREAM:
            return _stream(words, at, high << 16 | low, product)
        elif action in (_READ, _DUMP):
            raise Unsupported(f"the action {action} reads the device, which the model does not", 4 * at)
        else:
            raise Invalid(f"{action} is not an action of the driver", 4 * at)
    raise Invalid("the payload has no command stream", 4 * at)


def _stream(words: list[int], at: int, length: int, product: Product | None) -> Payload:
    if product is None:
        raise Invalid("the command stream has no configuration before it", 4 * at)
    if at + 1 + length != len(words):
        raise Invalid(f"the command stream has {len(words) - at - 1} words, its action says {length}", 4 * at)
    if (at + 1) % 4:
        raise Invalid("the command stream is not aligned to 16 bytes", 4 * at)
    return Payload(product, words[at + 1 :], 4 * (at + 1))


def _product(config: int, identity: int, position: int) -> Product:
    logarithm, version, kilobytes, product = config & 15, config >> 4 & 15, config >> 8 & 0xFF, config >> 28
    if product != 0:
        raise Unsupported(f"the payload is for product {product}, the model is of the Ethos-U55 (0)", position)
    if version != 0:
        raise Unsupported(f"the command stream has version {version}, the model reads 0", position)
    if config >> 16 & 0xFFF or logarithm not in _SHRAM_KB or kilobytes != _SHRAM_KB[logarithm]:
        raise Invalid(f"no Ethos-U55 has the configuration 0x{config:08X}", position)
    if identity >> 28 != 1:
        raise Unsupported(f"the architecture has revision {identity >> 28}, the model is of revision 1", position)
    return Product(1 << logarithm, kilobytes * 1024)

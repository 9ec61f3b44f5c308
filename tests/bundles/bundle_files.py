# SPDX-License-Identifier: Apache-2.0
"""Bundles for tests, packed from the tables of bundle-format.md alone: independent of `opwest bundle`.

The images are `programs/stand_in.c`, compiled for this machine and linked at the address of a slot: the programs of the
tests map memory there.
"""

import functools
import hashlib
import platform
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from c_support import RUNTIME, compile_all
from elftools.elf.elffile import ELFFile

PROGRAMS = Path(__file__).parent / "programs"
SLOTS = (0x1000_0000, 0x1010_0000, 0x1020_0000)
"""The addresses of programs/simulated.h."""
SLOT_SIZE = 0x4000
HEADER = 256
MACHINE = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}.get(platform.machine().lower(), 0)
_SCRIPT = """ENTRY(opwest_bundle)
SECTIONS {{
  . = {base:#x};
  .image : {{ KEEP(*(.rodata.image)) *(.text .text.*) *(.rodata .rodata.*) KEEP(*(.last)) }}
  .data : {{ *(.data .data.* .bss .bss.*) }}
  .numbers : {{ KEEP(*(.numbers)) }}
  /DISCARD/ : {{ *(.comment) *(.note*) *(.eh_frame*) }}
}}
"""
_FLAGS = (
    *("-std=gnu11", "-Os", "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fno-stack-protector"),
    *("-fno-asynchronous-unwind-tables", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra"),
    *("-Werror", "-Wno-type-limits"),
    *(("-fcf-protection=none", "-mno-sse3") if MACHINE == 62 else ()),
)


@dataclass(frozen=True)
class Variant:
    """A behaviour of the stand-in; two with equal fields are one image."""

    name: str = "one"
    mark: int = 1000
    slot: int = 0
    wrong: int = 0
    """Added to an expected output: the vector differs."""
    wrong_step: int = 0
    nearly: float = 0.0
    """Added to an expected float: within the tolerance up to 0.01."""
    devices: int = 0
    first_device: int = 0
    pool_size: int = 96
    padding: int = 8
    open_code: int = 0
    run_code: int = 0
    closes: bool = False
    """A failed run closes the workspace, as one with a lost device."""
    state: bool = False
    steps: bool = False
    places: bool = False
    vectors: int = 3
    broken: str = "NOTHING"
    """An enumerator of the stand-in: the part that is wrong."""

    @property
    def model_hash(self) -> bytes:
        return hashlib.sha256(f"{self.name} {self.mark}".encode()).digest()

    def macros(self) -> list[str]:
        digest = self.model_hash.hex()
        values = {"NAME": f'"{self.name}"', "HASH": f'"{digest}"', "HASH_START": f'"{digest[:63]}"'}
        values |= {"NEARLY": f"{self.nearly}F", "BROKEN": self.broken}
        values |= {"HAS_STATE": int(self.state), "HAS_STEPS": int(self.steps)}
        numbers = (
            "mark wrong wrong_step devices first_device pool_size padding open_code run_code closes places vectors"
        )
        values |= {name.upper(): int(getattr(self, name)) for name in numbers.split()}
        return [f"-D{name}={value}" for name, value in values.items()]


@dataclass(frozen=True)
class Image:
    data: bytes
    descriptor: int
    """The offset in the image."""
    workspace: tuple[int, int]
    slot_size: int
    metadata_version: int


@functools.cache
def image_of(variant: Variant) -> Image:
    base = SLOTS[variant.slot] + HEADER
    with tempfile.TemporaryDirectory() as work:
        script, program = Path(work) / "stand_in.ld", Path(work) / "stand_in.elf"
        script.write_text(_SCRIPT.format(base=base))
        macros = [*variant.macros(), f"-I{RUNTIME / 'include'}"]
        objects = compile_all(Path(work), [PROGRAMS / "stand_in.c"], "gcc", _FLAGS, macros)
        subprocess.run(["gcc", *_FLAGS, *objects, f"-Wl,-T,{script},--build-id=none", "-o", str(program)], check=True)
        with program.open("rb") as file:
            elf = ELFFile(file)
            assert elf.get_section_by_name(".data") is None, "the stand-in has writable data"
            data = elf.get_section_by_name(".image").data()
            assert data.endswith(b"onex"), "bytes without NUL end the image"
            numbers = struct.unpack("<4I", elf.get_section_by_name(".numbers").data())
            [symbol] = elf.get_section_by_name(".symtab").get_symbol_by_name("opwest_bundle")
            return Image(data, symbol["st_value"] - base, numbers[:2], *numbers[2:])


def align(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def abi_of(variant: Variant, image: Image) -> dict[str, int]:
    """The fields of the ABI record, in the order of the page."""
    found = {"machine": MACHINE, "pointer_size": 8, "float_abi": 0, "big_endian": 0, "abi_reserved": 0}
    found |= {"metadata_version": image.metadata_version, "host_version": 1, "layout": int(variant.steps), "cpu": 0}
    found |= {"slot_size": image.slot_size if variant.devices else 0, "device_count": variant.devices}
    found |= {"input_count": 1, "output_count": 2}
    found |= {"workspace_size": image.workspace[0], "workspace_align": image.workspace[1]}
    return found | {"pools_size": 64 + variant.pool_size, "pools_align": 64, "inputs_size": 4, "outputs_size": 20}


def _fields(offset: int, sizes: str) -> dict[str, tuple[int, int]]:
    """Return offsets and sizes of fields without gaps."""
    found = {}
    for word in sizes.split():
        name, size = word.split(":")
        found[name] = (offset, int(size))
        offset += int(size)
    return found


FIELDS = {
    **_fields(0, "magic:4 format:2 header_size:2 length:4 kind:4 slot_address:8 image_offset:4 image_size:4"),
    **_fields(32, "descriptor_offset:4 sbom_offset:4 sbom_size:4 version:4 interface_hash:8"),
    **_fields(136, "machine:2 pointer_size:1 float_abi:1 big_endian:1 abi_reserved:1 metadata_version:2"),
    **_fields(144, "host_version:2 layout:2 cpu:4 slot_size:2 device_count:2 input_count:2 output_count:2"),
    **_fields(160, "workspace_size:4 workspace_align:4 pools_size:4 pools_align:4 inputs_size:4 outputs_size:4"),
}
"""Offset and size by name, from docs/contributing/bundle-format.md."""
MODEL_HASH, NAME, RESERVED = 56, 88, 184
INTERFACE = 0x1122_3344_5566_7788


def put(data: bytearray, name: str, value: int) -> None:
    offset, size = FIELDS[name]
    data[offset : offset + size] = value.to_bytes(size, "little")


def get(data: bytes, name: str) -> int:
    offset, size = FIELDS[name]
    return int.from_bytes(data[offset : offset + size], "little")


def version_of(major: int, minor: int = 0, patch: int = 0) -> int:
    return major << 24 | minor << 16 | patch


def signed_part(
    variant: Variant, *, version: int = 1 << 24, sbom: bytes = b"0 1 stand_in.o gcc\n", **fields: int
) -> bytes:
    """The signed part of a bundle; `fields` replaces fields of the header."""
    image = image_of(variant)
    sbom_offset = HEADER + len(image.data)
    length = align(sbom_offset + len(sbom), 16)
    data = bytearray(length)
    data[HEADER:sbom_offset] = image.data
    data[sbom_offset : sbom_offset + len(sbom)] = sbom
    data[:4] = b"OPWB"
    values = {"format": 1, "header_size": HEADER, "length": length, "kind": 0, "slot_address": SLOTS[variant.slot]}
    values |= {"image_offset": HEADER, "image_size": len(image.data), "descriptor_offset": HEADER + image.descriptor}
    values |= {"sbom_offset": sbom_offset, "sbom_size": len(sbom), "version": version, "interface_hash": INTERFACE}
    for name, value in {**values, **abi_of(variant, image), **fields}.items():
        put(data, name, value)
    data[MODEL_HASH : MODEL_HASH + 32] = variant.model_hash
    data[NAME : NAME + len(variant.name)] = variant.name.encode()
    return bytes(data)


def with_block(
    signed: bytes, signatures: Sequence[tuple[bytes, bytes]], *, algorithm: int = 1, size: int = 64
) -> bytes:
    """Append signatures: pairs of public key and value."""
    rows = b"".join(
        hashlib.sha512(key).digest()[:8] + struct.pack("<HHI", algorithm, size, 0) + value for key, value in signatures
    )
    return signed + b"OPWS" + struct.pack("<HH", len(signatures), 0) + rows


@dataclass(frozen=True)
class Signer:
    """A key pair, made from a text."""

    seed: str = "trusted"
    _private: Any = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(self.seed.encode()).digest())
        object.__setattr__(self, "_private", private)

    @functools.cached_property
    def public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        return self._private.sign(data)

    def bundle(self, signed: bytes) -> bytes:
        return with_block(signed, [(self.public, self.sign(signed))])

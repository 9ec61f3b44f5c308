# SPDX-License-Identifier: Apache-2.0
"""Bundles for tests, packed from the tables of docs/bundle-format.md alone: independent of `opwest bundle`.

The images are `programs/stand_in.c`, compiled for this machine and linked at the address of a slot: the programs of the
tests map memory there.
"""

import functools
import hashlib
import platform
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
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
        values: Mapping[str, Any] = {
            "NAME": f'"{self.name}"',
            "HASH": f'"{self.model_hash.hex()}"',
            "MARK": self.mark,
            "WRONG": self.wrong,
            "WRONG_STEP": self.wrong_step,
            "NEARLY": f"{self.nearly}F",
            "DEVICES": self.devices,
            "FIRST_DEVICE": self.first_device,
            "POOL_SIZE": f"{self.pool_size}U",
            "WORKSPACE_PADDING": self.padding,
            "OPEN_CODE": self.open_code,
            "RUN_CODE": self.run_code,
            "CLOSES": int(self.closes),
            "HAS_STATE": int(self.state),
            "HAS_STEPS": int(self.steps),
            "PLACES": int(self.places),
            "VECTORS": self.vectors,
            "BROKEN": self.broken,
            "HASH_START": f'"{self.model_hash.hex()[:63]}"',
        }
        return [f"-D{name}={value}" for name, value in values.items()]


@dataclass(frozen=True)
class Image:
    """A linked stand-in."""

    data: bytes
    descriptor: int
    """The offset in the image."""
    workspace: tuple[int, int]
    slot_size: int
    metadata_version: int


@functools.cache
def image_of(variant: Variant) -> Image:
    """Compile and link a variant."""
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
    return {
        "machine": MACHINE,
        "pointer_size": 8,
        "float_abi": 0,
        "big_endian": 0,
        "abi_reserved": 0,
        "metadata_version": image.metadata_version,
        "host_version": 1,
        "layout": int(variant.steps),
        "cpu": 0,
        "slot_size": image.slot_size if variant.devices else 0,
        "device_count": variant.devices,
        "input_count": 1,
        "output_count": 2,
        "workspace_size": image.workspace[0],
        "workspace_align": image.workspace[1],
        "pools_size": 64 + variant.pool_size,
        "pools_align": 64,
        "inputs_size": 4,
        "outputs_size": 20,
    }


FIELDS = {
    # name: (offset, bytes), from docs/bundle-format.md
    "magic": (0, 4),
    "format": (4, 2),
    "header_size": (6, 2),
    "length": (8, 4),
    "kind": (12, 4),
    "slot_address": (16, 8),
    "image_offset": (24, 4),
    "image_size": (28, 4),
    "descriptor_offset": (32, 4),
    "sbom_offset": (36, 4),
    "sbom_size": (40, 4),
    "version": (44, 4),
    "interface_hash": (48, 8),
    "machine": (136, 2),
    "pointer_size": (138, 1),
    "float_abi": (139, 1),
    "big_endian": (140, 1),
    "abi_reserved": (141, 1),
    "metadata_version": (142, 2),
    "host_version": (144, 2),
    "layout": (146, 2),
    "cpu": (148, 4),
    "slot_size": (152, 2),
    "device_count": (154, 2),
    "input_count": (156, 2),
    "output_count": (158, 2),
    "workspace_size": (160, 4),
    "workspace_align": (164, 4),
    "pools_size": (168, 4),
    "pools_align": (172, 4),
    "inputs_size": (176, 4),
    "outputs_size": (180, 4),
}
MODEL_HASH, NAME, RESERVED = 56, 88, 184
INTERFACE = 0x1122_3344_5566_7788


def put(data: bytearray, name: str, value: int) -> None:
    """Write a field."""
    offset, size = FIELDS[name]
    data[offset : offset + size] = value.to_bytes(size, "little")


def get(data: bytes, name: str) -> int:
    """Read a field."""
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
    values = {
        "format": 1,
        "header_size": HEADER,
        "length": length,
        "kind": 0,
        "slot_address": SLOTS[variant.slot],
        "image_offset": HEADER,
        "image_size": len(image.data),
        "descriptor_offset": HEADER + image.descriptor,
        "sbom_offset": sbom_offset,
        "sbom_size": len(sbom),
        "version": version,
        "interface_hash": INTERFACE,
    }
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
        """The whole file."""
        return with_block(signed, [(self.public, self.sign(signed))])

# SPDX-License-Identifier: Apache-2.0
"""The file format of bundles, docs/contributing/bundle-format.md. Every byte is checked: the file is hostile."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from opwest.base.diagnostics import FileError, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.project.disk import write_whole

MAGIC, SIGNATURES_MAGIC = b"OPWB", b"OPWS"
VERSION = 1
HEADER_SIZE = 256
IMAGE_ALIGN = 64
"""The alignment of the image in the file and of slots, bytes."""
SIGNED_ALIGN = 16
"""The signed part ends at a multiple of it."""
MAX_SIGNATURES = 4
NAME_SIZE = 48
"""Bytes of the name of a model, with at least one zero."""
LINKED, LLEXT = 0, 1
KINDS = {LINKED: "linked at its slot", LLEXT: "LLEXT"}
FLOAT_ABI_NAMES = ("the only one of the machine", "soft", "hard", "single", "double", "quad")
"""enum opwest_float_abi."""
ED25519 = 1
LAYOUT_STEPS, LAYOUT_SHORT_ENUMS = 0x1, 0x2
MAX_BYTES = 1 << 28
"""The largest file that is read."""

_HEADER = struct.Struct("<4sHHIIQIIIIIIQ32s48s")
_ABI = struct.Struct("<HBBBBHHHIHHHHIIIIII")
_RESERVED = HEADER_SIZE - _HEADER.size - _ABI.size
_BLOCK = struct.Struct("<4sHH")
_SIGNATURE = struct.Struct("<8sHHI64s")


class BundleError(FileError):
    """The file is no usable bundle."""


class AbiFields(NamedTuple):
    """The requirements of the image, in the order of the file."""

    machine: int
    """e_machine of ELF."""
    pointer_size: int
    float_abi: int
    """enum opwest_float_abi."""
    big_endian: int
    reserved: int
    metadata_version: int
    host_version: int
    layout: int
    """LAYOUT_*"""
    cpu: int
    """Bits of `capabilities`."""
    slot_size: int
    devices: int
    inputs: int
    outputs: int
    workspace_size: int
    workspace_align: int
    pools_size: int
    pools_align: int
    inputs_size: int
    outputs_size: int


class Signature(NamedTuple):
    """A signature over the signed part."""

    key: bytes
    """The first 8 bytes of the SHA-512 of the public key."""
    value: bytes
    """64 bytes."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a bundle contains, besides lengths and offsets."""

    kind: int
    slot_address: int
    descriptor: int
    """The offset of the descriptor in the image; 0 for LLEXT."""
    version: tuple[int, int, int]
    interface_hash: int
    model_hash: bytes
    name: str
    abi: AbiFields
    image: bytes
    sbom: str

    @property
    def version_text(self) -> str:
        """The version of the model: MAJOR.MINOR.PATCH."""
        return ".".join(map(str, self.version))


@dataclass(frozen=True, slots=True)
class Bundle:
    """A file whose parts are within it."""

    content: Content
    length: int
    """Bytes of the signed part."""
    image_offset: int
    sbom_offset: int
    signatures: tuple[Signature, ...]
    data: bytes

    @property
    def signed(self) -> bytes:
        """The bytes that signatures cover."""
        return self.data[: self.length]


def pack(content: Content) -> bytes:
    """Return the signed part of a bundle."""
    sbom = content.sbom.encode()
    image_offset = -(-HEADER_SIZE // IMAGE_ALIGN) * IMAGE_ALIGN
    sbom_offset = image_offset + len(content.image)
    length = -(-(sbom_offset + len(sbom)) // SIGNED_ALIGN) * SIGNED_ALIGN
    major, minor, patch = content.version
    header = _HEADER.pack(
        *(MAGIC, VERSION, HEADER_SIZE, length, content.kind, content.slot_address, image_offset, len(content.image)),
        image_offset + content.descriptor if content.kind == LINKED else 0,
        *(sbom_offset, len(sbom), major << 24 | minor << 16 | patch, content.interface_hash, content.model_hash),
        content.name.encode(),
    )
    head = (header + _ABI.pack(*content.abi)).ljust(image_offset, b"\0")
    return (head + content.image + sbom).ljust(length, b"\0")


def with_signatures(signed: bytes, signatures: Sequence[Signature]) -> bytes:
    """Return a whole bundle; without signatures, only the signed part."""
    if not signatures:
        return signed
    rows = [_SIGNATURE.pack(key, ED25519, len(value), 0, value) for key, value in signatures]
    return signed + _BLOCK.pack(SIGNATURES_MAGIC, len(rows), 0) + b"".join(rows)


def unpack(data: bytes) -> Bundle:
    """Return the parts of a bundle. Raises BundleError for the first fault."""
    if not data.startswith(MAGIC):
        raise BundleError("not a bundle: the file does not begin with 'OPWB'", "a file of 'opwest bundle'")
    if len(data) < HEADER_SIZE:
        raise BundleError(f"truncated: the file has {counted(len(data), 'byte')}, the header {HEADER_SIZE}")
    fields = _HEADER.unpack_from(data)
    _magic, version, header_size, length, kind, address, image_offset, image_size, descriptor, *rest = fields
    sbom_offset, sbom_size, number, interface_hash, model_hash, name = rest
    if version != VERSION:
        raise BundleError(f"version {version} of the format is not supported", f"version {VERSION}")
    if header_size != HEADER_SIZE:
        raise BundleError(f"the header has {counted(header_size, 'byte')}", f"{HEADER_SIZE}")
    abi = AbiFields(*_ABI.unpack_from(data, _HEADER.size))
    if abi.reserved or any(data[HEADER_SIZE - _RESERVED : HEADER_SIZE]):
        raise BundleError("reserved bytes of the header are not zero")
    if length > len(data):
        raise BundleError(f"truncated: the signed part has {counted(length, 'byte')}, the file {len(data)}")
    _check_parts(length, kind, address, (image_offset, image_size), descriptor, (sbom_offset, sbom_size))
    if b"\0" not in name or any(name[name.index(b"\0") :]) or name.startswith(b"\0"):
        raise BundleError("the name of the model is damaged", "text, filled with zeros")
    gaps = ((HEADER_SIZE, image_offset), (image_offset + image_size, sbom_offset), (sbom_offset + sbom_size, length))
    if any(any(data[begin:end]) for begin, end in gaps):
        raise BundleError("bytes between the parts are not zero")
    content = Content(
        kind=kind,
        slot_address=address,
        descriptor=descriptor - image_offset if kind == LINKED else 0,
        version=(number >> 24, number >> 16 & 0xFF, number & 0xFFFF),
        interface_hash=interface_hash,
        model_hash=model_hash,
        name=_text(name.rstrip(b"\0"), "the name of the model"),
        abi=abi,
        image=data[image_offset : image_offset + image_size],
        sbom=_text(data[sbom_offset : sbom_offset + sbom_size], "the bill of materials"),
    )
    return Bundle(content, length, image_offset, sbom_offset, _signatures(data, length), data)


def _check_parts(
    length: int, kind: int, address: int, image: tuple[int, int], descriptor: int, sbom: tuple[int, int]
) -> None:
    if length % SIGNED_ALIGN:
        raise BundleError(f"the signed part has {counted(length, 'byte')}", f"a multiple of {SIGNED_ALIGN}")
    if kind not in KINDS:
        raise BundleError(f"unknown kind {kind}", ", ".join(f"{number} ({name})" for number, name in KINDS.items()))
    offset, size = image
    if offset < HEADER_SIZE or offset % IMAGE_ALIGN or not size or offset + size > length:
        raise BundleError(f"the image, {counted(size, 'byte')} at {offset}, is not within the signed part")
    if sbom[0] < offset + size or sbom[0] + sbom[1] > length:
        raise BundleError(f"the bill of materials, {sbom[1]} bytes at {sbom[0]}, is not within the signed part")
    if kind == LINKED and (address % IMAGE_ALIGN or not offset <= descriptor < offset + size):
        raise BundleError("the slot address or the offset of the descriptor is damaged")
    if kind == LLEXT and (address or descriptor):
        raise BundleError("an image for LLEXT has an address or a descriptor")


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BundleError(f"{what} is not UTF-8") from error


def _signatures(data: bytes, length: int) -> tuple[Signature, ...]:
    block = data[length:]
    if not block:
        return ()
    if len(block) < _BLOCK.size:
        raise BundleError(f"truncated: {counted(len(block), 'byte')} follow the signed part")
    magic, count, reserved = _BLOCK.unpack_from(block)
    if magic != SIGNATURES_MAGIC or reserved or not 1 <= count <= MAX_SIGNATURES:
        raise BundleError("the block of signatures is damaged")
    if len(block) != _BLOCK.size + count * _SIGNATURE.size:
        raise BundleError(
            f"{counted(len(block), 'byte')} follow the signed part",
            f"{_BLOCK.size + count * _SIGNATURE.size}, {counted(count, 'signature')}",
        )
    signatures = []
    for key, algorithm, size, zero, value in _SIGNATURE.iter_unpack(block[_BLOCK.size :]):
        if algorithm != ED25519 or size != len(value) or zero:
            raise BundleError("a signature is damaged, or its algorithm is unknown", "Ed25519")
        signatures.append(Signature(key, value))
    return tuple(signatures)


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole: after an error or an interruption it is unchanged. Raises OpwestError."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise fail(f"cannot write the file: {error.strerror}", path) from error


def write_headers(folder: Path, headers: dict[str, bytes]) -> None:
    """Write headers; a header with the same content is not touched. Raises OpwestError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"cannot create the directory: {error.strerror}", folder) from error
    for name, content in headers.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            write_file(path, content)


def read_bundle(path: Path) -> Bundle:
    """Return a bundle. Raises OpwestError for an unusable file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise fail(f"cannot read the file: {error.strerror}", path) from error
    if len(data) > MAX_BYTES:
        raise fail(f"the file has more than {MAX_BYTES} bytes", path, expected="a bundle")
    try:
        return unpack(data)
    except BundleError as fault:
        raise fail(fault.message, path, expected=fault.expected) from fault


def is_bundle(path: Path) -> bool:
    """Whether a file begins as a bundle."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False

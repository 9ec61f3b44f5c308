# SPDX-License-Identifier: Apache-2.0
"""The kinds of files that `opwest import` reads, by their content.

KINDS has one row for each; `foreign_models.py` has the files of other tools. Of a file, only its first bytes, the heads
of the fields of a protocol buffer, and the names in an archive are read.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import BinaryIO, NamedTuple

_START = 1 << 16
_PART = 1 << 20
_MAX_FIELDS = 2_000
_MAX_MEMBERS = 20_000
_CUSTOM_CODE_OF_VELA = b"\7\0\0\0ethos-u\0"
"""The custom code as a string of a flatbuffer: its length, its characters, a NUL."""
_LENGTH = 2
"""The wire type of texts, bytes and messages in protocol buffers (Protocol Buffers, Encoding)."""


class Seen:
    """A file of which the parts are read when a rule asks for them."""

    def __init__(self, stream: BinaryIO, name: str = "") -> None:
        self.stream, self.name = stream, name
        self.size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        self.start = stream.read(_START)

    @cached_property
    def text(self) -> str | None:
        """The start of a text in UTF-8, without white space before it; None for other content."""
        if b"\0" in self.start:
            return None
        for cut in range(4):  # the part can end inside a character
            try:
                return self.start[: len(self.start) - cut].decode("utf-8-sig").lstrip()
            except UnicodeDecodeError:
                continue
        return None

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The names of the files in a ZIP archive; none for other content and damaged archives."""
        if not self.start.startswith(b"PK\x03\x04"):
            return ()
        import zipfile

        try:
            with zipfile.ZipFile(self.stream) as archive:
                return tuple(info.filename for info in archive.infolist()[:_MAX_MEMBERS] if not info.is_dir())
        except Exception:  # zipfile raises any type of exception for invalid data
            return ()

    @cached_property
    def inner(self) -> tuple[str, ...]:
        """The names in an archive, without the directory that contains all of them."""
        tops = {name.partition("/")[0] for name in self.members}
        is_nested = len(tops) == 1 and all("/" in name for name in self.members)
        return tuple(name.partition("/")[2] for name in self.members) if is_nested else self.members

    @cached_property
    def fields(self) -> Mapping[int, int]:
        """The wire types of the outermost fields of a protocol buffer; none for other content.

        The content of a field is not read. The last field of a truncated file is one of them.
        """
        found: dict[int, int] = {}
        position = 0
        for _ in range(_MAX_FIELDS):
            if position >= self.size:
                break
            tag, position = self._varint(position)
            number, wire = tag >> 3, tag & 7
            if not number or found.setdefault(number, wire) != wire or wire not in (0, 1, _LENGTH, 5):
                return {}
            value, after = self._varint(position) if wire in (0, _LENGTH) else (0, position)
            position = after + (value if wire == _LENGTH else {0: 0, 1: 8, 5: 4}[wire])
        return found

    def _varint(self, position: int) -> tuple[int, int]:
        """Return the number at a position, and the position after it; a number that is too long is no valid tag."""
        if position + 10 <= len(self.start):
            data = self.start[position : position + 10]
        else:
            self.stream.seek(position)
            data = self.stream.read(10)
        value = 0
        for index, byte in enumerate(data):
            value |= (byte & 127) << 7 * index
            if byte < 128:
                return value, position + index + 1
        return 0, position + len(data) + 1

    def contains(self, wanted: bytes) -> bool:
        """Whether the content contains some bytes."""
        self.stream.seek(0)
        before = b""
        while part := self.stream.read(_PART):
            if wanted in before + part:
                return True
            before = part[-len(wanted) :]
        return False


def _is_tflite(seen: Seen) -> bool:
    return seen.start[4:8] == b"TFL3"


def _is_vela(seen: Seen) -> bool:
    is_raw = "cmd_data.npy" in seen.members
    named = seen.name.endswith("_vela.tflite")  # Vela can leave all operators on the processor: the import reports it
    return is_raw or (_is_tflite(seen) and (named or seen.contains(_CUSTOM_CODE_OF_VELA)))


def _is_torch(seen: Seen) -> bool:
    """Whether it is an archive of torch.export.save(): of torch 2.8 and newer, or of an older one."""
    names = seen.inner
    of_new = "archive_format" in names or any(n.startswith("models/") and n.endswith(".json") for n in names)
    return of_new or {"serialized_exported_program.json", "serialized_state_dict.pt"} <= {*names}


def _is_tar(seen: Seen) -> bool:
    return seen.start[257:262] == b"ustar" or (seen.name.endswith(".tar") and not seen.members)


def _is_onnx(seen: Seen) -> bool:
    """Whether it is a ModelProto: ir_version (1) and graph (7), and no field that onnx.proto lacks."""
    fields = seen.fields
    return fields.get(1) == 0 and fields.get(7) == _LENGTH and {*fields} <= {*range(1, 9), 14, 20, 25, 26}


class Kind(NamedTuple):
    """A kind of `opwest import`."""

    name: str
    noun: str
    is_kind: Callable[[Seen], bool]


KINDS = (
    Kind("vela", "a model that Vela compiled", _is_vela),
    Kind("tflite", "a TFLite model", _is_tflite),
    Kind("torch", "a PyTorch program of torch.export", _is_torch),
    Kind("mlf", "an archive in microTVM's Model Library Format", _is_tar),
    Kind("onnx", "an ONNX model", _is_onnx),
)
"""The first row whose rule holds is the kind."""


class Identified(NamedTuple):
    """What a file is."""

    kind: str | None
    """The kind of its import; None: `opwest import` does not read it."""
    what: str | None
    """A noun phrase; None: unknown."""
    hint: str | None = None
    """The command that converts it, or what to do, in the imperative."""


MANIFEST = "a manifest"
"""What a manifest is, in messages."""


def kind_of_content(content: bytes) -> str | None:
    """Return the kind of a trained model by its bytes: those of an array in C."""
    seen = Seen(io.BytesIO(content))
    return next((row.name for row in KINDS if row.name != "mlf" and row.is_kind(seen)), None)

# SPDX-License-Identifier: Apache-2.0
"""The formats of trained models, one row each: `opwest import`, its options and the readers are derived from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


class Format:
    """A format whose files a front end reads as typed graphs. No dataclass: every command imports this table."""

    def __init__(
        self,
        name: str,
        title: str,
        noun: str,
        form: str,
        is_start: Callable[[bytes], bool],
        is_certain: bool,
        packages: tuple[tuple[str, str], ...],
        reader: str,
        suffix: str = "",
    ) -> None:
        self.name, self.suffix = name, suffix or f".{name}"
        """The kind of `opwest import`, and the suffix of the names of files."""
        self.title, self.noun, self.form = title, noun, form
        """In messages: the format, a file of it, and how a file starts."""
        self.is_start = is_start
        """Whether the first 8 bytes can be those of a file of the format."""
        self.is_certain = is_certain
        """Whether no file of another format has such bytes; else the suffix of the name precedes them."""
        self.packages = packages
        """The modules and the packages that the reader requires."""
        self.reader = reader
        """module:function, from the content, Rules of compiler/graph/types.py and operators of the user to graphs."""


TFLITE = Format(
    "tflite",
    "TFLite",
    "a TFLite model",
    "a flatbuffer whose bytes 4 to 7 are TFL3",
    lambda start: start[4:8] == b"TFL3",
    True,
    (("tflite", "tflite"), ("flatbuffers", "flatbuffers")),
    "opwest.frontends.tflite.read:read_tflite",
)
ONNX = Format(
    "onnx",
    "ONNX",
    "an ONNX model",
    "a protocol buffer of ONNX",
    # The fields that writers of ModelProto put first.
    lambda start: start[:1] in (b"\x08", b"\x12", b":", b"B"),
    False,
    (("onnx", "onnx"),),
    "opwest.frontends.onnx.read:read_onnx",
)
TORCH = Format(
    "torch",
    "PyTorch",
    "an exported program of PyTorch",
    "an archive of torch.export.save",
    lambda start: start[:4] == b"PK\x03\x04",
    False,  # any zip archive
    (("onnx", "onnx"),),
    "opwest.frontends.torch.read:read_torch",
    ".pt2",
)
FORMATS = (TFLITE, TORCH, ONNX)


def format_of_start(start: bytes) -> Format | None:
    """Return the format of a file with these first bytes."""
    return next((row for row in FORMATS if row.is_start(start)), None)


def named(name: str | None) -> Format | None:
    """Return the format with a name."""
    return next((row for row in FORMATS if row.name == name), None)


OTHERS = ("mlf", "vela")
"""The kinds of imports without a row."""


def kind_of(path: Path) -> str | None:
    """Return the kind of the import of a file: by its content, of unknown content by its name.

    None for a file that no import reads, and for a missing file with an unknown name.
    """
    if path.exists():
        from opwest.objects.model_files import identify  # only imports need it

        found = identify(path)
        if found.kind in OTHERS or named(found.kind) is not None:
            return found.kind
        if found.what is not None:
            return None
    kinds = {**{row.suffix: row.name for row in FORMATS}, ".tar": "mlf", ".npz": "vela"}
    return kinds.get(path.suffix)

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


def format_of_file(path: Path) -> Format:
    """Return the format of a file by its first bytes, or by the suffix of its name where the bytes are not certain."""
    try:
        with path.open("rb") as stream:
            start = stream.read(8)
    except OSError:  # the import reports it
        start = b""
    certain = (row for row in FORMATS if row.is_certain and row.is_start(start))
    named = (row for row in FORMATS if path.suffix == row.suffix)
    return next(certain, None) or next(named, None) or FORMATS[-1]


def kind_of(path: Path) -> str | None:
    """Return the kind of the import of a model: by its content, or else by its name; None for a missing file."""
    if not path.exists():
        return next((row.name for row in FORMATS if path.name.endswith(row.suffix)), None)
    if path.is_dir() or path.suffix == ".tar":
        return "mlf"
    if path.suffix == ".npz" or path.name.endswith("_vela.tflite"):
        return "vela"
    return format_of_file(path).name

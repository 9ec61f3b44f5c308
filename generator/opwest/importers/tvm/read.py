# SPDX-License-Identifier: Apache-2.0
"""Read a model file with the reader of its format."""

from __future__ import annotations

from pathlib import Path

from opwest.importers.tvm.faults import APACHE_TVM, fault, require
from opwest.importers.tvm.source import Source

_READERS = {".tflite": "tflite", ".onnx": "onnx"}
_LARGEST = 1 << 31
"""The limit of flatbuffers and of protobuf, in bytes."""


def read_model(path: Path) -> Source:
    """Return the model in a file. Raises OpwestError."""
    kind = _READERS.get(path.suffix.lower())
    if kind is None:
        raise fault("unsupported file format", str(path), "a .tflite or an .onnx file")
    require([APACHE_TVM, (kind, kind)])
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size < _LARGEST else b""
    except OSError as error:
        raise fault(f"cannot read the file: {error.strerror}", str(path)) from None
    if not content:
        raise fault("the file is empty" if size == 0 else "the file is too large", str(path), "a model below 2 GiB")
    if kind == "tflite":
        from opwest.importers.tvm.read_tflite import read_tflite

        return read_tflite(path, content)
    from opwest.importers.tvm.read_onnx import read_onnx

    return read_onnx(path, content)

# SPDX-License-Identifier: Apache-2.0
"""Read a model file with the reader of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from opwest.base import commands
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault, require_packages

Progress = Callable[[str], None]
Quantization = tuple[float, int]
"""Scale and zero point."""


@dataclass(frozen=True)
class Port:
    """An input or output, with its name in the model."""

    name: str
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Source:
    """A model before it is lowered. Inputs and outputs are in the order of the Relax function."""

    kind: str
    """tflite, onnx or relax."""
    place: str | None
    """The file, for messages."""
    content: bytes
    module: Any
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[tuple[str, str], ...] = ()
    """The operators of the file: kind and description."""
    remarks: tuple[str, ...] = ()
    """Remarks for the user, printed and written to the manifest."""

    def where(self, operator: str) -> str:
        """Return the likely source operators of a Relax operator, as the end of a message."""
        name = operator.replace("_", "").rpartition(".")[2]
        found = [words for kind, words in self.nodes if kind.replace("_", "").lower().startswith(name)]
        return f"; in the file, operator {' or '.join(found[:3])}" if found else ""


__all__ = ["APACHE_TVM", "fault", "last_line", "require", "require_version"]

INSTALL = commands.pip_install("opwest[tvm]")


def last_line(error: BaseException) -> str:
    """Return the last line of an exception: TVM's messages begin with a trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def require(packages: Iterable[tuple[str, str]]) -> None:
    """Raise OpwestError if one of the packages, (module, name on PyPI), is not installed or cannot be loaded."""
    require_packages(packages, "imports through TVM", INSTALL)
    require_version()


def require_version() -> None:
    """Raise OpwestError if TVM lacks the passes that the importer calls."""
    import tvm

    if not str(tvm.__version__).startswith(f"{_VERSION}."):
        raise fault(f"TVM {tvm.__version__} is installed", None, f"apache-tvm {_VERSION}", INSTALL)


_VERSION = "0.27"
APACHE_TVM = ("tvm", "apache-tvm")


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
        from opwest.frontends.tvm.read_tflite import read_tflite

        return read_tflite(path, content)
    from opwest.frontends.tvm.read_onnx import read_onnx

    return read_onnx(path, content)

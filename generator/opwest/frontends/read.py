# SPDX-License-Identifier: Apache-2.0
"""Read a model file of any format, and report damaged files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from opwest.base import commands
from opwest.base.path_suggestions import hint_for
from opwest.compiler.faults import fault, internal, require_packages
from opwest.compiler.graph.types import Damaged, Graph, Rules, Unsupported
from opwest.compiler.graph.user import UserOperator

INSTALL = commands.pip_install("opwest[models]")
TFLITE = (("tflite", "tflite"), ("flatbuffers", "flatbuffers"))
ONNX = (("onnx", "onnx"),)
MAGIC = b"TFL3"
"""The bytes 4 to 7 of a TFLite file."""
_MAX_BYTES = 1 << 31
_PART_BYTES = 1 << 20


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises OpwestError."""
    content = bytearray()
    try:
        with path.open("rb") as stream:
            # In parts: a read of the greatest size allocates that size for every file.
            while len(content) <= _MAX_BYTES and (part := stream.read(_PART_BYTES)):
                content += part
    except OSError as error:
        raise fault(f"cannot read the model: {error.strerror}", str(path), hint=hint_for(path)) from None
    if len(content) > _MAX_BYTES:
        raise fault("the file has more than 2 GiB", str(path), "a model of at most 2 GiB")
    return bytes(content)


FORMATS = {"tflite": "a TFLite model", "onnx": "an ONNX model"}
"""The formats in messages."""


def format_of(content: bytes, place: str) -> str:
    """Return tflite or onnx. Raises OpwestError for other files."""
    if content[4:8] == MAGIC:
        return "tflite"
    # The fields that writers of ModelProto put first.
    if content[:1] in (b"", b"", b":", b"B"):
        return "onnx"
    expected = "a flatbuffer whose bytes 4 to 7 are TFL3, or a protocol buffer of ONNX"
    raise fault("not a TFLite or ONNX model", place, expected)


def read_model(
    content: bytes, place: str, rules: Rules | None = None, users: Mapping[str, UserOperator] | None = None
) -> tuple[Graph, ...]:
    """Return the models of a file; `users` are operators of the user by their names in it. Raises OpwestError."""
    kind = format_of(content, place)
    if kind == "tflite":
        require_packages(TFLITE, "imports of TFLite files", INSTALL)
        from opwest.frontends.tflite.read import read_tflite

        graphs = _read(lambda: read_tflite(content, users), place, FORMATS[kind])
        return graphs if rules is None else tuple(replace(graph, rules=rules) for graph in graphs)
    require_packages(ONNX, "imports of ONNX files", INSTALL)
    from opwest.frontends.onnx.read import read_onnx

    return _read(lambda: read_onnx(content, rules, users), place, FORMATS[kind])


def _read(reader: Callable[[], tuple[Graph, ...]], place: str, kind: str) -> tuple[Graph, ...]:
    """Call a reader and report a damaged file. Raises OpwestError."""
    again = "fetch or convert the model again"
    try:
        return reader()
    except Damaged as reason:
        raise fault(f"the file is damaged: {reason}", place, hint=again) from None
    except Unsupported as reason:
        raise fault(reason.reason, place, reason.expected, hint=reason.hint) from None
    except struct.error:
        raise fault(
            f"the file is damaged: {kind} with an offset beyond the end of the file", place, hint=again
        ) from None
    except RecursionError:
        raise fault(f"the file is damaged: {kind} that is nested too deeply", place, hint=again) from None
    except Exception as error:  # any error of the packages that parse files
        own = internal(error, place)
        if own is not None:
            raise own from None
        text = str(error).splitlines()[-1] if str(error) else type(error).__name__
        raise fault(f"the file is damaged: cannot read it as {kind} ({text})", place, hint=again) from None

# SPDX-License-Identifier: Apache-2.0
"""The names of classes in TFLite's metadata.

The buffer TFLITE_METADATA is a flatbuffer that names files of each output; the files are in a zip archive after the
model. Source: TFLite's metadata_schema.fbs (ModelMetadata, SubGraphMetadata, TensorMetadata, AssociatedFile).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from flatbuffers import number_types
from flatbuffers.table import Table

NAME = b"TFLITE_METADATA"
_MOST_BYTES = 1 << 20
_MOST_ENTRIES = 64
_SUBGRAPHS, _OUTPUTS, _TENSOR_FILES, _FILE_NAME, _FILE_TYPE = 3, 3, 6, 0, 2
"""Numbers of fields: subgraph_metadata, output_tensor_metadata, associated_files, name, type."""
_LABELS = (2, 3)
"""AssociatedFileType: TENSOR_AXIS_LABELS, TENSOR_VALUE_LABELS."""


def labels_of(file: Any, content: bytes, subgraph: int) -> Mapping[int, tuple[str, ...]]:
    """Return the class names by the number of the output; without readable metadata there are none."""
    try:
        return dict(_labels(file, content, subgraph))
    except Exception:  # metadata is not required to import a model
        return {}


def _labels(file: Any, content: bytes, subgraph: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    for number in range(min(file.MetadataLength(), _MOST_ENTRIES)):
        entry = file.Metadata(number)
        if entry.Name() != NAME:
            continue
        data = bytes(file.Buffers(entry.Buffer()).DataAsNumpy())
        root = Table(bytearray(data), int.from_bytes(data[:4], "little"))
        graph = list(_tables(root, _SUBGRAPHS))[subgraph]
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for output, tensor in enumerate(_tables(graph, _OUTPUTS)):
                for one in _tables(tensor, _TENSOR_FILES):
                    if _type(one) in _LABELS:
                        yield output, _lines(archive, _name(one))


def _tables(table: Table, field: int) -> Iterator[Table]:
    """Yield the tables of a vector."""
    offset = table.Offset(4 + 2 * field)
    if offset:
        start = table.Vector(offset)
        for i in range(min(table.VectorLen(offset), _MOST_ENTRIES)):
            yield Table(table.Bytes, table.Indirect(start + 4 * i))


def _name(table: Table) -> str:
    offset = table.Offset(4 + 2 * _FILE_NAME)
    return bytes(table.String(offset + table.Pos)).decode() if offset else ""


def _type(table: Table) -> int:
    offset = table.Offset(4 + 2 * _FILE_TYPE)
    return int(table.Get(number_types.Int8Flags, offset + table.Pos)) if offset else 0


def _lines(archive: zipfile.ZipFile, name: str) -> tuple[str, ...]:
    with archive.open(name) as stream:
        text = stream.read(_MOST_BYTES).decode()
    return tuple(line.strip() for line in text.splitlines() if line.strip())

# SPDX-License-Identifier: Apache-2.0
"""The tensors of a subgraph: dtypes, quantisation, and constants in their plain form.

int4 constants become int8, float16 constants float32, sparse constants dense. Source: TFLite's schema.fbs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.graph.types import MAX_ELEMENTS, Damaged, Quantization, Tensor


def dense(table: Any, values: Any, tensor: Tensor) -> Any:
    """Return the dense array, in the order of the tensor's dimensions. Raises Damaged."""
    order = [int(table.TraversalOrder(i)) for i in range(table.TraversalOrderLength())]
    blocks = [int(table.BlockMap(i)) for i in range(table.BlockMapLength())]
    levels = [table.DimMetadata(i) for i in range(table.DimMetadataLength())]
    rank = len(tensor.shape)
    if len(order) != rank + len(blocks) or sorted(order) != list(range(len(order))) or len(levels) != len(order):
        raise Damaged(f"the sparse tensor '{tensor.name}' has contradictory dimensions")
    if any(not 0 <= block < rank for block in blocks):
        raise Damaged(f"the sparse tensor '{tensor.name}' has a block in an absent dimension")
    sizes = _block_sizes(tensor, blocks, order, levels)
    # The coordinates of stored elements, level by level: one row for each path through the levels.
    paths = np.zeros((1, 0), np.int64)
    position = np.zeros(1, np.int64)
    for level, axis in zip(levels, order, strict=True):
        size = sizes[axis]
        if level.Format() == 0:
            at = np.arange(size)
            parent = np.repeat(np.arange(len(paths)), size)
            own = np.tile(at, len(paths))
            position = np.repeat(position, size) * size + own
        else:
            segments, indices = (_numbers(level, part, tensor) for part in ("ArraySegments", "ArrayIndices"))
            if len(segments) <= position.max(initial=0):
                raise Damaged(f"the sparse tensor '{tensor.name}' has too few segments")
            first, last = segments[position], segments[position + 1] if len(segments) > 1 else segments[position]
            counts = last - first
            if (counts < 0).any() or (first < 0).any() or last.max(initial=0) > len(indices):
                raise Damaged(f"the sparse tensor '{tensor.name}' has segments outside of its indices")
            parent = np.repeat(np.arange(len(paths)), counts)
            start = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            position = start + np.arange(counts.sum())
            own = indices[position]
            if ((own < 0) | (own >= size)).any():
                raise Damaged(f"the sparse tensor '{tensor.name}' has an index outside of its dimension")
        if len(parent) > MAX_ELEMENTS:
            raise Damaged(f"the sparse tensor '{tensor.name}' has too many elements")
        paths = np.concatenate([paths[parent], own[:, None]], axis=1)
    if len(paths) > len(values):
        raise Damaged(
            f"the sparse tensor '{tensor.name}' has {counted(len(values), 'element')}, {len(paths)} are required"
        )
    places = {axis: paths[:, level] for level, axis in enumerate(order)}
    full = [places[axis] for axis in range(rank)]
    for number, axis in enumerate(blocks):
        full[axis] = full[axis] * sizes[rank + number] + places[rank + number]
    if any((at >= size).any() for at, size in zip(full, tensor.shape, strict=True)):
        raise Damaged(f"the sparse tensor '{tensor.name}' has an element outside of its shape")
    result = np.zeros(tensor.shape, values.dtype)
    result[tuple(full)] = values[: len(paths)]
    return result


def _block_sizes(tensor: Tensor, blocks: list[int], order: list[int], levels: list[Any]) -> list[int]:
    """Return the sizes of all dimensions: those of the tensor in blocks, then those of a block."""
    sizes = list(tensor.shape)
    inner = []
    for number, axis in enumerate(blocks):
        level = levels[order.index(len(tensor.shape) + number)]
        size = int(level.DenseSize())
        if level.Format() != 0 or size < 1 or sizes[axis] % size:
            raise Damaged(f"the sparse tensor '{tensor.name}' has a block of {counted(size, 'element')}")
        sizes[axis] //= size
        inner.append(size)
    if math.prod([*sizes, *inner]) > MAX_ELEMENTS:
        raise Damaged(f"the sparse tensor '{tensor.name}' has too many elements")
    return [*sizes, *inner]


def _numbers(level: Any, part: str, tensor: Tensor) -> Any:
    """Return the vector of a union SparseIndexVector: Int32Vector, Uint16Vector or Uint8Vector."""
    import tflite

    kinds = {1: tflite.Int32Vector, 2: tflite.Uint16Vector, 3: tflite.Uint8Vector}
    vector_type = kinds.get(getattr(level, f"{part}Type")())
    table = getattr(level, part)()
    if vector_type is None or table is None:
        raise Damaged(f"the sparse tensor '{tensor.name}' has no indices")
    vector = vector_type()
    vector.Init(table.Bytes, table.Pos)
    return vector.ValuesAsNumpy().astype(np.int64) if vector.ValuesLength() else np.zeros(0, np.int64)


DTYPES = {
    name: name.lower()
    for name in (
        *("FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16", "INT4", "INT8", "INT16", "INT32", "INT64"),
        *("UINT8", "UINT16", "UINT32", "UINT64", "BOOL", "COMPLEX64", "COMPLEX128"),
        *("STRING", "RESOURCE", "VARIANT"),
    )
}
"""The names of dtypes by those of TensorType."""
_QUANTISED = frozenset(("int4", "int8", "int16", "uint8"))
_BLOCKWISE = 2
"""QuantizationDetails.BlockwiseQuantization."""
_MAX_DIMENSIONS = 8
_MAX_BYTES = 1 << 31


def checked_index(index: int, count: int, text: str) -> int:
    """Return an index of `count` entries; `text` begins the message for others. Raises Damaged."""
    if not 0 <= index < count:
        raise Damaged(f"{text} {index} of {count}")
    return index


def read_tensor(file: Any, table: Any, number: int, dtypes: dict[int, str], content: bytes) -> Tensor:
    """Return a tensor; `dtypes` are the names by the numbers of TensorType, `content` is the file. Raises Damaged."""
    name = (table.Name() or b"").decode("utf-8", "replace") or f"tensor_{number}"
    if table.ShapeLength() > _MAX_DIMENSIONS:
        raise Damaged(
            f"tensor '{name}' has {counted(table.ShapeLength(), 'dimension')}, at most {_MAX_DIMENSIONS} are possible"
        )
    shape = tuple(int(table.Shape(i)) for i in range(table.ShapeLength()))
    dtype = dtypes.get(table.Type())
    if dtype is None:
        raise Damaged(f"tensor '{name}' has the unknown type {table.Type()}")
    # A size of 0 does not make the other ones possible: numpy multiplies those.
    if any(n < 0 for n in shape) or math.prod(n or 1 for n in shape) > _MAX_BYTES:
        raise Damaged(f"tensor '{name}' has the impossible shape {list(shape)}")
    tensor = Tensor(name, dtype, shape, _quantization(table.Quantization(), name, dtype, shape))
    tensor.number = number
    tensor.is_state = bool(table.IsVariable())
    buffer = checked_index(table.Buffer(), file.BuffersLength(), f"tensor '{name}' refers to buffer")
    data = _data(file.Buffers(buffer), name, content)
    quantization = table.Quantization()
    if quantization is not None and quantization.DetailsType() == _BLOCKWISE:
        tensor.dtype, tensor.content = f"{dtype} with blockwise scales", data
    elif len(data):
        _add_content(tensor, table, data)
    elif math.prod(shape) == 0 and dtype not in ("string", "resource", "variant", "bfloat16"):
        tensor.content = np.zeros(shape, "float32" if dtype == "float16" else "int8" if dtype == "int4" else dtype)
    if tensor.is_state and dtype == "int8" and tensor.content is None and tensor.quantization is not None:
        # Source: TFLite's core/subgraph.cc, ResetVariableTensors.
        tensor.content = np.full(shape, tensor.quantization.zeros[0], "int8")
    return tensor


def _data(buffer: Any, name: str, content: bytes) -> Any:
    """Return the bytes of a buffer, which can be after the flatbuffer. Source: TFLite's core/interpreter_builder.cc."""
    offset, size = buffer.Offset(), buffer.Size()
    if offset <= 1:
        return buffer.DataAsNumpy() if buffer.DataLength() else b""
    if offset + size > len(content):
        raise Damaged(f"tensor '{name}' is stored in bytes {offset} to {offset + size} of {len(content)}")
    return np.frombuffer(content, np.uint8, size, offset)


def _add_content(tensor: Tensor, table: Any, data: Any) -> None:
    """Set the content of a constant, with a plain dtype."""
    if tensor.dtype in ("string", "resource", "variant", "bfloat16"):
        tensor.content = data
        return
    count = math.prod(tensor.shape)
    sparse = table.Sparsity()
    if sparse is not None:
        count = -1
    if tensor.dtype == "int4":
        values = _nibbles(data, count)
        tensor.dtype = "int8"
    else:
        item = np.dtype(tensor.dtype).newbyteorder("<")
        needed = (len(data) // item.itemsize if count < 0 else count) * item.itemsize
        if len(data) < needed:
            raise Damaged(f"tensor '{tensor.name}' has {counted(len(data), 'byte')}, {needed} are required")
        values = data[:needed].view(item)
        if tensor.dtype == "float16":
            values, tensor.dtype = values.astype("float32"), "float32"
        values = values.astype(tensor.dtype)
    if sparse is not None:
        values = dense(sparse, values, tensor)
    tensor.content = values.reshape(tensor.shape)


def _nibbles(data: Any, count: int) -> Any:
    """Return int4 elements as int8, the low half of each byte first. Source: TFLite's UnpackDenseInt4IntoInt8."""
    both = np.stack([data & 15, data >> 4], axis=-1).reshape(-1).astype(np.int8)
    signed = ((both ^ 8) - 8).astype(np.int8)
    if count > len(signed):
        raise Damaged(f"{counted(len(data), 'byte')} of int4, {counted(count, 'element')} are required")
    return signed[:count] if count >= 0 else signed


def _quantization(table: Any, name: str, dtype: str, shape: tuple[int, ...]) -> Quantization | None:
    if table is None or not table.ScaleLength():
        return None
    scales = tuple(float(s) for s in table.ScaleAsNumpy())
    zeros = tuple(int(z) for z in table.ZeroPointAsNumpy()) if table.ZeroPointLength() else (0,) * len(scales)
    if len(zeros) == 1:
        zeros *= len(scales)
    wrong = [scale for scale in scales if not (math.isfinite(scale) and scale > 0)]
    if dtype not in _QUANTISED:
        # int32 biases: only their values count.
        return Quantization(scales, zeros) if not wrong and len(scales) == len(zeros) == 1 else None
    if wrong:
        raise Damaged(f"tensor '{name}' has the scale {wrong[0]:g}, which is not a positive number")
    if len(zeros) != len(scales):
        raise Damaged(f"tensor '{name}' has {counted(len(scales), 'scale')} and {len(zeros)} zero points")
    limits = np.iinfo("int8" if dtype == "int4" else dtype)
    beyond = [zero for zero in zeros if not limits.min <= zero <= limits.max]
    if beyond:
        raise Damaged(f"tensor '{name}' is {dtype} with the zero point {beyond[0]}")
    if len(scales) == 1:
        return Quantization(scales, zeros)
    axis = table.QuantizedDimension()
    if not (0 <= axis < len(shape) and shape[axis] == len(scales)):
        matching = [i for i, n in enumerate(shape) if n == len(scales)]
        if len(matching) != 1:
            raise Damaged(
                f"tensor '{name}' of shape {list(shape)} has {counted(len(scales), 'scale')} along dimension {axis}"
            )
        [axis] = matching
    return Quantization(scales, zeros, axis)

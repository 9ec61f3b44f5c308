# SPDX-License-Identifier: Apache-2.0
"""Read a raw file of Vela (`--output-format raw`): one subgraph that is the whole model, in an .npz archive.

Nothing is unpickled. The quantisation of such files is pickled, so it is left out. Bytes are of dtype S, which numpy
shortens by trailing zeros where it makes Python values: their memory is read instead.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opwest.compiler.faults import fault
from opwest.compiler.graph.types import Graph, Tensor
from opwest.frontends.vela.file import Call, Memory, VelaFile, node_of
from opwest.manifest.arrays import ArrayError, array_names, read_array

_BYTES = ("cmd_data", "weight_data")
_NUMBERS = ("weight_region", "scratch_region", "scratch_size", "scratch_fast_region", "scratch_fast_size")
_TENSORS = ("shape", "elem_size", "region", "offset")
_DTYPES = {1: "int8", 2: "int16", 4: "int32"}
"""The file has sizes of elements only."""
_MOST_DIMENSIONS = 4
_MOST_TENSORS = 1024
_WEIGHTS, _ARENA, _FAST = range(3)
"""The regions of Vela."""
_EXPECTED = "a file that Vela has written with --output-format raw"


def read_npz(path: Path) -> VelaFile:
    """Return the content of a file. Raises OpwestError."""
    file = _File(path)
    numbers = {name: file.number(name) for name in _NUMBERS}
    if file.length("variable_region"):
        raise fault("the model has variables", str(path), "a model without variables, or a .tflite file")
    for name, expected in (("weight_region", _WEIGHTS), ("scratch_region", _ARENA)):
        if numbers[name] != expected:
            raise fault(f"'{name}' is {numbers[name]}", str(path), str(expected))
    fast = numbers["scratch_fast_size"] if numbers["scratch_fast_region"] == _FAST else None
    content = file.bytes("weight_data")
    # numpy stores b"" as one zero byte; Vela's weights are multiples of 16 bytes.
    weights = np.frombuffer(b"" if content == b"\0" else content, np.uint8)
    inputs, input_offsets = file.tensors("input")
    outputs, output_offsets = file.tensors("output")
    call = Call("0 (ethos-u)", file.bytes("cmd_data"), tuple(inputs), tuple(outputs))
    node, operator = node_of(call, 0, str(path))
    graph = Graph("", call.inputs, call.outputs, (node,))
    offsets = dict(zip([*inputs, *outputs], [*input_offsets, *output_offsets], strict=True))
    remarks = (
        "the file has no names, dtypes and quantisation that can be read without unpickling: add them here; "
        "the .tflite file of Vela has them",
    )
    return VelaFile(graph, {operator: call}, Memory(weights, numbers["scratch_size"], fast), offsets, remarks)


class _File:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.names = frozenset(array_names(path))
        except ArrayError as error:
            raise fault(error.message, str(path), error.expected or _EXPECTED, error.hint) from None
        needed = {*_BYTES, *_NUMBERS, *(f"{role}_{part}" for role in ("input", "output") for part in _TENSORS)}
        missing = sorted(needed - self.names)
        if missing:
            more = ", ..." if len(missing) > 4 else ""
            raise fault(f"the file lacks {', '.join(missing[:4])}{more}", str(path), _EXPECTED)

    def _array(self, name: str) -> np.ndarray:
        try:
            found = read_array(self.path, name, key_given=True)
        except ArrayError as error:
            raise fault(f"'{name}': {error.message}", str(self.path), error.expected, error.hint) from None
        assert found.dtype is not None and found.shape is not None
        if found.dtype.startswith(("bytes", "void")):
            return np.frombuffer(found.content, np.uint8)
        return np.frombuffer(found.content, found.dtype).reshape(found.shape)

    def bytes(self, name: str) -> bytes:
        """Return the memory of an array of bytes."""
        found = self._array(name)
        if found.dtype.itemsize != 1:
            raise fault(f"'{name}' is {found.dtype}", str(self.path), "bytes")
        return found.tobytes()

    def numbers(self, name: str) -> np.ndarray:
        """Return an array of integers that are not negative; an empty one can have any dtype."""
        found = self._array(name)
        if not found.size:
            return found.astype(np.int64)
        if found.dtype.kind not in "iu" or not ((found >= 0) & (found < 1 << 31)).all():
            raise fault(f"'{name}' is {found.dtype}", str(self.path), "integers from 0 to 2147483647")
        return found.astype(np.int64)

    def number(self, name: str) -> int:
        """Return an array of one number."""
        found = self.numbers(name)
        if found.size != 1:
            raise fault(f"'{name}' has {found.size} elements", str(self.path), "one number")
        return int(found.reshape(-1)[0])

    def length(self, name: str) -> int:
        """Return the length of an array, 0 without it."""
        return int(self.numbers(name).size) if name in self.names else 0

    def tensors(self, role: str) -> tuple[list[Tensor], list[int]]:
        """Return the inputs or the outputs, with their offsets in the arena."""
        shapes, sizes, regions, offsets = (self.numbers(f"{role}_{part}") for part in _TENSORS)
        count = sizes.size
        lengths = {regions.size, offsets.size, shapes.shape[0] if shapes.ndim else 0}
        if not 1 <= count <= _MOST_TENSORS or lengths != {count}:
            counts = f"{shapes.shape}, {sizes.shape}, {regions.shape}, {offsets.shape}"
            raise fault(f"'{role}_shape' and the other arrays of {role}s have the shapes {counts}", str(self.path))
        found = []
        for i in range(count):
            if int(regions.reshape(-1)[i]) != _ARENA:
                text = f"{role} {i} is in region {int(regions.reshape(-1)[i])}: separate regions for inputs and outputs"
                hint = "compile without --separate-io-regions"
                raise fault(text, str(self.path), f"region {_ARENA}, the scratch memory", hint)
            dtype = _DTYPES.get(int(sizes.reshape(-1)[i]))
            shape = tuple(int(n) for n in shapes[i].reshape(-1))
            while len(shape) > _MOST_DIMENSIONS and shape[0] == 1:
                shape = shape[1:]
            if dtype is None or not all(shape):
                text = f"{role} {i} has the shape {list(shape)} and {int(sizes.reshape(-1)[i])} bytes per element"
                raise fault(text, str(self.path), "sizes of at least 1, and 1, 2 or 4 bytes")
            found.append(Tensor(f"{role}_{i}", dtype, shape))
        return found, [int(n) for n in offsets.reshape(-1)]

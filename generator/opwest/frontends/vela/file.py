# SPDX-License-Identifier: Apache-2.0
"""What a file of Vela contains, independent of its format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.graph.user import KIND, Argument, Use, UserOperator
from opwest.manifest.arrays import ArrayError, array_names, read_array
from opwest.objects.ethos_u.payload import ALIGNMENT, U85, Npu
from opwest.objects.ethos_u.stream import Examined, examine

CUSTOM_CODE = "ethos-u"
"""The custom code of the operator that runs on the NPU."""


@dataclass(frozen=True, eq=False)
class Call:
    """One subgraph that runs on the NPU."""

    label: str
    """The operator in messages."""
    payload: bytes
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory that all subgraphs of the NPU have in common; sizes in bytes."""

    weights: Any
    """A numpy array of uint8, read only; possibly empty."""
    arena: int
    """The scratch memory, which contains inputs and outputs."""
    fast: int | None
    """The fast scratch memory; None: it is the arena."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The bytes of the weights, the arena, and the fast scratch memory."""
        return self.weights.nbytes, self.arena, self.arena if self.fast is None else self.fast


@dataclass(frozen=True, eq=False)
class VelaFile:
    """A model with subgraphs for the NPU."""

    graph: Graph
    """Subgraphs for the NPU are operators of the user: the keys of `calls`."""
    calls: Mapping[UserOperator, Call]
    memory: Memory
    offsets: Mapping[Tensor, int]
    """The places of tensors in the arena, bytes; tensors that are absent are not planned."""
    remarks: tuple[str, ...] = ()


def node_of(call: Call, number: int, place: str) -> tuple[Node, UserOperator]:
    """Return the node of a subgraph for the NPU, with its operator."""
    where = Location(place)
    arguments = tuple(
        Argument(f"{name}{i}", tensor.dtype, tensor.shape, direction, False, where, {})
        for name, direction, tensors in (("x", "in", call.inputs), ("y", "out", call.outputs))
        for i, tensor in enumerate(tensors)
    )
    operator = UserOperator(f"npu_{number}", where, arguments, False, {}, None, {"objects": []})
    node = Node(KIND, call.inputs, call.outputs, {"use": Use(operator, {})}, call.label, source=CUSTOM_CODE)
    return node, operator


WEIGHTS, ARENA, FAST = range(3)
"""The regions of Vela."""
_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
"""Those of inputs and outputs of subgraphs for the NPU, which computes with integers."""


@dataclass(frozen=True, eq=False)
class Meaning:
    """What the NPU does in a file."""

    npu: Npu
    """The only NPU that all payloads are for."""
    regions: tuple[int, ...]
    """The memory of each base pointer that is passed: WEIGHTS, ARENA or FAST."""
    writes: Mapping[Call, tuple[tuple[int, int], ...] | None]
    """The bytes of the arena that each subgraph writes: first byte and end; None: unknown."""


def meaning_of(file: VelaFile, place: str, npu: Npu | None = None) -> Meaning:
    """Return the meaning of a file; `npu` is the NPU that it must be for, None: any. Raises OpwestError.

    All faults are reported at once.
    """
    faults = Diagnostics()
    where = Location(place)
    memory = file.memory
    examined: dict[Call, Examined] = {}
    for call in file.calls.values():
        label = f"operator {call.label}"
        examined[call] = payload = examine(call.payload, npu, memory.sizes, {0})
        separate = payload.regions - {WEIGHTS, ARENA, FAST}
        if separate:
            text = f"{label}: the payload uses region {min(separate)}: separate regions for inputs and outputs"
            hint = "compile without --separate-io-regions"
            faults.error(text, where, expected="inputs and outputs in the scratch memory", hint=hint)
            continue
        for error in payload.faults:
            faults.error(f"{label}: {error.message}", where, expected=error.expected, hint=error.hint)
        _check_tensors(call, file, faults, where)
    npus = list(dict.fromkeys(payload.npu for payload in examined.values() if payload.npu is not None))
    if len(npus) > 1:
        names = " and ".join(named.name for named in npus)
        faults.error(f"the file has payloads for {names}", where, expected="payloads for one NPU")
    faults.raise_if_errors()
    has_fast = any(FAST in payload.regions for payload in examined.values()) or (
        npus[0].product == U85 and memory.fast is not None
    )
    regions = (WEIGHTS, ARENA, *([ARENA if memory.fast is None else FAST] if has_fast else []))
    return Meaning(npus[0], regions, {call: _writes(payload) for call, payload in examined.items()})


def _writes(of: Examined) -> tuple[tuple[int, int], ...] | None:
    if of.npu is None or of.npu.product == U85:
        return None
    return tuple((use.begin, use.end) for use in of.uses if use.writes and use.region == ARENA)


def _check_tensors(call: Call, file: VelaFile, faults: Diagnostics, where: Location) -> None:
    """Report inputs and outputs that are not in the arena, or misaligned."""
    for tensor in (*call.inputs, *call.outputs):
        offset = file.offsets.get(tensor)
        what = f"operator {call.label}: tensor '{tensor.name}'"
        if tensor.dtype not in _DTYPES:
            faults.error(f"{what} has the dtype {tensor.dtype}", where, expected=f"one of {', '.join(_DTYPES)}")
            continue
        size = tensor.size * np.dtype(tensor.dtype).itemsize
        if offset is None:
            faults.error(f"{what} is not planned", where, expected="an offset in OfflineMemoryAllocation")
        elif offset < 0 or offset + size > file.memory.arena:
            text = f"{what} is planned at bytes {offset} to {offset + size - 1}"
            faults.error(text, where, expected=f"bytes within the scratch memory of {file.memory.arena} bytes")
        elif offset % ALIGNMENT:
            text = f"{what} is planned at byte {offset} of the scratch memory"
            faults.error(text, where, expected=f"a multiple of {ALIGNMENT} bytes")


_BYTES = ("cmd_data", "weight_data")
_NUMBERS = ("weight_region", "scratch_region", "scratch_size", "scratch_fast_region", "scratch_fast_size")
_TENSORS = ("shape", "elem_size", "region", "offset")
_DTYPES_BY_SIZE = {1: "int8", 2: "int16", 4: "int32"}
"""The file has sizes of elements only."""
_MAX_DIMENSIONS = 4
_MAX_TENSORS = 1024
_EXPECTED = "a file that Vela has written with --output-format raw"


def read_npz(path: Path) -> VelaFile:
    """Return the content of a file. Raises OpwestError."""
    file = _File(path)
    numbers = {name: file.number(name) for name in _NUMBERS}
    if "variable_region" in file.names and file.numbers("variable_region").size:
        raise fault("the model has variables", str(path), "a model without variables, or a .tflite file")
    for name, expected in (("weight_region", WEIGHTS), ("scratch_region", ARENA)):
        if numbers[name] != expected:
            raise fault(f"'{name}' is {numbers[name]}", str(path), str(expected))
    fast = numbers["scratch_fast_size"] if numbers["scratch_fast_region"] == FAST else None
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
            array = read_array(self.path, name, key_given=True)
        except ArrayError as error:
            raise fault(f"'{name}': {error.message}", str(self.path), error.expected, error.hint) from None
        assert array.dtype is not None and array.shape is not None
        if array.dtype.startswith(("bytes", "void")):
            return np.frombuffer(array.content, np.uint8)
        return np.frombuffer(array.content, array.dtype).reshape(array.shape)

    def bytes(self, name: str) -> bytes:
        """Return the memory of an array of bytes."""
        array = self._array(name)
        if array.dtype.itemsize != 1:
            raise fault(f"'{name}' is {array.dtype}", str(self.path), "bytes")
        return array.tobytes()

    def numbers(self, name: str) -> np.ndarray:
        """Return an array of integers that are not negative; an empty one can have any dtype."""
        array = self._array(name)
        if array.size and (array.dtype.kind not in "iu" or not ((array >= 0) & (array < 1 << 31)).all()):
            raise fault(f"'{name}' is {array.dtype}", str(self.path), "integers from 0 to 2147483647")
        return array.astype(np.int64)

    def number(self, name: str) -> int:
        """Return an array of one number."""
        array = self.numbers(name)
        if array.size != 1:
            raise fault(f"'{name}' has {counted(array.size, 'element')}", str(self.path), "one number")
        return int(array.reshape(-1)[0])

    def tensors(self, role: str) -> tuple[list[Tensor], list[int]]:
        """Return the inputs or the outputs, with their offsets in the arena."""
        shapes, sizes, regions, offsets = (self.numbers(f"{role}_{part}") for part in _TENSORS)
        count = sizes.size
        lengths = {regions.size, offsets.size, shapes.shape[0] if shapes.ndim else 0}
        if not 1 <= count <= _MAX_TENSORS or lengths != {count}:
            counts = f"{shapes.shape}, {sizes.shape}, {regions.shape}, {offsets.shape}"
            raise fault(f"'{role}_shape' and the other arrays of {role}s have the shapes {counts}", str(self.path))
        sizes, regions = sizes.reshape(-1), regions.reshape(-1)
        tensors = []
        for i in range(count):
            if regions[i] != ARENA:
                text = f"{role} {i} is in region {regions[i]}: separate regions for inputs and outputs"
                hint = "compile without --separate-io-regions"
                raise fault(text, str(self.path), f"region {ARENA}, the scratch memory", hint)
            dtype = _DTYPES_BY_SIZE.get(int(sizes[i]))
            shape = tuple(int(n) for n in shapes[i].reshape(-1))
            while len(shape) > _MAX_DIMENSIONS and shape[0] == 1:
                shape = shape[1:]
            if dtype is None or not all(shape):
                text = f"{role} {i} has the shape {list(shape)} and {sizes[i]} bytes per element"
                raise fault(text, str(self.path), "sizes of at least 1, and 1, 2 or 4 bytes")
            tensors.append(Tensor(f"{role}_{i}", dtype, shape))
        return tensors, [int(n) for n in offsets.reshape(-1)]

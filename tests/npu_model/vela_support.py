# SPDX-License-Identifier: Apache-2.0
"""Models compiled by Vela, run by the functional model."""

import functools
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tflite

from npu_model import execute

_TYPES = {
    tflite.TensorType.INT8: "int8",
    tflite.TensorType.UINT8: "uint8",
    tflite.TensorType.INT16: "int16",
    tflite.TensorType.INT32: "int32",
    tflite.TensorType.FLOAT32: "float32",
    tflite.TensorType.INT64: "int64",
    tflite.TensorType.BOOL: "bool",
}


class OnCpuError(Exception):
    """Vela left operators to the CPU, or several command streams."""


@dataclass(frozen=True)
class Place:
    """An input or output: its bytes in the scratch."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Compiled:
    """A model that runs on the NPU alone."""

    payload: bytes
    weights: bytes
    scratch: int
    fast: int
    inputs: list[Place]
    outputs: list[Place]

    def regions(self, fill: int = 0x55) -> list[bytearray]:
        """Return new regions: weights, scratch, and the fast scratch, which is the scratch if it has no own."""
        scratch = bytearray([fill]) * self.scratch
        return [bytearray(self.weights), scratch, bytearray([fill]) * self.fast if self.fast else scratch]

    def run(self, arrays, observe=None, payload: bytes | None = None):
        """Return the outputs of one run."""
        regions = self.regions()
        for place, array in zip(self.inputs, arrays, strict=True):
            array = np.asarray(array).astype(place.dtype)
            regions[1][place.offset : place.offset + place.size] = array.tobytes()
        execute(self.payload if payload is None else payload, regions, observe)
        return [
            np.frombuffer(regions[1], place.dtype, int(np.prod(place.shape)), place.offset).reshape(place.shape).copy()
            for place in self.outputs
        ]

    def operations(self) -> Counter[str]:
        """Return the numbers of operations by name."""
        found: Counter[str] = Counter()
        inputs = [np.zeros(place.shape, place.dtype) for place in self.inputs]
        self.run(inputs, lambda command, *_: found.update([command.name]))
        return found


@functools.cache
def compiled(content: bytes, *options: str) -> Compiled:
    """Return a model compiled by Vela, with defaults for an Ethos-U55 of 128 MACs.

    Raises OnCpuError if operators stay on the CPU, and CalledProcessError with Vela's messages if it fails.
    """
    return _read(file_of(content, *options))


@functools.cache
def file_of(content: bytes, *options: str) -> bytes:
    """Return the file that Vela makes of a model. Raises CalledProcessError with Vela's messages if it fails."""
    if not any(one.startswith("--accelerator-config") for one in options):
        options = ("--accelerator-config=ethos-u55-128", *options)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.tflite"
        file.write_bytes(content)
        command = [sys.executable, "-m", "ethosu.vela", *options, f"--output-dir={folder}", str(file)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        [made] = Path(folder).glob("model_vela.*")
        return made.read_bytes()


def _read(content: bytes) -> Compiled:
    """Read what Vela wrote: the inputs of its operator are command stream, weights, scratch and fast scratch."""
    model = tflite.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    codes = [model.OperatorCodes(graph.Operators(i).OpcodeIndex()) for i in range(graph.OperatorsLength())]
    if len(codes) != 1 or codes[0].CustomCode() != b"ethos-u":
        kinds = [tflite.opcode2name(one.BuiltinCode()) if not one.CustomCode() else "ethos-u" for one in codes]
        raise OnCpuError(", ".join(kinds))
    stream, weights, scratch, fast = (int(one) for one in graph.Operators(0).InputsAsNumpy()[:4])
    offsets = _offsets(model)

    def place(index: int) -> Place:
        tensor = graph.Tensors(index)
        shape = tuple(int(one) for one in tensor.ShapeAsNumpy()) if tensor.ShapeLength() else ()
        return Place(int(offsets[index]), shape, _TYPES[tensor.Type()])

    def data(index: int) -> bytes:
        buffer = model.Buffers(graph.Tensors(index).Buffer())
        return bytes(buffer.DataAsNumpy()) if buffer.DataLength() else b""

    def size(index: int) -> int:
        return int(np.prod(graph.Tensors(index).ShapeAsNumpy()))

    return Compiled(
        data(stream),
        data(weights),
        size(scratch),
        0 if fast == scratch else size(fast),
        [place(int(one)) for one in graph.InputsAsNumpy()],
        [place(int(one)) for one in graph.OutputsAsNumpy()],
    )


def _offsets(model):
    """Return the offset of each tensor in the scratch: version, subgraph and count come before them."""
    for i in range(model.MetadataLength()):
        if model.Metadata(i).Name() == b"OfflineMemoryAllocation":
            return model.Buffers(model.Metadata(i).Buffer()).DataAsNumpy().view("<i4")[3:]
    raise ValueError("the file has no metadata OfflineMemoryAllocation")

# SPDX-License-Identifier: Apache-2.0
"""Models compiled by Vela, run by the functional model."""

import functools
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tflite
from opwest.compiler.reference.run import outputs_of, run_graph

from npu_model import execute

_NAMES = ("INT8", "UINT8", "INT16", "INT32", "FLOAT32", "INT64", "BOOL")
_TYPES = {getattr(tflite.TensorType, name): name.lower() for name in _NAMES}


OPTIONS = {
    "default": (),
    "Sram_Only": ("--memory-mode=Sram_Only", "--system-config=Ethos_U55_High_End_Embedded", "--config=Arm/vela.ini"),
    "Size": ("--optimise=Size",),
    "older core": ("--debug-force-legacy-core",),
    "32 MACs": ("--accelerator-config=ethos-u55-32",),
}
"""Options of Vela. In the mode Sram_Only, the weights are copied to the memory of the arena."""


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
    payload: bytes
    weights: bytes
    scratch: int
    fast: int
    inputs: list[Place]
    outputs: list[Place]

    def run(self, arrays, observe=None):
        """Return the outputs of one run in new regions: weights, scratch, fast scratch, which can be the scratch."""
        scratch = bytearray([0x55]) * self.scratch
        regions = [bytearray(self.weights), scratch, bytearray([0x55]) * self.fast if self.fast else scratch]
        for place, array in zip(self.inputs, arrays, strict=True):
            scratch[place.offset : place.offset + place.size] = np.asarray(array).astype(place.dtype).tobytes()
        execute(self.payload, regions, observe)
        return [
            np.frombuffer(scratch, place.dtype, int(np.prod(place.shape)), place.offset).reshape(place.shape).copy()
            for place in self.outputs
        ]

    def operations(self) -> Counter[str]:
        found: Counter[str] = Counter()
        self.run([np.zeros(place.shape) for place in self.inputs], lambda command, *_: found.update([command.name]))
        return found


def interpreted(graph, case):
    """Return the results of the importer's interpreter, with FULLY_CONNECTED rounded twice as the NPU does."""
    twice = replace(graph, rules=replace(graph.rules, dense_rounds_twice=True))
    return outputs_of(twice, run_graph(twice, case))


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

    def places(indices) -> list[Place]:
        tensors = [(int(offsets[index]), graph.Tensors(int(index))) for index in indices]
        shapes = [tuple(one.ShapeAsNumpy().tolist()) if one.ShapeLength() else () for _, one in tensors]
        return [Place(at, shape, _TYPES[one.Type()]) for (at, one), shape in zip(tensors, shapes, strict=True)]

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
        places(graph.InputsAsNumpy()),
        places(graph.OutputsAsNumpy()),
    )


def _offsets(model):
    """Return the offset of each tensor in the scratch: version, subgraph and count come before them."""
    for i in range(model.MetadataLength()):
        if model.Metadata(i).Name() == b"OfflineMemoryAllocation":
            return model.Buffers(model.Metadata(i).Buffer()).DataAsNumpy().view("<i4")[3:]
    raise ValueError("the file has no metadata OfflineMemoryAllocation")

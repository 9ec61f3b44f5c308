# SPDX-License-Identifier: Apache-2.0
"""Files like those of Vela, made by code: operators ethos-u in one arena, operators for the processor between them."""

import io
import struct
from collections.abc import Mapping

import numpy as np
from ethos_u_payloads import CONFIG_U55_128, STOP, convolution, payload, words_of
from models.made import Model

WEIGHTS = (np.arange(192) % 251).astype(np.uint8)
"""32 bytes of weights and 160 of scales, of every convolution."""
WEIGHTS[-7:] = 0  # numpy shortens values of dtype S by trailing zeros
ARENA = 128
SHAPE = (1, 1, 1, 16)
SCALE = (0.5, 3)


def step(at: int, to: int, config: int = CONFIG_U55_128) -> bytes:
    """Return a payload: a convolution of 16 bytes of the arena to 16 others."""
    return payload([*words_of(convolution(at=at, to=to)), STOP], config)


class Vela:
    """A .tflite file in the making. Tensors have offsets; None: not planned."""

    def __init__(self, arena: int = ARENA, fast: int | None = None) -> None:
        self.model = Model()
        self.offsets: dict[object, int | None] = {}
        self.weights = self.model.constant(WEIGHTS, name="read_only")
        self.scratch = self.planned("scratch", 0, "uint8", (arena,))
        self.fast = self.scratch if fast is None else self.planned("scratch_fast", 0, "uint8", (fast,))

    def planned(self, name, offset, dtype="int8", shape=SHAPE):
        """Add a tensor."""
        scale = SCALE if dtype == "int8" else ()
        made = self.model._tensor(dtype, shape, *scale, name=name)
        self.offsets[made] = offset
        return made

    def input(self, name, offset):
        made = self.planned(name, offset)
        self.model.graph.inputs.append(made)
        return made

    def npu(self, stream, inputs, *results):
        """Add an operator for the NPU."""
        command = self.model.constant(np.frombuffer(stream, np.uint8), name="ethos_u_command_stream")
        self.model.operator("ethos-u", [command, self.weights, self.scratch, self.fast, *inputs], *results)

    def build(self, allocation: bytes | None = b"") -> bytes:
        """Return the file; `allocation` replaces the metadata, None: without it."""
        tensors = self.model.graph.tensors
        offsets = [self.offsets.get(one) for one in tensors]
        data = struct.pack(f"<{3 + len(offsets)}i", 0, 1, len(offsets), *(-1 if o is None else o for o in offsets))
        if allocation is not None:
            self.model.metadata["OfflineMemoryAllocation"] = allocation or data
        return self.model.build()


def whole(stream=None, at: int | None = 16, to=48, *, dtype="int8", constant=False, **keys) -> Vela:
    """Return a model that is one subgraph for the NPU; its result has a dtype, its input can be a constant."""
    made = Vela(**keys)
    x = made.model.constant(np.zeros(SHAPE, np.int8), *SCALE) if constant else made.input("image", at)
    y = made.planned("scores", to, dtype)
    made.npu(step(at or 0, to) if stream is None else stream, [x], y)
    made.model.output(y)
    return made


def mixed(kind="RELU", second=(32, 48), shape=SHAPE, parameters=()) -> Vela:
    """Return two subgraphs with an operator for the processor between them, whose parameters are constants."""
    made = Vela()
    x, a = made.input("image", 0), made.planned("a", 16)
    b, y = made.planned("b", second[0], shape=shape), made.planned("scores", second[1])
    made.npu(step(0, 16), [x], a)
    made.model.operator(kind, [a, *map(made.model.constant, parameters)], b)
    made.npu(step(*second), [b], y)
    made.model.output(y)
    return made


def clashing(*, needed_by_npu: bool) -> Vela:
    """Return a model in which the second subgraph writes the memory of `t`, which is read after it."""
    made = Vela()
    x, a, t = made.input("image", 0), made.planned("a", 16), made.planned("t", 32)
    c, y = made.planned("c", 32), made.planned("scores", 48)
    made.npu(step(0, 16), [x], a)
    made.model.operator("LOGISTIC", [a], t)
    made.npu(step(16, 32), [a], c)
    t.scale, t.zero = 1 / 256, -128
    if needed_by_npu:
        made.npu(step(32, 48), [t], y)
        made.model.output(y, c)
    else:
        made.model.operator("ADD", [t, c], y)
        made.model.output(y)
    return made


class Unpickled:
    """An object that leaves a file when it is unpickled."""

    def __init__(self, path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def raw(changes: Mapping[str, object] | None = None, canary=None) -> bytes:
    """Return an .npz file with one subgraph; `changes` replace arrays, None: without them."""
    arrays: dict[str, object] = {
        "cmd_data": np.bytes_(step(16, 48)),
        "weight_data": np.frombuffer(WEIGHTS.tobytes(), f"S{len(WEIGHTS)}").reshape(()),
        "weight_region": 0,
        "scratch_shape": [ARENA],
        "scratch_region": 1,
        "scratch_size": ARENA,
        "scratch_fast_shape": [0],
        "scratch_fast_region": 0,
        "scratch_fast_size": 0,
        "variable_region": [],
        "input_quantization": np.array([{"scale": 1}, Unpickled(canary)] if canary else [{}], dtype=object),
    }
    for role, offset in (("input", 16), ("output", 48)):
        arrays |= {f"{role}_shape": [[1, 1, 1, 1, 1, 16]], f"{role}_elem_size": [1], f"{role}_region": [1]}
        arrays[f"{role}_offset"] = [offset]
    arrays = {name: one for name, one in {**arrays, **(changes or {})}.items() if one is not None}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()

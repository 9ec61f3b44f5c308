# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs, and the outputs of a reference."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.reference.distances import largest
from opwest.compiler.reference.runtimes import Cases
from opwest.frontends.tvm.read import Source
from opwest.frontends.tvm.steps import Steps, Tensor
from opwest.model.types.dtypes import DTYPES


@dataclass(frozen=True)
class Vectors:
    """Cases with the outputs of a reference."""

    inputs: Cases
    outputs: Cases
    tolerances: tuple[dict[str, float], ...]
    """Tolerances by output; empty for equality."""
    remark: str


def make_vectors(source: Source, steps: Steps, count: int) -> Vectors:
    """Return inputs and the outputs of TVM's own execution of the module, on this machine."""
    inputs = make_inputs(steps.inputs, count)
    outputs = run_tvm(source, inputs)
    tolerances = tuple(_tolerance(tensor, outputs, index) for index, tensor in enumerate(steps.outputs))
    return Vectors(inputs, outputs, tolerances, "The outputs in vectors.npz are from TVM's own execution of the model.")


def make_inputs(tensors: Sequence[Tensor], count: int, seed: int = 0) -> Cases:
    """Return inputs: zeros, the ends of the range, a ramp, and then random ones."""
    import numpy as np

    random = np.random.default_rng(seed)

    def one(tensor: Tensor, case: int) -> Any:
        size = prod(tensor.shape)
        values: Any
        if tensor.dtype == "bool":
            values = random.integers(0, 2, size)
        elif tensor.dtype in ("int8", "uint8"):
            low, high = (-128, 127) if tensor.dtype == "int8" else (0, 255)
            ramp = low + np.arange(size) % 256
            values = random.integers(low, high + 1, size)
            if case < 4:
                values = (np.zeros(size), np.full(size, low), np.full(size, high), ramp)[case]
        elif DTYPES[tensor.dtype].kind in ("int", "uint"):
            values = random.integers(0, 2, size)  # often an index
        elif case < 4:
            values = (np.zeros(size), np.full(size, -1.0), np.ones(size), np.linspace(-1, 1, size))[case]
        else:
            values = random.standard_normal(size)
        return np.asarray(values).astype(tensor.dtype).reshape(tensor.shape)

    return [[one(tensor, case) for tensor in tensors] for case in range(count)]


def run_tvm(source: Source, inputs: Cases) -> Cases:
    """Return the outputs of TVM on this machine, with TVM's schedules and runtime."""
    import numpy as np
    import tvm
    from tvm import relax

    machine = relax.VirtualMachine(tvm.compile(source.module, target=tvm.target.Target("llvm")), tvm.cpu())

    def arrays(value: Any) -> list[Any]:
        return [np.array(value.numpy())] if hasattr(value, "numpy") else [a for one in value for a in arrays(one)]

    return [arrays(machine["main"](*(tvm.runtime.tensor(array) for array in case))) for case in inputs]


def _tolerance(tensor: Tensor, outputs: Cases, index: int) -> dict[str, float]:
    """Return the tolerances of targets: compilers and C libraries round differently."""
    if DTYPES[tensor.dtype].kind == "float":
        return {"absolute": 1e-5 * max(largest(case[index] for case in outputs), 1e-3), "relative": 1e-4}
    return {"absolute": 1} if tensor.dtype in ("int8", "uint8", "int16") else {}

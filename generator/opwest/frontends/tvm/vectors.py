# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs, and the outputs of a reference."""

from __future__ import annotations

from typing import Any

from opwest.compiler.output.manifest import Vectors
from opwest.compiler.reference.distances import largest, made_inputs
from opwest.compiler.reference.runtimes import Cases
from opwest.frontends.tvm.read import Source
from opwest.frontends.tvm.steps import Steps, Tensor
from opwest.model.types.dtypes import DTYPES


def make_vectors(source: Source, steps: Steps, count: int) -> Vectors:
    """Return inputs and the outputs of TVM's own execution of the module, on this machine."""
    inputs = made_inputs(steps.inputs, count, ("int8", "uint8"))
    outputs = run_tvm(source, inputs)
    tolerances = tuple(_tolerance(tensor, outputs, index) for index, tensor in enumerate(steps.outputs))
    return Vectors(inputs, outputs, tolerances, "The outputs in vectors.npz are from TVM's own execution of the model.")


def run_tvm(source: Source, inputs: Cases) -> Cases:
    """Return the outputs of TVM on this machine, with TVM's schedules and runtime."""
    import numpy as np
    import tvm
    from tvm import relax

    machine = relax.VirtualMachine(tvm.compile(source.module, target=tvm.target.Target("llvm")), tvm.cpu())

    def arrays(value: Any) -> list[Any]:
        return [np.array(value.numpy())] if hasattr(value, "numpy") else [a for part in value for a in arrays(part)]

    return [arrays(machine["main"](*(tvm.runtime.tensor(array) for array in case))) for case in inputs]


def _tolerance(tensor: Tensor, outputs: Cases, index: int) -> dict[str, float]:
    """Return the tolerances of targets: compilers and C libraries round differently."""
    if DTYPES[tensor.dtype].kind == "float":
        return {"absolute": 1e-5 * max(largest(case[index] for case in outputs), 1e-3), "relative": 1e-4}
    return {"absolute": 1} if tensor.dtype in ("int8", "uint8", "int16") else {}

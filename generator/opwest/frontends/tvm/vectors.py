# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs, and the outputs of a reference."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.reference.distances import distance, largest
from opwest.compiler.reference.runtimes import Call, Cases, TerminatedError, UnavailableError, name_of, run
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
    warning: str | None = None


def make_vectors(source: Source, steps: Steps, count: int) -> Vectors:
    """Return vectors from LiteRT (onnxruntime for ONNX) if installed, else from TVM."""
    inputs = make_inputs(steps.inputs, count)
    own = run_tvm(source, inputs)
    found, failure = _reference(source, steps, inputs)
    if found is None:
        name, outputs = "TVM's own execution of the model, on this machine", own
    else:
        name, outputs = found
    gaps = [_gap([case[i] for case in own], [case[i] for case in outputs]) for i in range(len(steps.outputs))]
    tolerances = tuple(_tolerance(t, outputs, i, gaps[i]) for i, t in enumerate(steps.outputs))
    remark = f"The outputs in vectors.npz are from {name}."
    if found is not None:
        shown = ", ".join(f"{gap:.3g}" for gap in gaps)
        remark += f" TVM's execution of the same model differs from them by at most {shown} here."
    suspicious = [t for t, gap in zip(steps.outputs, gaps, strict=True) if gap > _suspicious(t, outputs)]
    warning = f"{name} and TVM differ by {', '.join(f'{gap:.3g}' for gap in gaps)}" if suspicious else failure
    return Vectors(inputs, outputs, tolerances, remark, warning)


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


def _reference(source: Source, steps: Steps, inputs: Cases) -> tuple[tuple[str, Cases] | None, str | None]:
    """Return the name of the format's runtime and its outputs, None if it cannot run the model; and a warning."""
    if source.kind == "relax":
        return None, None
    try:
        name = name_of(source.kind)
        inner, outer = [one.name for one in source.inputs], [one.name for one in source.outputs]
        outputs = run(Call(source.kind, inputs=inner, outputs=outer), source.content, inputs).outputs
    except TerminatedError as error:
        return None, f"{error}: the golden vectors are from TVM's own execution of the model"
    except UnavailableError:  # it can lack an operator that TVM supports
        return None, None
    for case in outputs:
        if [(str(a.dtype), tuple(a.shape)) for a in case] != [(t.dtype, t.shape) for t in steps.outputs]:
            return None, None
    return (name, outputs), None


def _gap(one: Sequence[Any], other: Sequence[Any]) -> float:
    return max((float(distance(a, b).max(initial=0)) for a, b in zip(one, other, strict=True)), default=0.0)


def _tolerance(tensor: Tensor, outputs: Cases, index: int, gap: float) -> dict[str, float]:
    """Return the tolerances of targets: compilers and C libraries round differently."""
    if DTYPES[tensor.dtype].kind == "float":
        least = 1e-5 * max(largest(case[index] for case in outputs), 1e-3)
        return {"absolute": max(least, 2 * gap) if isfinite(gap) else least, "relative": 1e-4}
    if tensor.dtype in ("int8", "uint8", "int16"):
        return {"absolute": max(1, int(gap))}
    return {}


def _suspicious(tensor: Tensor, outputs: Cases) -> float:
    if DTYPES[tensor.dtype].kind == "float":
        return 1e-3 * max(1.0, largest(a for case in outputs for a in case))
    return 4.0 if tensor.dtype in ("int8", "uint8", "int16") else 0.0

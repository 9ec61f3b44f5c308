# SPDX-License-Identifier: Apache-2.0
"""Samples of the inputs of a model, and the classes of the cases: read, checked, all faults at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.types import Tensor
from opwest.quantisation.request import FEW_SAMPLES, Options
from opwest.runs.arrays import Source, loaded, read_labels, read_runs


@dataclass(frozen=True, eq=False)
class Samples:
    """The cases of a model."""

    cases: Sequence[Sequence[Any]]
    """Arrays by case, then by input."""
    classes: tuple[int, Any] | None
    """The number of the output with classes, and the class of each case."""
    warnings: tuple[str, ...] = ()


Port = Mapping[str, Any]
"""name, dtype and shape of an input or output."""


def port_of(tensor: Tensor) -> Port:
    """Return an input or output."""
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)}


def read_samples(options: Options, inputs: Sequence[Port], outputs: Sequence[Port]) -> Samples:
    """Return the samples of a model. Raises OpwestError with all faults."""
    faults = Diagnostics()
    sources = _sources(options.samples, inputs, faults)
    faults.raise_if_errors()
    runs = read_runs((), sources, 1, inputs, faults)
    for port in inputs:
        for diagnostic in _not_finite(port["name"], runs.arrays.get(port["name"])):
            faults.error(diagnostic, expected="finite numbers")
    labels = None
    if options.labels is not None:
        labels = read_labels(Source(options.output or "", file=options.labels), outputs, runs.count, faults)
        if labels is not None:
            _check_classes(labels, outputs, faults)
    faults.raise_if_errors()
    cases = [[runs.arrays[port["name"]][case] for port in inputs] for case in range(runs.count)]
    classes = None
    if labels is not None:
        names = [port["name"] for port in outputs]
        classes = (names.index(labels[0]), labels[1])
    return Samples(cases, classes, tuple(_warnings(len(cases))))


def _sources(file: str, inputs: Sequence[Port], faults: Diagnostics) -> list[Source]:
    """Return the arrays of a file by the names of the inputs; a .npy file is the array of the only input."""
    found = loaded("samples: ", Path(file), None, "a file written by numpy.savez or numpy.save", faults)
    if found is None:
        return []
    if isinstance(found, dict):
        return [Source(name, file=file, key=name) for name in found]
    if len(inputs) != 1:
        names = ", ".join(repr(port["name"]) for port in inputs)
        faults.error(
            f"samples: '{file}' is one array, the model has {counted(len(inputs), 'input')}",
            expected=f"an .npz file with the arrays {names}",
        )
        return []
    return [Source(inputs[0]["name"], found, file)]


def _not_finite(name: str, array: Any) -> list[str]:
    import numpy as np

    if array is None or array.dtype.kind != "f" or np.isfinite(array).all():
        return []
    count = int((~np.isfinite(array)).sum())
    return [
        f"input {name!r}: the samples have {counted(count, 'number')} that {'is' if count == 1 else 'are'} not finite"
    ]


def _check_classes(labels: tuple[str, Any], outputs: Sequence[Port], faults: Diagnostics) -> None:
    """Report classes that the output does not have."""
    from math import prod

    name, classes = labels
    port = next(port for port in outputs if port["name"] == name)
    count = prod(port["shape"])
    wrong = [int(one) for one in classes if not 0 <= one < count]
    if wrong and count > 1:
        faults.error(f"labels: class {wrong[0]} of output {name!r}", expected=f"0 to {count - 1}")


def _warnings(count: int) -> list[str]:
    if count >= FEW_SAMPLES:
        return []
    return [f"{counted(count, 'sample')}: the ranges of tensors are uncertain; use 100 or more that are typical"]

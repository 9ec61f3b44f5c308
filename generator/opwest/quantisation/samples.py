# SPDX-License-Identifier: Apache-2.0
"""Samples of the inputs of a model, and the classes of the cases: read, checked, all faults at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.types import Tensor
from opwest.model.types.dtypes import DTYPES, elements_of
from opwest.quantisation.request import FEW_SAMPLES, Options
from opwest.runs.arrays import Source, loaded, read_labels


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
    given = _read(options.samples, inputs, faults)
    faults.raise_if_errors()
    arrays = _checked(given, options.samples, inputs, faults)
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        faults.error(f"samples: {shown}", expected="the same number of cases for every input")
    count = max(counts.values(), default=0)
    labels = None
    if options.labels is not None and count:
        labels = read_labels(Source(options.output or "", file=options.labels), outputs, count, faults)
        if labels is not None:
            _check_classes(labels, outputs, faults)
    faults.raise_if_errors()
    cases = [[arrays[port["name"]][case] for port in inputs] for case in range(count)]
    classes = None
    if labels is not None:
        names = [port["name"] for port in outputs]
        classes = (names.index(labels[0]), labels[1])
    return Samples(cases, classes, tuple(_warnings(len(cases))))


def _read(file: str, inputs: Sequence[Port], faults: Diagnostics) -> dict[str, Any]:
    """Return the arrays of a file by the names of the inputs; a .npy file is the array of the only input."""
    expected = "a file written by numpy.savez or numpy.save"
    found = loaded("samples: ", Path(file), None, expected, faults)
    if found is None:
        return {}
    if isinstance(found, dict):
        return {name: loaded("samples: ", Path(file), name, expected, faults) for name in found}
    if len(inputs) != 1:
        names = ", ".join(repr(port["name"]) for port in inputs)
        faults.error(
            f"samples: '{file}' is one array, the model has {counted(len(inputs), 'input')}",
            expected=f"an .npz file with the arrays {names}",
        )
        return {}
    return {inputs[0]["name"]: found}


def _checked(given: Mapping[str, Any], file: str, inputs: Sequence[Port], faults: Diagnostics) -> dict[str, Any]:
    """Return the arrays as elements of the inputs [cases, ...]; report unknown, missing and unsuitable ones."""
    known = [port["name"] for port in inputs]
    for name in given:
        if name not in known:
            faults.error(f"samples: '{file}' has the array {name!r}, which is no input", hint=nearest(name, known))
    found = {}
    for port in inputs:
        name = port["name"]
        if name not in given:
            faults.error(f"samples: '{file}' has no array {name!r}", expected="an array for each input of the model")
            continue
        array = _fitted(given[name], port, file, faults)
        if array is not None:
            found[name] = array
            for text in _not_finite(name, array):
                faults.error(text, expected="finite numbers")
    return found


def _fitted(array: Any, port: Port, file: str, faults: Diagnostics) -> Any:
    """Return an array with a dimension of cases before those of an input: a first one of 1 can be left out."""
    name, dtype, shape = port["name"], DTYPES[port["dtype"]], list(port["shape"])
    forms = [shape, *([shape[1:]] if shape[:1] == [1] else [])]
    converted = elements_of(array, dtype) if array.ndim and list(array.shape[1:]) in forms and array.size else None
    if converted is None:
        words = " or ".join(f"[{', '.join(['N', *map(str, form)])}]" for form in forms)
        seen = f"{array.dtype.name} {list(array.shape)}"
        faults.error(f"input {name!r}: '{file}' contains {seen}", expected=f"{port['dtype']} {words}, for N samples")
        return None
    return converted[0].reshape(len(array), *shape)


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

# SPDX-License-Identifier: Apache-2.0
"""Common parts of all run modes: the project's record, the model, input files and output files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest import nearby
from opwest.diagnostics import Diagnostics, nearest
from opwest.host.compile import fail
from opwest.host.record import check_record
from opwest.manifest.arrays import ArrayError, load_numpy
from opwest.model.dtypes import DTYPES
from opwest.model.elements import elements_of, reference_of, rounding_note
from opwest.write.writer import read_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


def project_record(project: Path) -> dict[str, Any] | None:
    """Return the record of a project, None without one. Raises OpwestError for an incomplete project."""
    record = read_record(project) if project.is_dir() else None
    if record is not None and (project / ".opwest" / "journal.json").exists():
        raise fail(
            "incomplete project: a run of opwest was interrupted",
            project,
            hint="run 'opwest generate' again",
        )
    if record is not None:
        check_record(record, project)
    return record


def choose_model(name: str | None, project: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given model, or the only one."""
    models: dict[str, dict[str, Any]] = {model["name"]: model for model in record["models"]}
    if name is None:
        if len(models) > 1:
            raise fail(f"the project has several models: {', '.join(models)}", project, expected="--model NAME")
        return next(iter(models.values()))
    if name not in models:
        raise fail(f"unknown model {name!r}", project, hint=nearest(name, models))
    return models[name]


def tensors_of(model: Mapping[str, Any], role: str) -> list[dict[str, Any]]:
    """Return the inputs or the outputs of a model record."""
    return [tensor for tensor in model["tensors"] if tensor["role"] == role]


def read_inputs(given: Sequence[str], inputs: Sequence[Mapping[str, Any]], faults: Diagnostics) -> dict[str, Array]:
    """Return the elements by input name; report missing and unknown inputs and arrays of another dtype or shape."""
    arrays = _read(given, "input", inputs, faults)
    for tensor in inputs:
        name = tensor["name"]
        array = arrays.get(name)
        if name not in arrays:
            faults.error(f"missing input {name!r}", expected=f"--input {name}=FILE.npy")
        elif array is None:
            continue  # already reported as unreadable
        else:
            dtype = DTYPES[tensor["dtype"]]
            found = elements_of(array, dtype)
            if found is None or list(array.shape) != list(tensor["shape"]):
                seen = f"{array.dtype.name} {list(array.shape)}"
                expected = f"{tensor['dtype']} {list(tensor['shape'])}"
                faults.error(f"input {name!r}: '{_file(given, name)}' contains {seen}", expected=expected)
                continue
            arrays[name], rounded = found
            if rounded:
                faults.note(f"input {name!r}: {rounding_note(rounded, dtype)}")
    return {name: array for name, array in arrays.items() if array is not None}


def read_references(
    given: Sequence[str], outputs: Sequence[Mapping[str, Any]], faults: Diagnostics
) -> dict[str, Array]:
    """Return the references by output name; report arrays of another shape and arrays without numbers."""
    arrays = _read(given, "reference", outputs, faults)
    for tensor in outputs:
        given_array = arrays.get(tensor["name"])
        if given_array is None:
            continue
        arrays[tensor["name"]] = array = reference_of(given_array, DTYPES[tensor["dtype"]])
        if list(array.shape) != list(tensor["shape"]) or array.dtype.kind not in "biuf":
            faults.error(
                f"reference {tensor['name']!r}: '{_file(given, tensor['name'])}' contains {array.dtype.name} "
                f"{list(array.shape)}",
                expected=f"numbers {list(tensor['shape'])}",
            )
    return {name: array for name, array in arrays.items() if array is not None}


def _file(given: Sequence[str], name: str) -> str:
    return next(text.partition("=")[2] for text in given if text.partition("=")[0] == name)


def _read(
    given: Sequence[str], option: str, tensors: Sequence[Mapping[str, Any]], faults: Diagnostics
) -> dict[str, Array | None]:
    """Return the given arrays by name, None for unreadable files."""
    import numpy as np

    role = "input" if option == "input" else "output"
    known = [tensor["name"] for tensor in tensors]
    arrays: dict[str, Array | None] = {}
    for text in given:
        name, separator, file = text.partition("=")
        if not separator or not file:
            faults.error(f"invalid --{option} {text!r}", expected="NAME=FILE.npy")
        elif name not in known:
            faults.error(f"unknown {role} {name!r}", hint=nearest(name, known))
        elif name in arrays:
            faults.error(f"duplicate {option} {name!r}")
        else:
            arrays[name] = None
            expected = "a file written by numpy.save"
            try:
                array = load_numpy(Path(file))
            except OSError as error:
                faults.error(
                    f"{option} {name!r}: cannot read '{file}': {error.strerror}",
                    expected=expected,
                    hint=nearby.hint_for(Path(file)),
                )
                continue
            except ArrayError as error:
                faults.error(f"{option} {name!r}: {error.message}", expected=expected, hint=error.hint)
                continue
            if isinstance(array, np.ndarray):
                arrays[name] = array
            else:
                faults.error(f"{option} {name!r}: '{file}' is an .npz file", expected=expected)
    return arrays


def keep_outputs(outputs: Mapping[str, Array], dtypes: Mapping[str, str], folder: Path | None) -> list[str]:
    """Write outputs to `folder`, if given, one NAME.npy each; return the lines to print.

    `dtypes` maps outputs to dtypes; the arrays of dtypes that numpy lacks contain converted numbers.
    """
    import numpy as np

    lines = []
    if folder is not None:
        make_folder(folder)
    for name, array in outputs.items():
        shown = np.array2string(array.reshape(-1), threshold=8)
        lines.append(f"{name}: {dtypes[name]} {list(array.shape)}: {shown}")
        if folder is not None:
            np.save(folder / f"{name}.npy", array)
            lines.append(f"  written to {folder / name}.npy")
    return lines


def make_folder(path: Path) -> None:
    """Create the directory for outputs. Raises OpwestError if it is not writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, os.strerror(13))
    except OSError as error:
        raise fail(f"cannot write the outputs: {error.strerror}", path) from error

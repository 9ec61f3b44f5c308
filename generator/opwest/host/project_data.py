# SPDX-License-Identifier: Apache-2.0
"""Common parts of all run modes: the project's record, the model, input files and output files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
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
    arrays, files = _read(given, "input", inputs, faults)
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
                faults.error(f"input {name!r}: '{files[name]}' contains {seen}", expected=expected)
                continue
            arrays[name], rounded = found
            if rounded:
                faults.note(f"input {name!r}: {rounding_note(rounded, dtype)}")
    return {name: array for name, array in arrays.items() if array is not None}


def read_references(
    given: Sequence[str], outputs: Sequence[Mapping[str, Any]], faults: Diagnostics
) -> dict[str, Array]:
    """Return the references by output name; report arrays of another shape and arrays without numbers."""
    arrays, files = _read(given, "reference", outputs, faults)
    for tensor in outputs:
        given_array = arrays.get(tensor["name"])
        if given_array is None:
            continue
        arrays[tensor["name"]] = array = reference_of(given_array, DTYPES[tensor["dtype"]])
        if list(array.shape) != list(tensor["shape"]) or array.dtype.kind not in "biuf":
            faults.error(
                f"reference {tensor['name']!r}: '{files[tensor['name']]}' contains {array.dtype.name} "
                f"{list(array.shape)}",
                expected=f"numbers {list(tensor['shape'])}",
            )
    return {name: array for name, array in arrays.items() if array is not None}


def _read(
    given: Sequence[str], option: str, tensors: Sequence[Mapping[str, Any]], faults: Diagnostics
) -> tuple[dict[str, Array | None], dict[str, str]]:
    """Return the given arrays by name, None for unreadable files, and their files."""
    role = "input" if option == "input" else "output"
    known = [tensor["name"] for tensor in tensors]
    arrays: dict[str, Array | None] = {}
    files: dict[str, str] = {}
    for name, file, key in _named(given, option, faults):
        if name not in known:
            where = f" in '{file}'" if key else ""
            faults.error(f"unknown {role} {name!r}{where}", hint=nearest(name, known))
        elif name in arrays:
            faults.error(f"duplicate {option} {name!r}")
        else:
            arrays[name], files[name] = _array(f"{option} {name!r}: ", file, key, faults), file
    return arrays, files


def _named(given: Sequence[str], option: str, faults: Diagnostics) -> Iterator[tuple[str, str, str | None]]:
    """Yield the name, the file and, for an .npz file, the key of every array; report invalid arguments."""
    for text in given:
        name, separator, file = text.partition("=")
        if separator and name and file:
            yield name, file, None
        elif separator or not text.endswith(".npz"):
            faults.error(f"invalid --{option} {text!r}", expected="NAME=FILE.npy, or FILE.npz with arrays by name")
        else:
            names = _loaded(f"{option}: ", text, None, "a file written by numpy.savez", faults)
            if isinstance(names, dict):
                yield from ((key, text, key) for key in names)
            elif names is not None:
                faults.error(f"{option}: '{text}' is an .npy file", expected=f"--{option} NAME={text}")


def _array(where: str, file: str, key: str | None, faults: Diagnostics) -> Array | None:
    """Return the array of an .npy file, or that of a key in an .npz file; None after an error."""
    import numpy as np

    expected = "a file written by numpy.save"
    array = _loaded(where, file, key, expected, faults)
    if array is None or isinstance(array, np.ndarray):
        return array
    faults.error(f"{where}'{file}' is an .npz file", expected=expected)
    return None


def _loaded(
    where: str, file: str, key: str | None, expected: str, faults: Diagnostics
) -> Array | dict[str, None] | None:
    """Return an array, or the names in an .npz file without `key`; None after an error."""
    try:
        return load_numpy(Path(file), key)
    except OSError as error:
        faults.error(
            f"{where}cannot read '{file}': {error.strerror}", expected=expected, hint=nearby.hint_for(Path(file))
        )
    except ArrayError as error:
        faults.error(f"{where}{error.message}", expected=expected, hint=error.hint)
    return None


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

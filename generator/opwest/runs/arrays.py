# SPDX-License-Identifier: Apache-2.0
"""The arrays of `opwest run`: inputs, references and labels from files, outputs to files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, fail, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.manifest.arrays import ArrayError, load_numpy
from opwest.model.types.dtypes import DTYPES, elements_of, reference_of, rounding_note

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements as Array


@dataclass(frozen=True, eq=False)
class Source:
    """An array of the user with the name of its tensor: in memory, or in a file."""

    name: str
    array: Array | None = None
    file: str = ""
    key: str | None = None
    """The name of the array in an .npz file."""

    def has(self, seen: str) -> str:
        """Return the beginning of a message about its content."""
        return f"the array is {seen}" if self.array is not None else f"'{self.file}' contains {seen}"


@dataclass(frozen=True)
class Runs:
    """The inputs of consecutive runs: `arrays` by name; those of `streams` have a frame per run as first dimension."""

    arrays: Mapping[str, Array]
    count: int = 1
    streams: frozenset[str] = frozenset()

    def content(self, name: str, run: int) -> bytes:
        """Return the bytes of an input in a run."""
        array = self.arrays[name]
        return (array[run] if name in self.streams else array).tobytes()


def read_runs(
    given: Sequence[Source],
    streamed: Sequence[Source],
    repeat: int,
    inputs: Sequence[Mapping[str, Any]],
    faults: Diagnostics,
) -> Runs:
    """Return the inputs of all runs; report missing, unknown and duplicate inputs, and arrays of another type.

    The frames of `streamed` define the number of runs.
    """
    arrays = _read(given, "input", inputs, faults)
    frames = _read(streamed, "stream", inputs, faults)
    inputs_by_name: dict[str, Array] = {}
    for tensor in inputs:
        name = tensor["name"]
        if name in arrays and name in frames:
            faults.error(f"input {name!r} is given as --input and as --stream", expected="one of them")
        elif name not in arrays and name not in frames:
            faults.error(f"missing input {name!r}", expected=f"--input {name}=FILE.npy")
        else:
            array, source = frames[name] if name in frames else arrays[name]
            option = "stream" if name in frames else "input"
            fitted = _fitted(tensor, array, option, source, faults) if array is not None else None
            if fitted is not None:
                inputs_by_name[name] = fitted
    counts = {name: len(array) for name, array in inputs_by_name.items() if name in frames}
    (first, count), *others = counts.items() or [("", repeat)]
    for name, other in others:
        if other != count:
            text = f"{counted(count, 'frame')} of {first!r}, {other} of {name!r}"
            faults.error(text, expected="the same number of frames of every stream")
    return Runs(inputs_by_name, count, frozenset(counts))


def _fitted(tensor: Mapping[str, Any], array: Array, option: str, source: Source, faults: Diagnostics) -> Array | None:
    """Return an array as elements of a tensor, with a first dimension of frames if it is streamed."""
    name, dtype, shape = tensor["name"], DTYPES[tensor["dtype"]], list(tensor["shape"])
    if option == "stream" and shape[:1] == [1] and array.ndim == len(shape) and list(array.shape[1:]) == shape[1:]:
        array = array[:, None]  # frames without the first dimension, which has one element
    converted = elements_of(array, dtype)
    whole = [len(array), *shape] if option == "stream" and array.ndim else shape
    if converted is None or list(array.shape) != whole or 0 in array.shape:
        seen = f"{array.dtype.name} {list(array.shape)}"
        wanted = ", ".join(["N", *map(str, shape)])
        words = f"[{wanted}], for N frames" if option == "stream" else str(shape)
        faults.error(f"input {name!r}: {source.has(seen)}", expected=f"{tensor['dtype']} {words}")
        return None
    elements, rounded = converted
    if rounded:
        faults.note(f"input {name!r}: {rounding_note(rounded, dtype)}")
    return elements


def read_references(
    given: Sequence[Source], outputs: Sequence[Mapping[str, Any]], runs: Runs, faults: Diagnostics
) -> dict[str, Array]:
    """Return the references by output name; report arrays of another shape and arrays without numbers.

    With streams, references have a frame per run as first dimension.
    """
    references: dict[str, Array] = {}
    arrays = _read(given, "reference", outputs, faults)
    for tensor in outputs:
        name = tensor["name"]
        read, source = arrays.get(name, (None, Source(name)))
        if read is None:
            continue
        references[name] = array = reference_of(read, DTYPES[tensor["dtype"]])
        shape = [*([runs.count] if runs.streams else []), *tensor["shape"]]
        if list(array.shape) != shape or array.dtype.kind not in "biuf":
            seen = f"{array.dtype.name} {list(array.shape)}"
            faults.error(f"reference {name!r}: {source.has(seen)}", expected=f"numbers {shape}")
    return {name: references[name] for name in arrays if name in references}


def _read(
    given: Sequence[Source], option: str, tensors: Sequence[Mapping[str, Any]], faults: Diagnostics
) -> dict[str, tuple[Array | None, Source]]:
    """Return the given arrays, None for unreadable files, and their sources, by name."""
    role = "output" if option == "reference" else "input"
    known = [tensor["name"] for tensor in tensors]
    arrays: dict[str, tuple[Array | None, Source]] = {}
    for source in given:
        name = source.name
        if name not in known:
            where = f" in '{source.file}'" if source.key else ""
            faults.error(f"unknown {role} {name!r}{where}", hint=nearest(name, known))
        elif name in arrays:
            faults.error(f"duplicate {option} {name!r}")
        elif source.array is not None:
            arrays[name] = source.array, source
        else:
            expected = "a file written by numpy.save"
            arrays[name] = read_file(f"{option} {name!r}: ", source.file, source.key, expected, faults), source
    return arrays


def read_file(where: str, file: str, key: str | None, expected: str, faults: Diagnostics) -> Array | None:
    """Return the array of an .npy file, or that of a key in an .npz file; None after an error.

    `where` is the beginning of the message of an error.
    """
    array = loaded(where, Path(file), key, expected, faults)
    if not isinstance(array, dict):
        return array
    faults.error(f"{where}'{file}' is an .npz file", expected=expected)
    return None


def loaded(
    where: str, file: Path, key: str | None, expected: str | None, faults: Diagnostics
) -> Array | dict[str, None] | None:
    """Return an array, or the names in an .npz file without `key`; None after an error."""
    try:
        return load_numpy(file, key)
    except OSError as error:
        hint = path_suggestions.hint_for(file)
        faults.error(f"{where}cannot read '{file}': {error.strerror}", expected=expected, hint=hint)
    except ArrayError as error:
        faults.error(f"{where}{error.message}", expected=expected, hint=error.hint)
    return None


def write_outputs(outputs: Mapping[str, Array], folder: Path | None) -> dict[str, Path]:
    """Write outputs to a directory, if given, one NAME.npy each; return the files."""
    if folder is None:
        return {}
    import numpy as np

    make_folder(folder)
    for name, array in outputs.items():
        np.save(folder / f"{name}.npy", array)
    return {name: folder / f"{name}.npy" for name in outputs}


def make_folder(path: Path) -> None:
    """Create the directory for outputs. Raises OpwestError if it is not writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, os.strerror(13))
    except OSError as error:
        raise fail(f"cannot write the outputs: {error.strerror}", path) from error


def label_lines(array: Array, labels: Sequence[str], *, frames: bool) -> list[str]:
    """Return one line with the class; for the frames of a stream one line per group of equal classes.

    Integers are numbers of classes unless the last dimension has one element per label: then the highest score selects
    the class.
    """
    if not labels:
        return []
    rows = array.reshape(len(array), -1) if frames else array.reshape(1, -1)
    width = array.shape[-1] if array.ndim > int(frames) else 1
    classes = [_words(row, labels, scores=width == len(labels)) for row in rows]
    if not frames:
        return [f"  {classes[0]}"]
    lines = []
    start = 0
    for index in range(1, len(classes) + 1):
        if index == len(classes) or classes[index] != classes[start]:
            which = f"frame {start}" if index - start == 1 else f"frames {start} to {index - 1}"
            lines.append(f"  {which}: {classes[start]}")
            start = index
    return lines


def _words(row: Array, labels: Sequence[str], *, scores: bool) -> str:
    numbers = row.reshape(-1, len(labels)).argmax(axis=1) if scores else row
    return ", ".join(
        labels[int(number)] if 0 <= int(number) < len(labels) else f"no label {int(number)}"
        for number in numbers.tolist()
    )


def read_labels(
    given: Source | None, outputs: Sequence[Mapping[str, Any]], count: int, faults: Diagnostics
) -> tuple[str, Array] | None:
    """Return the output with the classes, and the class number of each case; report unusable files.

    The output is the name of `given`, or the only one. Without `given` the result is None.
    """
    if given is None:
        return None
    names = [tensor["name"] for tensor in outputs]
    if not given.name and len(names) != 1:
        faults.error(
            f"the model has {counted(len(names), 'output')}", expected=f"--labels NAME={given.file or 'FILE.npy'}"
        )
        return None
    name = given.name or names[0]
    if name not in names:
        faults.error(f"unknown output {name!r}", expected=f"one of: {', '.join(names)}")
        return None
    array = given.array if given.array is not None else loaded("", Path(given.file), None, None, faults)
    if array is None:
        return None
    expected = f"{count} integers, the class of each case"
    if isinstance(array, dict) or array.dtype.kind not in "iu" or array.size != count:
        seen = "an .npz file" if isinstance(array, dict) else f"{array.dtype.name} {list(array.shape)}"
        what = f"'{given.file}' is" if given.array is None else "the array is"
        faults.error(f"labels: {what} {seen}", expected=expected)
        return None
    return name, array.reshape(-1)


def classes_of(array: Array) -> Array:
    """Return the class of each case: [cases, ...] scores, of which the greatest counts, or one class number each."""
    rows = array.reshape(len(array), -1)
    if rows.shape[1] == 1 and array.dtype.kind in "iu":
        return rows[:, 0]
    classes: Array = rows.argmax(axis=1)
    return classes

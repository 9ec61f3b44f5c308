# SPDX-License-Identifier: Apache-2.0
"""The arrays of `opwest run`: inputs, references and labels from files, outputs to files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, fail, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.arrays import ArrayError, load_numpy
from opwest.model.types.dtypes import DTYPES, elements_of, reference_of, rounding_note

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements as Array


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
    given: Sequence[str], streamed: Sequence[str], repeat: int, inputs: Sequence[Mapping[str, Any]], faults: Diagnostics
) -> Runs:
    """Return the inputs of all runs; report missing, unknown and duplicate inputs, and arrays of another type.

    `given` are the options --input, `streamed` the options --stream, whose frames define the number of runs.
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
            array, file = frames[name] if name in frames else arrays[name]
            option = "stream" if name in frames else "input"
            fitted = _fitted(tensor, array, option, file, faults) if array is not None else None
            if fitted is not None:
                inputs_by_name[name] = fitted
    counts = {name: len(array) for name, array in inputs_by_name.items() if name in frames}
    (first, count), *others = counts.items() or [("", repeat)]
    for name, other in others:
        if other != count:
            text = f"{count} frames of {first!r}, {other} of {name!r}"
            faults.error(text, expected="the same number of frames of every stream")
    return Runs(inputs_by_name, count, frozenset(counts))


def _fitted(tensor: Mapping[str, Any], array: Array, option: str, file: str, faults: Diagnostics) -> Array | None:
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
        faults.error(f"input {name!r}: '{file}' contains {seen}", expected=f"{tensor['dtype']} {words}")
        return None
    elements, rounded = converted
    if rounded:
        faults.note(f"input {name!r}: {rounding_note(rounded, dtype)}")
    return elements


def read_references(
    given: Sequence[str], outputs: Sequence[Mapping[str, Any]], runs: Runs, faults: Diagnostics
) -> dict[str, Array]:
    """Return the references by output name; report arrays of another shape and arrays without numbers.

    With streams, references have a frame per run as first dimension.
    """
    references: dict[str, Array] = {}
    arrays = _read(given, "reference", outputs, faults)
    for tensor in outputs:
        name = tensor["name"]
        read, file = arrays.get(name, (None, ""))
        if read is None:
            continue
        references[name] = array = reference_of(read, DTYPES[tensor["dtype"]])
        shape = [*([runs.count] if runs.streams else []), *tensor["shape"]]
        if list(array.shape) != shape or array.dtype.kind not in "biuf":
            seen = f"{array.dtype.name} {list(array.shape)}"
            faults.error(f"reference {name!r}: '{file}' contains {seen}", expected=f"numbers {shape}")
    return {name: references[name] for name in arrays if name in references}


def _read(
    given: Sequence[str], option: str, tensors: Sequence[Mapping[str, Any]], faults: Diagnostics
) -> dict[str, tuple[Array | None, str]]:
    """Return the given arrays, None for unreadable files, and their files, by name."""
    role = "output" if option == "reference" else "input"
    known = [tensor["name"] for tensor in tensors]
    arrays: dict[str, tuple[Array | None, str]] = {}
    for name, file, key in _named(given, option, faults):
        if name not in known:
            where = f" in '{file}'" if key else ""
            faults.error(f"unknown {role} {name!r}{where}", hint=nearest(name, known))
        elif name in arrays:
            faults.error(f"duplicate {option} {name!r}")
        else:
            expected = "a file written by numpy.save"
            arrays[name] = read_file(f"{option} {name!r}: ", file, key, expected, faults), file
    return arrays


def _named(given: Sequence[str], option: str, faults: Diagnostics) -> Iterator[tuple[str, str, str | None]]:
    """Yield the name, the file and, for an .npz file, the key of every array; report invalid arguments."""
    for text in given:
        name, separator, file = text.partition("=")
        if separator and name and file:
            yield name, file, None
        elif separator or not text.endswith(".npz"):
            faults.error(f"invalid --{option} {text!r}", expected="NAME=FILE.npy, or FILE.npz with arrays by name")
        else:
            names = _loaded(f"{option}: ", Path(text), None, "a file written by numpy.savez", faults)
            if isinstance(names, dict):
                yield from ((key, text, key) for key in names)
            elif names is not None:
                faults.error(f"{option}: '{text}' is an .npy file", expected=f"--{option} NAME={text}")


def read_file(where: str, file: str, key: str | None, expected: str, faults: Diagnostics) -> Array | None:
    """Return the array of an .npy file, or that of a key in an .npz file; None after an error.

    `where` is the beginning of the message of an error.
    """
    array = _loaded(where, Path(file), key, expected, faults)
    if not isinstance(array, dict):
        return array
    faults.error(f"{where}'{file}' is an .npz file", expected=expected)
    return None


def _loaded(
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


def keep_outputs(
    outputs: Mapping[str, Array], tensors: Iterable[Mapping[str, Any]], folder: Path | None, *, frames: bool = False
) -> list[str]:
    """Write outputs to `folder`, if given, one NAME.npy each; return the lines to print.

    `tensors` contain dtype and labels by name; the arrays of dtypes that numpy lacks contain converted numbers.
    With `frames` the first dimension of the outputs counts the frames of a stream.
    """
    import numpy as np

    lines = []
    known = {tensor["name"]: tensor for tensor in tensors}
    if folder is not None:
        make_folder(folder)
    for name, array in outputs.items():
        shown = np.array2string(array.reshape(-1), threshold=8)
        lines.append(f"{name}: {known[name]['dtype']} {list(array.shape)}: {shown}")
        lines += label_lines(array, known[name].get("labels") or (), frames=frames)
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
    given: Path | None, output: str | None, outputs: Sequence[Mapping[str, Any]], count: int, faults: Diagnostics
) -> tuple[str, Array] | None:
    """Return the output with the classes, and the class number of each case; report unusable files.

    The output is `output`, or the only one. Without `given` the result is None.
    """
    if given is None:
        return None
    names = [tensor["name"] for tensor in outputs]
    if output is None and len(names) != 1:
        faults.error(f"the model has {len(names)} outputs", expected=f"--labels NAME={given}")
        return None
    name = names[0] if output is None else output
    if name not in names:
        faults.error(f"unknown output {name!r}", expected=f"one of: {', '.join(names)}")
        return None
    array = _loaded("", given, None, None, faults)
    if array is None:
        return None
    expected = f"{count} integers, the class of each case"
    if isinstance(array, dict) or array.dtype.kind not in "iu" or array.size != count:
        seen = "an .npz file" if isinstance(array, dict) else f"{array.dtype.name} {list(array.shape)}"
        faults.error(f"labels: '{given}' is {seen}", expected=expected)
        return None
    return name, array.reshape(-1)


def classes_of(array: Array) -> Array:
    """Return the class of each case: [cases, ...] scores, of which the greatest counts, or one class number each."""
    rows = array.reshape(len(array), -1)
    if rows.shape[1] == 1 and array.dtype.kind in "iu":
        return rows[:, 0]
    classes: Array = rows.argmax(axis=1)
    return classes


def accuracy_line(name: str, classes: Array, labels: Array) -> tuple[str, dict[str, Any]]:
    """Return the line to print, and its content as JSON values."""
    right = int((classes == labels).sum())
    share = right / len(labels)
    line = f"accuracy of {name}: {share:.2%} ({right} of {len(labels)})"
    return line, {"output": name, "correct": right, "cases": len(labels), "accuracy": share}

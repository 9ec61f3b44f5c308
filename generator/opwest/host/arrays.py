# SPDX-License-Identifier: Apache-2.0
"""The arrays of `opwest run`: inputs and references from files, outputs to files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.diagnostics import Diagnostics, nearest
from opwest.host.compile import fail
from opwest.host.labels import label_lines
from opwest.manifest.arrays import ArrayError, load_numpy
from opwest.model.dtypes import DTYPES
from opwest.model.elements import elements_of, reference_of, rounding_note
from opwest.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


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
    given: Sequence[str],
    streamed: Sequence[str],
    repeat: int,
    inputs: Sequence[Mapping[str, Any]],
    faults: Diagnostics,
) -> Runs:
    """Return the inputs of all runs; report missing, unknown and duplicate inputs, and arrays of another type.

    `given` are the options --input, `streamed` the options --stream, whose frames define the number of runs.
    """
    arrays = _read(given, "input", inputs, faults)
    frames = _read(streamed, "stream", inputs, faults)
    found: dict[str, Array] = {}
    counts: dict[str, int] = {}
    for tensor in inputs:
        name = tensor["name"]
        if name in arrays and name in frames:
            faults.error(f"input {name!r} is given as --input and as --stream", expected="one of them")
        elif name in arrays or name in frames:
            option, texts = ("stream", streamed) if name in frames else ("input", given)
            array = frames.get(name) if name in frames else arrays[name]
            fitted = _fitted(tensor, array, option, _file(texts, name), faults) if array is not None else None
            if fitted is not None:
                found[name] = fitted
            if fitted is not None and name in frames:
                counts[name] = len(fitted)
        else:
            faults.error(f"missing input {name!r}", expected=f"--input {name}=FILE.npy")
    if streamed and repeat > 1:
        faults.error("--stream excludes --repeat", hint="the frames define the number of runs")
    (first, count), *others = counts.items() or [("", repeat)]
    for name, other in others:
        if other != count:
            faults.error(
                f"{count} frames of {first!r}, {other} of {name!r}",
                expected="the same number of frames of every stream",
            )
    return Runs(found, count, frozenset(counts))


def _fitted(tensor: Mapping[str, Any], array: Array, option: str, file: str, faults: Diagnostics) -> Array | None:
    """Return an array as elements of a tensor, with a first dimension of frames if it is streamed."""
    name, dtype, shape = tensor["name"], DTYPES[tensor["dtype"]], list(tensor["shape"])
    found = elements_of(array, dtype)
    whole = [len(array), *shape] if option == "stream" and array.ndim else shape
    if found is None or list(array.shape) != whole or 0 in array.shape:
        seen = f"{array.dtype.name} {list(array.shape)}"
        wanted = ", ".join(["N", *map(str, shape)])
        words = f"[{wanted}], for N frames" if option == "stream" else str(shape)
        faults.error(f"input {name!r}: '{file}' contains {seen}", expected=f"{tensor['dtype']} {words}")
        return None
    elements, rounded = found
    if rounded:
        faults.note(f"input {name!r}: {rounding_note(rounded, dtype)}")
    return elements


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

    role = "output" if option == "reference" else "input"
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
                faults.error(f"{option} {name!r}: cannot read '{file}': {error.strerror}", expected=expected)
                continue
            except ArrayError as error:
                faults.error(f"{option} {name!r}: {error.message}", expected=expected, hint=error.hint)
                continue
            if isinstance(array, np.ndarray):
                arrays[name] = array
            else:
                faults.error(f"{option} {name!r}: '{file}' is an .npz file", expected=expected)
    return arrays


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

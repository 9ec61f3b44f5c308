# SPDX-License-Identifier: Apache-2.0
"""Models in C sources: the array that is a model file, as `xxd -i` and the projects of tflite-micro have it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from opwest.base.diagnostics import Diagnostic, Location, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.objects.c_arrays import CArray, c_arrays, may_have_arrays
from opwest.objects.facts import ObjectError
from opwest.objects.model_kinds import kind_of_content

_SHOWN = 10
"""The most arrays in a message."""
_FIRST = 8
"""The bytes of an array in a message."""
_ENDINGS = re.compile(r"_?(?:tflite|onnx|data|array|buffer|bytes|flatbuffer|fb)\Z", re.IGNORECASE)
_GENERIC = re.compile(r"(?:model|network|nn|tf|my|the)?\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Array:
    """The array of a source that is a model."""

    content: bytes
    name: str | None
    """A name for the model; None: that of the file is better."""
    origin: str
    """For comments: `array NAME of FILE`."""


def model_array(content: bytes, path: Path, wanted: str | None) -> Array | None:
    """Return the array of a source that is a model; None if the file has no arrays.

    `wanted`: the name of the array, with `:LINE` if several have the name; None: the only one that is a model. Raises
    OpwestError if there is no such array, or more than one.
    """
    is_text = b"\0" not in content
    if not is_text or (wanted is None and not may_have_arrays(content)):
        if wanted is not None:
            raise fault(f"--array {wanted}: the file is no C source", str(path), "a C or C++ source with arrays")
        return None
    try:
        arrays = c_arrays(content)
    except ObjectError as error:
        raise fault(error.message, str(path), error.expected, error.hint) from None
    if not arrays and wanted is None:
        return None
    array = _wanted(arrays, wanted, path) if wanted is not None else _only(arrays, path)
    if array.problem is not None:
        what = f"array '{array.name}' {array.problem}"
        raise OpwestError([Diagnostic("error", what, Location(str(path), array.line, 1), None, array.way_out)])
    origin = f"array {array.name} of {path.name}" if array.name else path.name
    return Array(array.content, _name(array.name), origin)


def _wanted(arrays: Sequence[CArray], wanted: str, path: Path) -> CArray:
    name, _, line = wanted.partition(":")
    found = [array for array in arrays if array.name == name and line in ("", str(array.line))]
    if not found:
        expected = f"--array {' or '.join(_names(arrays[:_SHOWN], arrays))}" if arrays else "a C source with arrays"
        raise fault(f"the file has no array '{wanted}'", str(path), expected)
    if any(array.content != found[0].content for array in found):
        expected = f"--array {' or '.join(_names(found, arrays))}"
        raise fault(f"the file has {len(found)} different arrays '{wanted}'", str(path), expected)
    [array] = found[:1]
    if array.problem is None and kind_of_content(array.content) is None:
        raise fault(f"array {_shown(array, array.name)} is no model", str(path), "an array that is a model file")
    return array


def _only(arrays: Sequence[CArray], path: Path) -> CArray:
    """Return the only array that is a model. Raises OpwestError that lists all of them."""
    models = [array for array in arrays if kind_of_content(array.content) is not None]
    different = list({array.content: array for array in reversed(models)}.values())[::-1]
    if len(different) == 1:
        return different[0]
    if different:
        names = _names(different[:_SHOWN], arrays)
        listed = "; ".join(_shown(array, name) for array, name in zip(different, names, strict=False))
        raise fault(f"the file has {len(different)} models: {listed}", str(path), f"--array {' or '.join(names)}")
    broken = next((array for array in arrays if array.problem is not None), None)
    if broken is not None and len(arrays) == 1:
        return broken
    names = _names(arrays[:_SHOWN], arrays)
    listed = "; ".join(_shown(array, name) for array, name in zip(arrays, names, strict=False))
    more = f"; {len(arrays) - _SHOWN} more" if len(arrays) > _SHOWN else ""
    hint = None if broken is None else f"array '{broken.name}' {broken.problem}: {broken.way_out}"
    raise fault(f"no array of the file is a model: {listed}{more}", str(path), "an array that is a model file", hint)


def _names(some: Sequence[CArray], arrays: Sequence[CArray]) -> list[str]:
    """Return the values of --array for some of the arrays: with the line where others have the name."""
    counts = Counter(array.name for array in arrays)
    return [array.name if counts[array.name] == 1 else f"{array.name}:{array.line}" for array in some]


def _shown(array: CArray, name: str) -> str:
    if array.problem is not None and not array.content:
        return f"{name} ({array.problem})"
    start = " ".join(f"{byte:02x}" for byte in array.content[:_FIRST])
    count = len(array.content)
    return f"{name} ({count:,} byte{'' if count == 1 else 's'}: {start}{' …' if count > _FIRST else ''})"


def _name(array: str) -> str | None:
    """Return a name for the model: g_kws_model_data is kws_model, and kTestConvModelData TestConvModel."""
    name = re.sub(r"\A(?:g_|k(?=[A-Z]))", "", array)
    while (shorter := _ENDINGS.sub("", name)) != name:
        name = shorter
    return None if _GENERIC.match(name) else name

# SPDX-License-Identifier: Apache-2.0
"""The arguments of `opwest call`, checked against the operator's signature in the project's record."""

from __future__ import annotations

import argparse
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opwest import nearby
from opwest.diagnostics import Diagnostics, nearest
from opwest.host.compile import fail
from opwest.manifest.arrays import ArrayError, load_numpy
from opwest.model.dtypes import DTYPES
from opwest.model.elements import elements_of
from opwest.records import dataclass
from opwest.render.arguments import ENTRY
from opwest.render.records.layout import NO_DEVICE


@dataclass(frozen=True)
class Call:
    """A checked call: the content of the argument memory up to its end, and the results to read from it."""

    operator: str
    index: int
    device: int
    content: bytes
    results: Sequence[Mapping[str, Any]]


def find_operator(name: str, model: Mapping[str, Any], project: Path) -> tuple[int, Mapping[str, Any]]:
    """Return an operator of the record and its index. Raises OpwestError."""
    if "operators" not in model or "arguments" not in model:
        raise fail(
            "the lock has no signatures of operators", project, hint="generate the application again: opwest update DIR"
        )
    names = [operator["name"] for operator in model["operators"]]
    if name not in names:
        raise fail(f"model '{model['name']}' has no operator {name!r}", project, hint=nearest(name, names))
    index = names.index(name)
    return index, model["operators"][index]


def prepare_call(options: argparse.Namespace, model: Mapping[str, Any], project: Path, faults: Diagnostics) -> Call:
    """Check the command line against the operator's signature; return the call. Raises OpwestError with all faults."""
    index, operator = find_operator(options.operator, model, project)
    device = _device(options.device, operator, model, faults)
    memory = bytearray(model["arguments"]["size"])
    given = _given(options.arg, operator, faults)
    for number, argument in enumerate(operator["args"]):
        name = argument["name"]
        entry = struct.pack("<Q", argument["offset"])
        content = b""
        if argument["direction"] in ("in", "inout"):
            if name not in given:
                form = "NUMBER" if argument["scalar"] else "FILE.npy"
                faults.error(f"missing argument {name!r}: {_shown(argument)}", expected=f"--arg {name}={form}")
            elif argument["scalar"]:
                entry = _scalar(name, given[name], argument, faults)
            else:
                content = _tensor(name, given[name], argument, faults)
        memory[ENTRY * number : ENTRY * (number + 1)] = entry
        memory[argument["offset"] : argument["offset"] + len(content)] = content if content else b""
    faults.raise_if_errors()
    results = [argument for argument in operator["args"] if argument["direction"] in ("out", "inout")]
    return Call(operator["name"], index, device, bytes(memory), results)


def _device(given: str | None, operator: Mapping[str, Any], model: Mapping[str, Any], faults: Diagnostics) -> int:
    """Return the index of the device, NO_DEVICE for an operator without one; report an unfit one."""
    name, fitting = operator["name"], operator["devices"]
    if not operator["takes_device"]:
        if given is not None:
            faults.error(f"operator {name!r} takes no device", hint="omit --device")
        return int(NO_DEVICE.value)
    expected = ", ".join(fitting) or "a device of the type that the operator requires"
    if given is None and len(fitting) == 1:
        given = fitting[0]
    if given is None:
        faults.error(f"operator {name!r} takes a device", expected=f"--device, one of: {expected}")
    elif given not in fitting:
        faults.error(f"device {given!r} does not fit operator {name!r}", expected=expected)
    else:
        return list(model["devices"]).index(given)
    return int(NO_DEVICE.value)


def _given(words: Sequence[str], operator: Mapping[str, Any], faults: Diagnostics) -> dict[str, str]:
    known = [a["name"] for a in operator["args"] if a["direction"] in ("in", "inout")]
    given: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not value:
            faults.error(f"invalid --arg {word!r}", expected="NAME=FILE.npy or NAME=NUMBER")
        elif name not in known:
            hint = nearest(name, known) or f"arguments that it reads: {', '.join(known) or 'none'}"
            faults.error(f"operator {operator['name']!r} reads no argument {name!r}", hint=hint)
        elif name in given:
            faults.error(f"duplicate argument {name!r}")
        else:
            given[name] = value
    return given


def _shown(argument: Mapping[str, Any]) -> str:
    return argument["dtype"] if argument["scalar"] else f"{argument['dtype']} {list(argument['shape'])}"


def _scalar(name: str, text: str, argument: Mapping[str, Any], faults: Diagnostics) -> bytes:
    """Return the entry of a scalar: an integer, or a double for float32 and float64."""
    dtype = argument["dtype"]
    expected = f"a number of type {dtype}"
    zero = bytes(ENTRY)
    if dtype in ("float32", "float64"):
        try:
            number = float(text)
            if math.isfinite(number):
                struct.pack("<f" if dtype == "float32" else "<d", number)
            elif text.strip(" +-").lower() not in ("inf", "infinity", "nan"):
                raise OverflowError
            return struct.pack("<d", number)
        except (ValueError, OverflowError):
            faults.error(f"argument {name!r} is {text!r}", expected=expected)
            return zero
    bits = 8 * int(DTYPES[dtype].size)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.startswith("int") else (0, (1 << bits) - 1)
    if dtype == "bool":
        low, high = 0, 1
    try:
        value = int(text, 0)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        what = " (its bits)" if "float" in dtype else ""
        faults.error(f"argument {name!r} is {text!r}", expected=f"an integer from {low} to {high}: {dtype}{what}")
        return zero
    return struct.pack("<Q", value & (1 << 64) - 1)


def _tensor(name: str, file: str, argument: Mapping[str, Any], faults: Diagnostics) -> bytes:
    import numpy as np

    expected = f"{_shown(argument)}, {argument['size']} bytes"
    try:
        array = load_numpy(Path(file))
    except OSError as error:
        faults.error(
            f"argument {name!r}: cannot read '{file}': {error.strerror}",
            expected=expected,
            hint=nearby.hint_for(Path(file)),
        )
        return b""
    except ArrayError as error:
        faults.error(f"argument {name!r}: {error.message}", expected=expected, hint=error.hint)
        return b""
    if not isinstance(array, np.ndarray):
        faults.error(f"argument {name!r}: '{file}' is an .npz file", expected=expected)
        return b""
    found = elements_of(array, DTYPES[argument["dtype"]])
    if found is None or list(array.shape) != list(argument["shape"]):
        seen = f"{array.dtype.name} {list(array.shape)}, {array.nbytes} bytes"
        faults.error(f"argument {name!r}: '{file}' contains {seen}", expected=expected)
        return b""
    return found[0].tobytes()

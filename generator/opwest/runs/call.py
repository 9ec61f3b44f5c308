# SPDX-License-Identifier: Apache-2.0
"""`opwest call`: one operator of an application, by name, on a board, in QEMU or on native_sim."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base.diagnostics import Diagnostics, fail, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.dtypes import DTYPES, elements_of, numbers_from
from opwest.render.arguments import ENTRY
from opwest.render.tables.layout import NO_DEVICE
from opwest.runs.arrays import make_folder, read_file, write_outputs
from opwest.runs.connection import clock_of, connected, link_errors, prepare, served_model
from opwest.runs.link import REBUILD_HINT, Link, LinkError, ModelError, Report, Served
from opwest.runs.options import CallOptions
from opwest.runs.progress import StageProgress
from opwest.runs.project_data import UPDATE_HINT, choose_model, required_record, selected_variant
from opwest.runs.results import OperatorCall
from opwest.runs.session import check_tensors, failure_hint, opened

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements as Array


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
        raise fail("the lock has no signatures of operators", project, hint=UPDATE_HINT)
    names = [operator["name"] for operator in model["operators"]]
    if name not in names:
        raise fail(f"model '{model['name']}' has no operator {name!r}", project, hint=nearest(name, names))
    index = names.index(name)
    return index, model["operators"][index]


def prepare_call(options: CallOptions, model: Mapping[str, Any], project: Path, faults: Diagnostics) -> Call:
    """Check the options against the operator's signature; return the call. Raises OpwestError with all faults."""
    index, operator = find_operator(options.operator or "", model, project)
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
            faults.error(f"invalid value {text!r} of argument {name!r}", expected=expected)
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
        faults.error(
            f"invalid value {text!r} of argument {name!r}", expected=f"an integer from {low} to {high}: {dtype}{what}"
        )
        return zero
    return struct.pack("<Q", value & (1 << 64) - 1)


def _tensor(name: str, file: str, argument: Mapping[str, Any], faults: Diagnostics) -> bytes:
    expected = f"{_shown(argument)}, {argument['size']} bytes"
    array = read_file(f"argument {name!r}: ", file, None, expected, faults)
    if array is None:
        return b""
    converted = elements_of(array, DTYPES[argument["dtype"]])
    if converted is None or list(array.shape) != list(argument["shape"]):
        seen = f"{array.dtype.name} {list(array.shape)}, {array.nbytes} bytes"
        faults.error(f"argument {name!r}: '{file}' contains {seen}", expected=expected)
        return b""
    return converted[0].tobytes()


def call_on_board(options: CallOptions, faults: Diagnostics) -> OperatorCall:
    """Call one operator under Zephyr; return its results and the duration."""
    project = options.directory
    record = required_record(project)
    model = choose_model(options.model, project, record)
    call = None if model.get("variants") else prepare_call(options, model, project, faults)
    if options.output_dir:
        make_folder(options.output_dir)
    progress = options.progress
    with link_errors(progress):
        build = prepare(options, record, progress, faults)
        if call is None:  # the operators depend on the variant in the image
            model = selected_variant(model, build.configuration())
            call = prepare_call(options, model, project, faults)
        with connected(options, build, progress) as link:
            served = served_model(link, model, None)
            check_tensors(served, model["tensors"], link.device)
            results, times = call_operator(link, served, call, repeat=options.repeat, progress=progress)
            device = link.device
    return OperatorCall(
        served.name,
        results,
        {result["name"]: result["dtype"] for result in call.results},
        write_outputs(results, options.output_dir),
        clock_of(options, build),
        times,
        build.board,
        device,
        build.folder,
        call.operator,
    )


def call_operator(
    link: Link, model: Served, call: Call, *, repeat: int, progress: StageProgress
) -> tuple[dict[str, Array], tuple[int, ...]]:
    """Call an operator `repeat` times on the same arguments; return the last results and the duration of each call."""
    index = next((i for i, tensor in enumerate(model.tensors) if tensor.role == "arguments"), None)
    if index is None or model.tensors[index].size != len(call.content):
        text = f"the image on '{link.device}' was built from another version of model '{model.name}'"
        raise LinkError(text, REBUILD_HINT)
    with opened(link, model, progress) as session:
        times = []
        for number in range(repeat):
            session.send(index, call.content)  # again: a call may overwrite its arguments
            progress.show(f"calling {call.operator}" + (f", {number + 1} of {repeat}" if repeat > 1 else ""))
            report = link.call(model, call.index, call.device)
            if report.result != 0:
                raise ModelError(_fault(report, call), failure_hint(report))
            times.append(report.nanoseconds)
        results = {
            result["name"]: numbers_from(
                session.fetch_part(index, result["name"], result["offset"], result["size"]),
                DTYPES[result["dtype"]],
                result["shape"],
                result.get("pitch", 0),
            )
            for result in call.results
        }
    return results, tuple(times)


def _fault(report: Report, call: Call) -> str:
    text = f"the call of operator '{call.operator}' returned {report.error or report.result}"
    return text + (f": {report.hook} of device {report.device} returned {report.code}" if report.hook else "")

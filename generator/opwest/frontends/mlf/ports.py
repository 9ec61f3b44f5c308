# SPDX-License-Identifier: Apache-2.0
"""Names, element types and shapes of inputs and outputs, from all sources in a directory.

metadata.json has element types and sizes; the Relay text, shapes; the header, names and possibly sizes; the definition
of main, element types. The option --tensor specifies element type and shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from opwest.base.diagnostics import nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.compiler.names import free_name
from opwest.frontends.mlf.c_text import same_name
from opwest.frontends.mlf.code import Code
from opwest.frontends.mlf.draft import Tensor, TensorOptions, TensorType
from opwest.frontends.mlf.library import ELEMENTS
from opwest.frontends.mlf.metadata import IoTensor, Metadata
from opwest.frontends.mlf.wrapper import Header
from opwest.model.types.c_names import fault_of_name
from opwest.model.types.dtypes import DTYPES, resolve_dtype

_MAX_LENGTH = 200


def kept_name(name: str, role: str, taken: set[str], remarks: list[str]) -> str:
    """Return a name, and add it to the names in use. If C forbids it, return a similar one and add a remark."""
    reason = fault_of_name(name)
    kept = name
    if reason is not None:
        kept = re.sub(r"\W", "_", name[:_MAX_LENGTH], flags=re.ASCII)
        if fault_of_name(kept) is not None:
            kept = f"{role}_{kept.lstrip('_')}"
    elif len(name) > _MAX_LENGTH:
        kept, reason = name[:_MAX_LENGTH], f"has {counted(len(name), 'character')}"
    free = free_name(kept, taken)
    if free != name:
        words = f"'{name[:_MAX_LENGTH]}' {reason or 'is the name of another tensor or device'}"
        remarks.append(f"the {role} is named '{free}': {words}")
    return free


_NUMBERS = r"\(((?:[0-9]{1,12}, ?)*(?:[0-9]{1,12})?)\)"
_SHAPES = re.compile(rf"Tensor\[{_NUMBERS}, (\w+)\]")
_PARAMETER = re.compile(rf"%([^\s,()]+?): Tensor\[{_NUMBERS}, (\w+)\]")
_MAIN = re.compile(r"def @main(?:\[[^\]]*\])?\(")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Relay:
    """Types in the text: parameters (including constants) by name, and results if annotated."""

    parameters: dict[str, TensorType]
    results: tuple[TensorType, ...] | None


def read_relay(content: bytes) -> Relay:
    """Return the types of main; empty if the text has none, or dynamic ones."""
    text = content.decode("utf-8", "replace")
    start = _MAIN.search(text)
    if start is None:
        return Relay({}, None)
    header_end = text.find("{\n", start.end())
    header = _COMMENT.sub("", text[start.end() : header_end if header_end >= 0 else len(text)])
    before, arrow, after = header.rpartition("->")
    named = before if arrow else header
    parameters = {m[1]: TensorType(m[3], _shape(m[2])) for m in _PARAMETER.finditer(named)}
    if arrow:
        return Relay(parameters, _types(after))
    return Relay(parameters, _last_type(text, header_end))


def _last_type(text: str, start: int) -> tuple[TensorType, ...] | None:
    """Return the type in the annotation (`/* ty=… */`) of main's last expression, if any."""
    end = text.find("\n}", start)
    line = text[start : end if end >= 0 else len(text)].rstrip().rpartition("\n")[2]
    at = line.rfind("/* ty=")
    return _types(line[at:]) if at >= 0 else None


def _types(text: str) -> tuple[TensorType, ...] | None:
    return tuple(TensorType(m[2], _shape(m[1])) for m in _SHAPES.finditer(text)) or None


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())


@dataclass(frozen=True)
class Model:
    """The parts of a directory for the import."""

    metadata: Metadata
    relay: Relay
    header: Header
    code: Code
    options: TensorOptions
    place: str
    headers: Mapping[str, str]
    """The archive's headers that the sources include."""


def tensors(
    role: str, seen: Sequence[IoTensor], model: Model, taken: set[str], remarks: list[str]
) -> tuple[Tensor, ...]:
    """Return the inputs or outputs, and add remarks on changed names. Raises OpwestError without a shape or type."""
    listed = []
    for number, tensor in enumerate(seen):
        name = kept_name(tensor.name, role, taken, remarks)
        port = _port(role, model.metadata, tensor.name, number, len(seen))
        typed = _typed(role, model.relay, tensor.name, number, len(seen))
        listed.append(_tensor(name, role, tensor, port, typed, model))
    return tuple(listed)


def _tensor(
    name: str, role: str, seen: IoTensor, port: IoTensor | None, typed: TensorType | None, model: Model
) -> Tensor:
    """Return a tensor; compare the types from all sources."""
    place = model.place
    option = model.options.get(name) or model.options.get(seen.name)
    named = {
        "--tensor": option.dtype if option else None,
        "metadata.json": port.dtype if port else None,
        "the Relay text": typed.dtype if typed else None,
    }
    of_main = seen.dtype and resolve_dtype(seen.dtype, next(filter(None, named.values()), seen.dtype))
    dtypes = {"--tensor": named["--tensor"], "the definition of main": of_main, **named}
    declared = {source: dtype for source, dtype in dtypes.items() if dtype is not None}
    if not declared:
        hint = f"specify it, for example --tensor {name}=float32:1,10"
        raise fault(f"the directory does not record the element type of {role} {name!r}", place, hint=hint)
    if len(set(declared.values())) > 1:
        words = ", ".join(f"{dtype} in {source}" for source, dtype in declared.items())
        raise fault(f"conflicting element types of {role} {name!r}: {words}", place, "the same type")
    dtype = next(iter(declared.values()))
    if dtype not in DTYPES:
        raise fault(f"{role} {name!r} has the element type {dtype[:40]}", place, ", ".join(DTYPES))
    size = seen.size or (port.size if port else None)
    shape = option.shape if option else typed.shape if typed else None
    item = DTYPES[dtype].size
    if shape is None and size is not None and size % item == 0:
        shape = (size // item,)
    if shape is None:
        hint = f"specify it, for example --tensor {name}=1,10"
        raise fault(f"the directory does not record the shape of {role} {name!r} ({dtype})", place, hint=hint)
    if any(n <= 0 for n in shape) or prod(shape) > ELEMENTS:
        raise fault(f"{role} {name!r} has the shape {list(shape)}", place, "dimensions from 1, as numbers")
    if size is not None and prod(shape) * item != size:
        text = f"{role} {name!r} has the shape {list(shape)} of {dtype}, {prod(shape) * item} bytes"
        raise fault(text, place, f"{counted(size, 'byte')}, as recorded elsewhere in the directory")
    return Tensor(name, dtype, shape)


def check_options(options: TensorOptions, known: Sequence[str], place: str) -> None:
    """Raise OpwestError for a --tensor without a matching input or output."""
    for name in options:
        if name not in known:
            raise fault(f"unknown input or output {name!r} in --tensor", place, nearest(name, known))


def _port(role: str, metadata: Metadata, name: str, number: int, count: int) -> IoTensor | None:
    ports = metadata.inputs if role == "input" else metadata.outputs
    by_name = next((p for p in ports if same_name(p.name, name)), None)
    return by_name or (ports[number] if len(ports) == count else None)


def _typed(role: str, relay: Relay, name: str, number: int, count: int) -> TensorType | None:
    if role == "input":
        return next((t for n, t in relay.parameters.items() if same_name(n, name)), None)
    return relay.results[number] if relay.results and len(relay.results) == count else None

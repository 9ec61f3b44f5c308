# SPDX-License-Identifier: Apache-2.0
"""TVM's C interface: the header `tvmgen_<module>.h`, and `_run`, which passes its static arrays to main."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.frontends.mlf.c_text import ALIGNED, arrays, functions, same_name, values
from opwest.frontends.mlf.draft import Draft
from opwest.frontends.mlf.library import ELEMENTS, KEPT_BYTES
from opwest.frontends.mlf.metadata import Metadata
from opwest.manifest import writer
from opwest.model.types.dtypes import dtype_of_c

Role = Literal["input", "output", "workspace", "constants", "device"]
_ROLES: Mapping[str, Role] = {
    "inputs": "input",
    "outputs": "output",
    "devices": "device",
    "workspace_pools": "workspace",
    "constant_pools": "constants",
}
"""By the structure of the header."""

_STRUCT = re.compile(r"struct\s+\w+_(inputs|outputs|devices|workspace_pools|constant_pools)\s*\{([^{}]*)\}")
_MEMBER = re.compile(r"\*\s*(\w+)\s*;")
_MACRO = re.compile(r"^#define\s+(\w+_SIZE)\s+(\d{1,12})\s*$", re.MULTILINE)
_UNSUPPORTED = {"_map_inputs(": "inputs in workspaces", "_INIT_DATA": "constants in memory of the caller"}
_CALL = re.compile(r"return\s+(\w+)\s*\((.*)\)\s*\Z", re.DOTALL)
_GIVEN = re.compile(r"(inputs|outputs|devices|workspace_pools|constant_pools)->(\w+)")
_STATIC = re.compile(r"(\w+)[\s)]*\Z")
_POOL = re.compile(r"static\s+(const\s+)?struct\s+(\w+)\s*\{([^{}]*)\}\s*(\w+)\s*=\s*\{")
_VALUES = re.compile(r"\.(\w+)\s*=\s*\{")
_POOL_MEMBER = re.compile(r"^[ \t]*(\w+)\s+(\w+)\s*\[(\d{1,10})\]\s*(__attribute__[^;]{0,200})?;", re.MULTILINE)


@dataclass(frozen=True)
class Header:
    """Names of the header's structures, and its sizes."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    pools: tuple[str, ...] = ()
    """The members of the structure of workspaces: the memory of the caller."""
    unsupported: str | None = None
    """A part of the interface that only microTVM supports."""


@dataclass(frozen=True)
class Given:
    """The value that `_run` passes to main for one parameter."""

    role: Role
    name: str


@dataclass(frozen=True)
class Pool:
    """A static array or structure: a workspace with its size in bytes, or constants with their bytes and offsets."""

    name: str
    size: int
    align: int
    content: bytes | None = None
    members: tuple[tuple[str, str, int, int], ...] = ()
    """Name, dtype, elements, offset."""


@dataclass(frozen=True)
class Wrapper:
    """The arguments that `_run` passes to main, in order."""

    main: str
    given: tuple[Given, ...]


def read_header(text: str) -> Header:
    """Return the content of a generated header."""
    names = {match[1]: tuple(_MEMBER.findall(match[2])) for match in _STRUCT.finditer(text)}
    sizes = {m[1]: int(m[2]) for m in _MACRO.finditer(text)}
    inputs, outputs, devices = (names.get(key, ()) for key in ("inputs", "outputs", "devices"))
    unsupported = next((words for part, words in _UNSUPPORTED.items() if part in text), None)
    return Header(inputs, outputs, devices, sizes, names.get("workspace_pools", ()), unsupported)


def read_wrapper(text: str, module: str) -> Wrapper | None:
    """Return the call of main in `tvmgen_<module>_run`; None if the text has no `_run` of the C interface."""
    run = functions(text).get(f"tvmgen_{module}_run")
    if run is None or (run.parameters[:1] and run.parameters[0].name in ("args", "arg_values")):
        return None
    at = run.body.find("return")
    call = _CALL.match(run.body[at : run.body.find(";", at)]) if at >= 0 else None
    if call is None:
        return None
    given = []
    for argument in (a.strip() for a in call[2].split(",")):
        named = _GIVEN.search(argument)
        if named is not None:
            given.append(Given(_ROLES[named[1]], named[2]))
            continue
        static = _STATIC.search(argument[:500])
        if static is None:
            return None
        given.append(Given("constants" if "const" in static[1] else "workspace", static[1]))
    return Wrapper(call[1], tuple(given))


def read_pools(text: str, place: str) -> dict[str, Pool]:
    """Return the static arrays of bytes, and the structures of constants, of a source. Raises OpwestError."""
    pools = {}
    for array in arrays(text):
        if array.dtype in ("uint8", "int8") and array.start < 0 and not array.constant:
            if not 0 < array.count <= ELEMENTS:
                raise fault(f"workspace {array.name!r} has {counted(array.count, 'byte')}", place, f"1 to {ELEMENTS}")
            pools[array.name] = Pool(array.name, array.count, max(array.align, 1))
    for match in _POOL.finditer(text):
        pools[match[4]] = _constants(text, match, place)
    return pools


def _constants(text: str, match: re.Match[str], place: str) -> Pool:
    """Return a structure of constants with the compiler's layout: every member at its alignment."""
    places = {m[1]: m.end() - 1 for m in _VALUES.finditer(text, match.end() - 1)}
    offset, whole_align = 0, 1
    members, parts = [], bytearray()
    for member in _POOL_MEMBER.finditer(match[3]):
        dtype = dtype_of_c(member[1])
        if dtype is None:
            raise fault(f"constant {member[2]!r} has the type {member[1]}", place, "a plain number's type")
        aligned = ALIGNED.search(member[4] or "")
        align = int(aligned[1]) if aligned else dtype.size
        if not 0 < align <= 4096 or align & (align - 1):
            raise fault(f"constant {member[2]!r} has the alignment {align}", place, "a power of two up to 4096")
        count = int(member[3])
        offset += -offset % align
        whole_align = max(whole_align, align)
        if offset + count * dtype.size > KEPT_BYTES:
            raise fault(f"the constants have more than {KEPT_BYTES} bytes", place, "a model for a microcontroller")
        if member[2] not in places:
            raise fault(f"constant {member[2]!r} has no values", place, f"`.{member[2]} = {{…}}`")
        parts += bytes(offset - len(parts)) + values(text, places[member[2]], dtype.name, count, place)
        members.append((member[2], dtype.name, count, offset))
        offset += count * dtype.size
    if not members:
        raise fault(f"the structure {match[4]!r} has no members that can be read", place, "arrays of numbers")
    parts += bytes(-len(parts) % whole_align)
    return Pool(match[4], len(parts), whole_align, bytes(parts), tuple(members))


def interface_lines(draft: Draft, header: Header, metadata: Metadata, place: str) -> list[str]:
    """Return the section `compat` of the manifest: the members with other names than there, the pools of the caller.

    The names are those of the header, otherwise those of metadata.json. Raises OpwestError.
    """
    if header.unsupported:
        text = f"--compat tvmgen does not support {header.unsupported} in tvmgen_{metadata.module}.h"
        raise fault(text, place, "structures of inputs, outputs, devices and workspaces")
    inputs = header.inputs or tuple(port.name for port in metadata.inputs)
    outputs = header.outputs or tuple(port.name for port in metadata.outputs)
    groups = (
        ([tensor.name for tensor in draft.inputs], inputs),
        ([tensor.name for tensor in draft.outputs], outputs),
        (draft.devices, header.devices),
    )
    lines = ["compat:", "  tvmgen:", f"    module: {writer.scalar(metadata.module)}"]
    names = [pair for own, members in groups for pair in _pairs(own, members)]
    if names:
        lines += ["    names:", *(f"      {writer.scalar(name)}: {writer.scalar(member)}" for name, member in names)]
    if header.pools:
        lines.append(f"    workspace_pools: [{', '.join(map(writer.scalar, header.pools))}]")
    return lines


def _pairs(own: Sequence[str], members: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names with the members of another name: those of equal position among the names without a member."""
    plain = ["".join(c if c.isascii() and c.isalnum() else "_" for c in member) for member in members]
    rest = [member for member in plain if not any(same_name(member, name) for name in own)]
    for name in own:
        if not any(same_name(member, name) for member in plain) and rest:
            yield name, rest.pop(0)

# SPDX-License-Identifier: Apache-2.0
"""metadata.json: versions 5 and 6 describe one model, version 7 several under `modules`.

No version contains shapes, pools, devices or the calling convention, and the sizes are upper bounds
(docs/importing-mlf.md). Only these values are used: names, element types and sizes of inputs and outputs,
targets.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import field
from math import prod
from typing import Any

from opwest.base.diagnostics import nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.frontends.mlf.library import DIMENSIONS, ELEMENTS, JSON_BYTES, TENSORS, Library
from opwest.model.types.dtypes import dtype_of_packed

LIST_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F


@dataclass(frozen=True, slots=True)
class Parameter:
    """An array: `values` is a numpy array of the type `dtype.numpy`."""

    dtype: str
    values: Any


def read_params(content: bytes, place: str) -> dict[str, Parameter]:
    """Return the arrays by their names. Raises OpwestError for a damaged file."""
    reader = _Reader(content, place)
    if reader.number("<Q", "the magic number") != LIST_MAGIC:
        raise fault("not a parameter file: wrong magic number", place, f"{LIST_MAGIC:#x}")
    reader.number("<Q", "the reserved word")
    names = [reader.name() for _ in range(reader.count("names"))]
    count = reader.count("arrays")
    if count != len(names):
        raise fault(f"{counted(count, 'array')} for {counted(len(names), 'name')}", place, "one array per name")
    if len(set(names)) != len(names):
        raise fault("duplicate parameter", place, "unique names")
    parameters = {name: reader.array(name) for name in names}
    if reader.at != len(content):
        raise fault(f"{counted(len(content) - reader.at, 'byte')} after the last array", place, "the end of the file")
    return parameters


class _Reader:
    def __init__(self, content: bytes, place: str) -> None:
        self.content = content
        self.place = place
        self.at = 0

    def take(self, size: int, what: str) -> bytes:
        if size > len(self.content) - self.at:
            raise fault(
                f"the parameter file is truncated in {what}, at byte {self.at}", self.place, f"{counted(size, 'byte')}"
            )
        part = self.content[self.at : self.at + size]
        self.at += size
        return part

    def number(self, layout: str, what: str) -> int:
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout), what))[0]
        return value

    def count(self, what: str) -> int:
        value = self.number("<Q", f"the count of {what}")
        if value > TENSORS:
            raise fault(f"the parameter file has {value} {what}", self.place, f"at most {TENSORS}")
        return value

    def name(self) -> str:
        raw = self.take(self.number("<Q", "a name"), "a name")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise fault(f"the name {raw[:60]!r} is not UTF-8", self.place, "UTF-8") from None

    def array(self, name: str) -> Parameter:
        import numpy as np

        what = f"parameter {name[:80]!r}"
        if self.number("<Q", what) != ARRAY_MAGIC:
            raise fault(f"{what} does not start with the magic number of an array", self.place, f"{ARRAY_MAGIC:#x}")
        self.take(16, what)
        dimensions = self.number("<i", what)
        if not 0 <= dimensions <= DIMENSIONS:
            raise fault(f"{what} has {counted(dimensions, 'dimension')}", self.place, f"0 to {DIMENSIONS}")
        code, bits, lanes = struct.unpack("<BBH", self.take(4, what))
        shape = tuple(self.number("<q", what) for _ in range(dimensions))
        size = self.number("<q", what)
        known = dtype_of_packed(code, bits)
        if known is None or lanes != 1:
            raise fault(f"{what} has the type code {code}, {bits} bits, {lanes} lanes", self.place, "a plain number")
        dtype = np.dtype(known.numpy).newbyteorder("<")
        if any(n <= 0 for n in shape) or prod(shape) * dtype.itemsize != size:
            raise fault(
                f"{what} has the shape {list(shape)} and {counted(size, 'byte')}",
                self.place,
                "bytes that fit the shape",
            )
        return Parameter(known.name, np.frombuffer(self.take(size, what), dtype).reshape(shape))


VERSIONS = (5, 6, 7)


@dataclass(frozen=True)
class IoTensor:
    """An input or output in metadata.json or in code, which have no shape: the element type and the bytes, if known."""

    name: str
    dtype: str | None
    size: int | None


@dataclass(frozen=True)
class Metadata:
    """The used values of metadata.json; without that file, `version` is None and the rest is empty."""

    version: int | None
    module: str
    executors: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    inputs: tuple[IoTensor, ...] = ()
    outputs: tuple[IoTensor, ...] = ()
    workspace: int | None = None
    """Bytes of main's workspace: an upper bound."""
    operators: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the operators' workspaces: upper bounds."""


def read_metadata(library: Library, module: str | None) -> Metadata:
    """Return the values of a module (None: the only one) in metadata.json. Raises OpwestError."""
    place = library.place("metadata.json")
    content = library.files.get("metadata.json")
    if content is None:
        return Metadata(None, module or _guessed_module(library))
    whole = read_json(content, place)
    version = whole.get("version")
    if version not in VERSIONS or isinstance(version, bool):
        expected = f"version {', '.join(map(str, VERSIONS[:-1]))} or {VERSIONS[-1]} (TVM 0.8 to 0.18)"
        raise fault(f"Model Library Format version {_short(version)}", place, expected)
    listed = whole.get("modules")
    modules = listed if isinstance(listed, dict) else {str(whole.get("model_name", "default")): whole}
    if not modules:
        raise fault("no module in metadata.json", place, "at least one in 'modules'")
    if module is None and len(modules) > 1:
        names = ", ".join(sorted(modules))
        raise fault(
            f"the archive contains {counted(len(modules), 'module')}: {names}", place, hint="choose one with --module"
        )
    name = module if module is not None else next(iter(modules))
    if name not in modules:
        raise fault(f"unknown module {name!r}", place, hint=nearest(name, modules))
    return _module(modules[name], name, int(version), place)


def _module(module: Any, name: str, version: int, place: str) -> Metadata:
    if not isinstance(module, dict):
        raise fault(f"module {name[:60]!r} is {_short(module)}", place, "a JSON object")
    style = module.get("style", "full-model")
    if style != "full-model":
        raise fault(f"export style {_short(style)}: single operators without a model", place, "full-model")
    functions = _dict(_dict(module.get("memory")).get("functions"))
    # One entry for each kind of TVM device; each repeats the inputs and outputs, or omits them.
    mains = [_dict(entry) for entry in _list(functions.get("main"))]
    inputs, outputs = (_same_ports(mains, key, place) for key in ("inputs", "outputs"))
    sizes_of_main = [entry.get("workspace_size_bytes") for entry in mains]
    known_of_main = [n for n in sizes_of_main if type(n) is int and n >= 0]
    workspace = sum(known_of_main) if known_of_main else None
    targets = module.get("target", [])
    listed = functions.get("operator_functions")
    operators = {}
    for function in listed if isinstance(listed, list) else []:
        workspaces = _list(_dict(function).get("workspace"))
        sizes = [_dict(w).get("workspace_size_bytes") for w in workspaces]
        known = [n for n in sizes if isinstance(n, int) and 0 <= n <= ELEMENTS]
        operators[str(_dict(function).get("function_name"))] = max(known, default=0)
    return Metadata(
        version,
        name,
        tuple(str(e) for e in _list(module.get("executors", module.get("runtimes")))),
        tuple(str(t) for t in (targets.values() if isinstance(targets, dict) else _list(targets))),
        inputs,
        outputs,
        workspace if workspace is not None and workspace <= ELEMENTS else None,
        operators,
    )


def _same_ports(mains: list[Mapping[str, Any]], key: str, place: str) -> tuple[IoTensor, ...]:
    """Return the inputs or outputs of main, which must be the same in all entries that contain them."""
    listed = [ports for main in mains if (ports := _ports(main.get(key), place))]
    if any(ports != listed[0] for ports in listed):
        raise fault(f"main has different {key} for different TVM devices", place, f"the same {key}")
    return listed[0] if listed else ()


def _ports(listed: Any, place: str) -> tuple[IoTensor, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, dict) or len(listed) > TENSORS:
        raise fault("inputs or outputs of main are not a list of tensors", place, "names with dtype and size")
    ports = []
    for name, port in listed.items():
        dtype, size = _dict(port).get("dtype"), _dict(port).get("size")
        if type(dtype) is not str or type(size) is not int or not 0 < size <= ELEMENTS:
            text = f"tensor {name[:60]!r} has the dtype {_short(dtype)}, {_short(size)} bytes"
            raise fault(text, place, "dtype, size")
        ports.append(IoTensor(name, dtype, size))
    return tuple(ports)


def read_json(content: bytes, place: str) -> dict[str, Any]:
    """Return a JSON object. Raises OpwestError."""
    if len(content) > JSON_BYTES:
        raise fault(f"the file has {counted(len(content), 'byte')}", place, f"at most {JSON_BYTES}")
    try:
        whole = json.loads(content)
    except RecursionError:
        raise fault("the JSON is nested too deeply", place, "JSON written by TVM") from None
    except ValueError as error:
        raise fault(f"not JSON: {str(error)[:200]}", place, "JSON written by TVM") from None
    if not isinstance(whole, dict):
        raise fault(f"the JSON is {_short(whole)}", place, "an object")
    return whole


def _guessed_module(library: Library) -> str:
    """Return the module's name without metadata.json: that of its header, or of its files."""
    for name in library.under("codegen/host/include/", ".h"):
        stem = name.rsplit("/", 1)[1].removesuffix(".h")
        if stem.startswith("tvmgen_"):
            return stem.removeprefix("tvmgen_")
    for name in library.under("codegen/host/", ".c", ".o"):
        stem, suffix, _ = name.rsplit("/", 1)[1].partition("_lib")
        if suffix and stem:
            return stem
    return "default"


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"

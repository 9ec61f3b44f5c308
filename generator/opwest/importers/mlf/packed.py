# SPDX-License-Identifier: Apache-2.0
"""Functions with packed arguments in TVM's C code: the entries of `args` that they read, and their types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opwest.importers.mlf.c_text import Function
from opwest.model.dtypes import dtype_of_c

_ENTRY = re.compile(
    r"\bvoid\s*\*\s*(\w+)\s*=\s*\(*\s*\(TVMValue\s*\*\)\s*args\s*\)\s*\[\s*\(?(\d{1,4})\)?\s*\]\s*\.\s*v_handle"
)
_FIELD = re.compile(
    r"\bvoid\s*\*\s*(\w+)\s*=\s*\(*\s*\(DLTensor\s*\*\)\s*(\w+)\s*\)\s*\[\s*\(?0\)?\s*\]\s*\.\s*(data|shape)\s*\)"
)
_CAST = re.compile(r"\(\s*(?:const\s+)?(\w+)\s*\*\s*\)\s*\(?(\w+)\b")
_DIMENSION = r"\(\(int64_t\s*\*\)\s*(\w+)\s*\)\s*\[\s*\(?(\d{1,2})\)?\s*\]"
_NUMBER = r"\(?(?:\(int\w+\)\s*)?(\d{1,12})\b"
# `if (!(16 == ((int32_t)((int64_t*)arg_p0_shape)[1])))`, in either order, with or without the conversion.
_CHECK = re.compile(rf"{_NUMBER}\)?\s*==\s*\(*(?:\(?int32_t\)\s*\(*)?{_DIMENSION}|{_DIMENSION}\)*\s*==\s*\(*{_NUMBER}")


@dataclass(frozen=True)
class Entry:
    """One entry of `args`: a DLTensor, or a bare pointer. `data` is the variable of its elements."""

    name: str
    tensor: bool
    data: str
    dtype: str | None = None
    """The element type of accesses in the body; None if there is none, or more than one."""
    shape: tuple[int, ...] | None = None
    """The shape that the body checks; None without a check."""


def is_packed(function: Function) -> bool:
    """Return whether a function has the signature of TVMBackendPackedCFunc."""
    return len(function.parameters) == 6 and function.parameters[0].name in ("args", "arg_values")


def packed_entries(function: Function) -> list[Entry]:
    """Return the entries in order; empty if one is missing."""
    found = {int(m[2]): m[1] for m in _ENTRY.finditer(function.body)}
    if sorted(found) != list(range(len(found))):
        return []
    read = set(re.findall(r"\(\(DLTensor\s*\*\)\s*(\w+)\s*\)", function.body))
    fields = {(m[2], m[3]): m[1] for m in _FIELD.finditer(function.body)}
    casts = _casts(function.body)
    shapes = _checked(function.body)
    entries = []
    for number in range(len(found)):
        name = found[number]
        data = fields.get((name, "data"), name)
        dtypes = casts.get(data, set())
        shape = shapes.get(fields.get((name, "shape"), ""))
        entries.append(Entry(name, name in read, data, next(iter(dtypes)) if len(dtypes) == 1 else None, shape))
    return entries


def _casts(body: str) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for match in _CAST.finditer(body):
        dtype = dtype_of_c(match[1])
        if dtype is not None:
            found.setdefault(match[2], set()).add(dtype.name)
    return found


def _checked(body: str) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes that a body compares in all dimensions, by the variable of the shape."""
    found: dict[str, dict[int, int]] = {}
    for match in _CHECK.finditer(body):
        name, at, size = (match[2], match[3], match[1]) if match[1] else (match[4], match[5], match[6])
        found.setdefault(name, {})[int(at)] = int(size)
    return {n: tuple(d[k] for k in range(len(d))) for n, d in found.items() if sorted(d) == list(range(len(d)))}

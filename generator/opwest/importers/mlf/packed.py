# SPDX-License-Identifier: Apache-2.0
"""Functions with packed arguments, as TVM's C shows them: which entries of `args` they take, and what those are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opwest.importers.mlf.c_text import Function

_ENTRY = re.compile(
    r"\bvoid\s*\*\s*(\w+)\s*=\s*\(*\s*\(TVMValue\s*\*\)\s*args\s*\)\s*\[\s*\(?(\d{1,4})\)?\s*\]\s*\.\s*v_handle"
)


@dataclass(frozen=True)
class Entry:
    """One entry of `args`: a DLTensor, or a bare pointer."""

    name: str
    tensor: bool


def is_packed(function: Function) -> bool:
    """Return whether a function has the signature of TVMBackendPackedCFunc."""
    return len(function.parameters) == 6 and function.parameters[0].name in ("args", "arg_values")


def packed_entries(function: Function) -> list[Entry]:
    """Return the entries in order; none where one is missing."""
    found = {int(m[2]): m[1] for m in _ENTRY.finditer(function.body)}
    if sorted(found) != list(range(len(found))):
        return []
    read = set(re.findall(r"\(\(DLTensor\s*\*\)\s*(\w+)\s*\)", function.body))
    return [Entry(found[number], found[number] in read) for number in range(len(found))]

# SPDX-License-Identifier: Apache-2.0
"""The arguments that main passes to packed operators: the tensors on its stack at each call.

TVM writes straight-line code: the fields of each DLTensor, the entries of the argument array, the call. Some releases
set shape and element type, others (LegalizePackedCalls of TVM's ahead-of-time executor) only the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from opwest.importers.mlf.c_text import Function
from opwest.importers.mlf.limits import DIMENSIONS
from opwest.model.dtypes import dtype_of_packed
from opwest.records import dataclass

_LONGEST = 2000
"""The maximum length of a parsed statement."""
_INDEX = r"\s*\[\s*\(?(\d{1,4})\)?\s*\]\s*"
_PIECES = re.compile(r"[;{}]")
_ALIAS = re.compile(r"\s*void\s*\*\s*(\w+)\s*=\s*(\w+)\s*\Z")
_SHAPE = re.compile(rf"\s*\(*\(int64_t\s*\*\)\s*(\w+)\s*\){_INDEX}\)?\s*=\s*(.+)\Z")
_FIELD = re.compile(rf"\s*\(*\(DLTensor\s*\*\)\s*(\w+)\s*\){_INDEX}\.\s*([a-z_.]+)\s*\)?\s*=\s*(.+)\Z", re.DOTALL)
_SLOT = re.compile(rf"\s*\(*\(TVMValue\s*\*\)\s*(\w+)\s*\){_INDEX}\.\s*v_handle\s*\)?\s*=\s*(.+)\Z", re.DOTALL)
_ADDRESS = re.compile(r"\(*\s*\(DLTensor\s*\*\)\s*(\w+)\s*\)\s*\+\s*\(?(\d{1,4})\)*\s*\Z")
_SHAPE_AT = re.compile(rf"\(*\s*&\s*\(*\s*\(int64_t\s*\*\)\s*(\w+)\s*\){_INDEX}\)*\s*\Z")
_NUMBER = re.compile(r"\(*\s*(?:\(\s*\w+\s*\)\s*)?\(*(\d{1,12})\)*\s*\Z")
_CALL = re.compile(r"\b(\w+)\s*\(\s*(?:\(\s*TVMValue\s*\*\s*\)\s*)?(\w+)\s*,")


@dataclass(frozen=True)
class Passed:
    """One entry of a call: `data` is main's expression for the memory, `handle` for the entry itself."""

    data: str
    handle: str = ""
    """Set if main passes one of its own entries, or a bare pointer."""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None


@dataclass
class _Stack:
    """Main's variables during the interpretation of its statements."""

    aliases: dict[str, str] = field(default_factory=dict)
    numbers: dict[tuple[str, int], int | None] = field(default_factory=dict)
    """Elements of arrays of shapes."""
    tensors: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    slots: dict[tuple[str, int], str] = field(default_factory=dict)

    def own(self, name: str) -> str:
        """Return the array that a variable points to."""
        return self.aliases.get(name, name)

    def passed(self, text: str) -> Passed:
        """Return the current content of an entry."""
        address = _ADDRESS.match(text)
        at = (self.own(address[1]), int(address[2])) if address else (self.own(text), 0)
        fields = self.tensors.get(at)
        if fields is None:
            return Passed("", text)
        return Passed(fields.get("data", ""), "", self._dtype(fields), self._shape(fields))

    def _dtype(self, fields: Mapping[str, str]) -> str | None:
        code, bits = _number(fields.get("dtype.code", "")), _number(fields.get("dtype.bits", ""))
        lanes = _number(fields.get("dtype.lanes", "1"))
        if code is None or bits is None or lanes != 1:
            return None
        known = dtype_of_packed(code, bits)
        return known.name if known else None

    def _shape(self, fields: Mapping[str, str]) -> tuple[int, ...] | None:
        rank, at = _number(fields.get("ndim", "")), _SHAPE_AT.match(fields.get("shape", ""))
        if rank is None or at is None or rank > DIMENSIONS:
            return None
        name, first = self.own(at[1]), int(at[2])
        sizes = [self.numbers.get((name, first + k)) for k in range(rank)]
        known = tuple(s for s in sizes if s)
        return known if len(known) == rank else None


def packed_calls(main: Function, counts: Mapping[str, int]) -> Iterator[tuple[str, list[Passed]]]:
    """Yield each call of a packed operator with its entries; `counts` has the number of entries of an operator.

    The call also contains the number of entries, but in some releases it includes the resource handle.
    """
    stack = _Stack()
    for piece in _PIECES.split(main.body):
        if len(piece) > _LONGEST:
            continue
        if (match := _ALIAS.match(piece)) is not None:
            stack.aliases[match[1]] = stack.own(match[2])
        elif (match := _SHAPE.match(piece)) is not None:
            stack.numbers[stack.own(match[1]), int(match[2])] = _number(match[3])
        elif (match := _FIELD.match(piece)) is not None:
            stack.tensors.setdefault((stack.own(match[1]), int(match[2])), {})[match[3]] = match[4].strip()
        elif (match := _SLOT.match(piece)) is not None:
            stack.slots[stack.own(match[1]), int(match[2])] = match[3].strip()
        else:
            for match in _CALL.finditer(piece):
                if match[1] in counts:
                    array = stack.own(match[2])
                    texts = [stack.slots.get((array, number), "") for number in range(counts[match[1]])]
                    yield match[1], [stack.passed(text) for text in texts]


def _number(text: str) -> int | None:
    match = _NUMBER.match(text)
    return int(match[1]) if match else None

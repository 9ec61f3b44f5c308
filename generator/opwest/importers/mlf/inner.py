# SPDX-License-Identifier: Apache-2.0
"""The operators that main calls, for the function registry, with the arguments that main passes.

The format records no sizes of intermediate tensors. Static arrays, constants and allocations have a size; a tensor
at an offset in a workspace is declared with the maximum, up to the workspace's end. Packed operators take
tensors, whose shapes and element types main or the operators can contain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from opwest.importers.mlf.c_text import Function
from opwest.importers.mlf.draft import Argument
from opwest.importers.mlf.packed import Entry, is_packed, packed_entries
from opwest.importers.mlf.packed_calls import Passed, packed_calls
from opwest.importers.text import identifier
from opwest.model.dtypes import DTYPES
from opwest.records import dataclass

_LET = re.compile(r"void\s*\*\s*(\w+)\s*=\s*\(?\s*&?\s*\(?&?\(?\s*(\w+)\s*\[\s*\(?\s*(\d{1,12})\s*\)?\s*\]\s*\)*\s*;")
_ALLOCATED = re.compile(
    r"void\s*\*\s*(\w+)\s*=\s*TVMBackendAllocWorkspace\s*\([^,;]*,[^,;]*,\s*(?:\(uint64_t\))?\s*(\d{1,12})"
)
_NAME = re.compile(r"\b(\w+)\s*\(")
_OFFSET = re.compile(r"\(*&?\(*(?:\(\w+\s*\*\)\s*)?\(*(\w+)\)*\s*\[\s*\(?(\d{1,12})\)?\s*\]\)*\Z")

_LONGEST = 500
"""The maximum length of an argument that refers to main's memory."""


@dataclass(frozen=True)
class Region:
    """Memory with a name in main."""

    size: int
    kind: str
    """tensor, workspace, constants."""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    """The known types of main's inputs, outputs and constants."""


class Calls:
    """The calls of main, and its named memory.

    `regions` are the parameters of main and the static arrays by name, `constants` the sizes of members of a
    structure of constants, by its parameter's name and the offset.
    """

    def __init__(
        self,
        main: Function,
        functions: Mapping[str, Function],
        regions: Mapping[str, Region],
        constants: Mapping[tuple[str, int], int],
    ) -> None:
        self.names = dict(regions)
        self.constants = constants
        self.given: dict[str, list[list[str]]] = {}
        for match in _ALLOCATED.finditer(main.body):
            self.names[match[1]] = Region(int(match[2]), "tensor")
        entries = packed_entries(main) if is_packed(main) else []
        for entry in entries:
            if entry.name in regions:
                self.names[entry.data] = regions[entry.name]
        for match in _LET.finditer(main.body):
            region = _part(self.names, constants, match[2], int(match[3]))
            if region is not None:
                self.names[match[1]] = region
        for statement in main.body.split(";"):
            match_ = next((m for m in _NAME.finditer(statement) if m[1] in functions), None)
            if match_ is not None:
                self.given.setdefault(match_[1], []).append(_split(statement[match_.end() :]))
        self.entries = {n: packed_entries(functions[n]) for n in self.given if is_packed(functions[n])}
        self.packed: dict[str, list[list[Passed]]] = {}
        for name, passed in packed_calls(main, {n: len(e) for n, e in self.entries.items()}):
            self.packed.setdefault(name, []).append(passed)

    def arguments(self, called: Function) -> tuple[Argument, ...] | None:
        """Return the arguments of an operator from its calls; None if the calls cannot be parsed."""
        if is_packed(called):
            return self._packed_arguments(called)
        sizes: list[Region | None] = [None] * len(called.parameters)
        for given in self.given.get(called.name, []):
            if len(given) != len(sizes):
                return None
            for number, text in enumerate(given):
                region = _given(text, self.names, self.constants)
                if region is None:
                    return None
                before = sizes[number]
                sizes[number] = region if before is None or region.size < before.size else before
        known = [s for s in sizes if s is not None]
        return _arguments(called, known) if known and len(known) == len(sizes) else None

    def _packed_arguments(self, called: Function) -> tuple[Argument, ...] | None:
        entries, calls = self.entries.get(called.name, []), self.packed.get(called.name, [])
        regions = [[self._region(p) for p in call] for call in calls]
        if not entries or not calls:
            return None
        written = _written(called.body, [e.data for e in entries], ["tensor" if e.tensor else "" for e in entries])
        taken: set[str] = set()
        found = []
        for number, entry in enumerate(entries):
            name = _free(identifier(entry.data, "p"), taken)
            given = [one[number] for one in regions]
            argument = _packed_argument(name, entry, given, "out" if number in written else "in")
            if argument is None:
                return None
            found.append(argument)
        return tuple(found)

    def _region(self, passed: Passed) -> Region | None:
        """Return the memory of an entry, with the type of the tensor in main."""
        region = _given(passed.handle or passed.data, self.names, self.constants)
        if region is None or passed.handle:
            return region
        return Region(region.size, region.kind, passed.dtype or region.dtype, passed.shape)


def _split(text: str) -> list[str]:
    """Return the arguments of a call, whose opening parenthesis is before the text."""
    depth, start, found = 0, 0, []
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        if depth < 0 or (depth == 0 and character == ","):
            found.append(text[start:at].strip())
            start = at + 1
        if depth < 0:
            break
    return found


def _given(text: str, names: Mapping[str, Region], constants: Mapping[tuple[str, int], int]) -> Region | None:
    if text in names:
        return names[text]
    match = _OFFSET.match(text) if len(text) <= _LONGEST else None
    return _part(names, constants, match[1], int(match[2])) if match else None


def _part(
    names: Mapping[str, Region], constants: Mapping[tuple[str, int], int], name: str, offset: int
) -> Region | None:
    whole = names.get(name)
    if whole is None or offset >= whole.size:
        return None
    return Region(constants.get((name, offset), whole.size - offset), "tensor")


def _packed_argument(name: str, entry: Entry, given: Sequence[Region | None], direction: str) -> Argument | None:
    """Return the argument of an entry that is the same in every call; None if its type or size is unknown."""
    regions = [r for r in given if r is not None]
    if len(regions) != len(given):
        return None
    size = min(r.size for r in regions)
    if not entry.tensor:
        direction = "scratch" if regions[0].kind == "workspace" else direction
        return Argument(name, "uint8", (size,), direction, 16, pointer=True)
    dtypes: set[str | None] = {r.dtype for r in regions if r.dtype is not None}
    dtypes = dtypes or {entry.dtype}
    dtype = dtypes.pop()
    if dtypes or dtype not in DTYPES:
        return None
    item = DTYPES[dtype].size
    shapes = {entry.shape or r.shape for r in regions} - {None}
    shape = shapes.pop() if shapes else (size // item,)
    if shapes or shape is None:
        return None
    # C requires only the element's alignment.
    return Argument(name, dtype, shape, direction, item) if 0 < prod(shape) * item <= size else None


def _arguments(called: Function, regions: Sequence[Region]) -> tuple[Argument, ...] | None:
    taken: set[str] = set()
    written = _written(called.body, [p.name for p in called.parameters], [r.kind for r in regions])
    found = []
    for number, (parameter, region) in enumerate(zip(called.parameters, regions, strict=True)):
        name = _free(identifier(parameter.name, "p"), taken)
        if parameter.stars != 1:
            return None
        dtype = parameter.dtype or "uint8"
        elements = region.size // DTYPES[dtype].size
        if elements == 0:
            return None
        direction = "out" if number in written else "in"
        if region.kind == "workspace":
            direction = "scratch"
        align = 16 if region.kind != "tensor" else None
        found.append(Argument(name, dtype, (elements,), direction, align))
    return tuple(found)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _written(body: str, names: Sequence[str], kinds: Sequence[str]) -> set[int]:
    """Return the tensors that the body assigns to; the last one if there is no visible assignment."""
    assigned = set(re.findall(r"\b(\w+)\)?\s*\[[^;=\[]{0,2000}\]\s*=[^=]", body))
    tensors = [n for n, kind in enumerate(kinds) if kind == "tensor"]
    return {n for n in tensors if names[n] in assigned} or set(tensors[-1:])

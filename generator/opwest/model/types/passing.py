# SPDX-License-Identifier: Apache-2.0
"""How arguments become the parameters of a compiled function: one by one, or in tables of pointers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.conventions import Convention
from opwest.model.types.dtypes import DType

if TYPE_CHECKING:
    from opwest.model.types.model import Argument


@dataclass(frozen=True, slots=True)
class Nulls:
    """A parameter that is always NULL, or entries of a table that are NULL before each call."""

    name: str
    dtype: DType
    """The element type that the pointers have in C."""
    count: int
    table: str | None
    before: int
    """The index in `args` of the argument that follows."""
    location: Location


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a compiled function, without its device."""

    name: str
    c_type: str
    argument: int | None
    """The index in `args` of the argument that it passes; None for a table, and for NULL."""
    entries: tuple[int | None, ...] | None = None
    """The arguments in a table of pointers; None for an entry that is NULL."""

    @property
    def entry_type(self) -> str:
        """The C type of the entries of a table."""
        return self.c_type[:-1]


def parameters(args: Sequence[Argument], nulls: Sequence[Nulls], convention: Convention) -> tuple[Parameter, ...]:
    """Return the parameters of a function whose convention passes each argument, or a pointer to it."""
    tensor = convention.descriptors.c_type if convention.descriptors is not None else None
    if not nulls and not convention.has_tables:
        return tuple(
            Parameter(a.name, a.c_type if a.scalar or tensor is None else tensor, index)
            for index, a in enumerate(args)
            if a.is_passed
        )
    passed: list[Parameter] = []
    table: str | None = None
    for index, item in _in_order(args, nulls):
        entries = (index,) if isinstance(item, int) else (None,) * item.count
        owner = (args[item] if isinstance(item, int) else item).table if convention.has_tables else None
        name = (args[item] if isinstance(item, int) else item).name
        pointer = args[item].c_type if isinstance(item, int) else f"{item.dtype.c_type} *"
        if owner is None:
            passed.append(Parameter(name, pointer, index))
        elif owner == table:
            before = passed.pop()
            passed.append(Parameter(owner, _common(before, pointer, index), None, (*(before.entries or ()), *entries)))
        else:
            # The type of NULL alone is that of inputs.
            const = "const " if index is None else ""
            passed.append(Parameter(owner, f"{const}{pointer}*", None, entries))
        table = owner
    return tuple(passed)


def _in_order(args: Sequence[Argument], nulls: Sequence[Nulls]) -> Iterator[tuple[int | None, int | Nulls]]:
    """Yield the index of each argument that is passed, and the nulls before it."""
    for index in range(len(args) + 1):
        for item in nulls:
            if item.before == index:
                yield None, item
        if index < len(args) and args[index].is_passed:
            yield index, index


def _common(table: Parameter, pointer: str, index: int | None) -> str:
    """Return the type of a table with one more entry: void for different elements, const if none is written."""
    elements = {text.removeprefix("const ").rstrip("* ") for text in (table.c_type, pointer)}
    element = elements.pop() if len(elements) == 1 else "void"
    is_read = index is None or pointer.startswith("const ")
    has_tensors = any(entry is not None for entry in table.entries or ())
    only_reads = (table.c_type.startswith("const ") or not has_tensors) and is_read
    return f"{'const ' if only_reads else ''}{element} **"

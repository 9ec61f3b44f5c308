# SPDX-License-Identifier: Apache-2.0
"""The own memory of operators in TVM's workspace, and their constants: compact, at new offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.importers.mlf.unpack.accesses import Operator, Role
from opwest.importers.mlf.unpack.memory import Base, Budget, Extent, extent_of, surely_written
from opwest.importers.mlf.unpack.syntax import NotUnpackedError
from opwest.importers.mlf.unpack.tensors import Calls, Tensor, apart
from opwest.importers.mlf.wrapper import Pool
from opwest.records import dataclass


@dataclass(frozen=True)
class Moved:
    """Memory of an operator: its size in bytes, and the new offset of every old one."""

    size: int
    offsets: Mapping[int, int]


def parts_of(operator: Operator, roles: Sequence[Role], budget: Budget) -> list[tuple[int, int | None, Base]]:
    """Return the offsets, sizes (None: unknown) and bases of an operator's memory in the workspace.

    Raises NotUnpackedError if the memory contains values of another operator.
    """
    found = []
    for base, role in zip(operator.bases, roles, strict=True):
        if role == "workspace":
            for offset, part in sorted(base.parts.items()):
                extent = extent_of(part, budget)
                if not extent.escapes and not part.declared:
                    _check_writes(operator.tree.function.name, part, extent, budget)
                found.append((offset, extent.size, part))
    return found


def _check_writes(function: str, part: Base, extent: Extent, budget: Budget) -> None:
    """Raise NotUnpackedError if an operator can read its own memory without writing it."""
    if extent.reads_first:
        raise NotUnpackedError(f"'{function}' reads '{part.name}' before it writes it")
    written = surely_written(part, budget) if extent.reads else 0
    if extent.read is None or extent.read > written:
        read = "an unknown number of" if extent.read is None else extent.read
        raise NotUnpackedError(f"'{function}' writes {written} bytes of '{part.name}' and reads {read} bytes")


def moved_scratch(
    name: str,
    parts: Sequence[tuple[int, int | None, Base]],
    limit: int,
    align: int,
    tensors: Sequence[Tensor],
    calls: Calls,
) -> Moved:
    """Return the memory of an operator without the gaps in which TVM's plan keeps tensors.

    Parts that overlap in TVM's plan are used one after the other in the operator, and keep their distance.
    Raises NotUnpackedError if a part contains a tensor that is live at the same time.
    """
    steps = [number for number, call in enumerate(calls.calls) if call.function == name]
    ranges = []
    for offset, size, part in parts:
        ends = [limit]
        for tensor in tensors:
            for step in steps:
                if tensor.offset is not None and tensor.offset >= offset and apart(tensor, part, step, calls):
                    ends.append(tensor.offset)
        end = offset + size if size is not None else min(ends)
        if end > min(ends) or end > limit:
            raise NotUnpackedError(f"'{name}' uses the workspace at {offset} to {end}, beyond its own memory")
        ranges.append((offset, end))
    at, last_start, last_end = 0, 0, -1
    offsets = {}
    for start, end in sorted(ranges):
        if start >= last_end:  # a new range, at the next aligned offset
            at = at + max(last_end - last_start, 0)
            at += -at % align
            last_start, last_end = start, end
        offsets[start] = at + start - last_start
        last_end = max(last_end, end)
    return Moved(at + max(last_end - last_start, 0), offsets)


@dataclass(frozen=True)
class Group:
    """Constants that operators read together: the members of TVM's structure at new offsets."""

    names: tuple[str, ...]
    content: bytes
    offsets: Mapping[int, int]
    """The new offset of each member, by the old one."""


def constant_groups(used: Mapping[str, set[int]], pool: Pool, align: int) -> dict[str, Group]:
    """Return the constants of each operator, by its name. Operators with a common constant share a group.

    `used` has the offsets that each operator reads. Raises NotUnpackedError for an offset without a constant.
    """
    members = {offset: name for name, _, _, offset in pool.members}
    owner: dict[int, str] = {}
    joined: dict[str, str] = {name: name for name in used}

    def root(name: str) -> str:
        while joined[name] != name:
            name = joined[name]
        return name

    for name, offsets in used.items():
        for offset in offsets:
            if offset not in members:
                raise NotUnpackedError(f"'{name}' reads constants at {offset}, where none begins")
            other = owner.setdefault(offset, name)
            joined[root(name)] = root(other)
    groups: dict[str, Group] = {}
    for name in used:
        if root(name) not in groups:
            whole = sorted({o for n, offsets in used.items() if root(n) == root(name) for o in offsets})
            groups[root(name)] = _group(whole, members, pool, align)
    return {name: groups[root(name)] for name, offsets in used.items() if offsets}


def _group(offsets: Sequence[int], members: Mapping[int, str], pool: Pool, align: int) -> Group:
    content, moved = bytearray(), {}
    for offset in offsets:
        content += bytes(-len(content) % align)
        moved[offset] = len(content)
        content += member_content(pool, offset)[2]
    return Group(tuple(members[o] for o in offsets), bytes(content), moved)


def member_content(pool: Pool, offset: int) -> tuple[str, str, bytes]:
    """Return the name, the dtype and the bytes of the constant at an offset. Raises NotUnpackedError."""
    from opwest.model.dtypes import DTYPES

    assert pool.content is not None
    for name, dtype, count, start in pool.members:
        if start == offset:
            return name, dtype, pool.content[start : start + count * DTYPES[dtype].size]
    raise NotUnpackedError(f"main passes constants at {offset}, where none begins")

# SPDX-License-Identifier: Apache-2.0
"""The own memory of operators in TVM's workspace, and their constants: compact, at new offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.inner import ALIGN
from opwest.frontends.mlf.unpack.functions import NotUnpackedError
from opwest.frontends.mlf.unpack.memory import Base, Budget, Extent, Operator, extent_of, surely_written
from opwest.frontends.mlf.unpack.tensors import Calls, Parts, Tensor, apart
from opwest.frontends.mlf.wrapper import Pool
from opwest.model.types.conventions import UNPACKED, WorkspaceNeed
from opwest.model.types.dtypes import DTYPES
from opwest.plan.memory import Planner, plan_blocks
from opwest.plan.problem import Block, Share
from opwest.plan.verify import verify

_PLANNERS: tuple[Planner, ...] = ("greedy", "search")


def alignment_of(tensor: Tensor, align: int) -> int:
    """Return the alignment of a tensor: that of TVM's plan, at most the largest access that fits into the tensor."""
    assert tensor.size is not None
    return max(limited(align if tensor.offset is not None else ALIGN, tensor.size), DTYPES[tensor.dtype].size)


def limited(align: int, size: int) -> int:
    """Return an alignment, at most the largest power of two in a size: no larger access fits."""
    return min(align, 1 << (max(size, 1).bit_length() - 1))


def shared_by_tvm(tensors: Sequence[Tensor]) -> list[Share]:
    """Return the results that TVM's plan places over an argument: the code of their operators is correct in place."""
    shares: list[Share] = []
    for taken in tensors:
        for taker in tensors:
            if (
                taken.offset is not None
                and taken.offset == taker.offset
                and taken.last == taker.first
                and taken is not taker
                and taken.directions[taken.uses[-1]] == "in"
                and taker.directions[taker.uses[0]] == "out"
                and (taker.size or 0) <= (taken.size or 0)
                and not any(taken.name == s.taken or taker.name == s.taker for s in shares)
            ):
                shares.append(Share(taken.name, taker.name, taker.first))
    return sorted(shares, key=lambda share: share.step)


def plan(
    tensors: Sequence[Tensor], own: Sequence[tuple[int, int]], align: int, before: int, shares: Sequence[Share]
) -> tuple[int, Planner]:
    """Return the size of opwest's plan, bytes, and the planner that found it.

    `own` has, for each step, the bytes of its operator in the workspace and from TVMBackendAllocWorkspace.
    Raises NotUnpackedError if the plan is larger than TVM's plan of `before` bytes.
    """
    blocks = []
    for tensor in tensors:
        assert tensor.size is not None
        blocks.append(_block(tensor.name, tensor.size, alignment_of(tensor, align), tensor.first, tensor.last))
    for step, (scratch, allocated) in enumerate(own):
        if scratch:
            blocks.append(_block(f"scratch of step {step}", scratch, limited(align, scratch), step, step))
        if allocated:
            need = WorkspaceNeed(allocated, UNPACKED.workspace_alignment)
            blocks.append(_block(f"workspace of step {step}", need.planned, need.align, step, step))
    smallest = None
    for planner in _PLANNERS:
        placed = plan_blocks(blocks, shares, planner)
        verify(blocks, placed.offsets, placed.size, shares)
        if placed.size <= before:
            return placed.size, planner
        smallest = min(placed.size, smallest or placed.size)
    raise NotUnpackedError(f"its steps need {smallest} bytes of memory, TVM's plan {before}")


def _block(name: str, size: int, align: int, first: int, last: int) -> Block:
    return Block(name, size + -size % align, align, first, last)


@dataclass(frozen=True)
class Moved:
    """Memory of an operator: its size in bytes, and the new offset of every old one."""

    size: int
    offsets: Mapping[int, int]


def parts_of(operator: Operator, budget: Budget) -> Parts:
    """Return the offsets, sizes (None: unknown) and bases of an operator's memory in the workspace.

    Raises NotUnpackedError if the memory contains values of another operator.
    """
    parts = []
    for base, role in zip(operator.bases, operator.roles, strict=True):
        if role == "workspace":
            for offset, part in sorted(base.parts.items()):
                extent = extent_of(part, budget)
                if not extent.escapes and not part.declared:
                    _check_writes(operator.tree.function.name, part, extent, budget)
                parts.append((offset, extent.size, part))
    return parts


def _check_writes(function: str, part: Base, extent: Extent, budget: Budget) -> None:
    """Raise NotUnpackedError if an operator can read its own memory without writing it."""
    if extent.reads_first:
        raise NotUnpackedError(f"'{function}' reads '{part.name}' before it writes it")
    written = surely_written(part, budget) if extent.reads else 0
    if extent.read is None or extent.read > written:
        read = "an unknown number of" if extent.read is None else extent.read
        raise NotUnpackedError(f"'{function}' writes {written} bytes of '{part.name}' and reads {read} bytes")


def moved_scratch(name: str, parts: Parts, limit: int, align: int, tensors: Sequence[Tensor], calls: Calls) -> Moved:
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
            content, moved = bytearray(), {}
            for offset in sorted({o for n, offsets in used.items() if root(n) == root(name) for o in offsets}):
                content += bytes(-len(content) % align)
                moved[offset] = len(content)
                content += member_content(pool, offset)[2]
            groups[root(name)] = Group(tuple(members[offset] for offset in moved), bytes(content), moved)
    return {name: groups[root(name)] for name, offsets in used.items() if offsets}


def member_content(pool: Pool, offset: int) -> tuple[str, str, bytes]:
    """Return the name, the dtype and the bytes of the constant at an offset. Raises NotUnpackedError."""
    assert pool.content is not None
    for name, dtype, count, start in pool.members:
        if start == offset:
            return name, dtype, pool.content[start : start + count * DTYPES[dtype].size]
    raise NotUnpackedError(f"main passes constants at {offset}, where none begins")

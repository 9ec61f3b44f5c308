# SPDX-License-Identifier: Apache-2.0
"""The own memory of operators in TVM's workspace as scratch arguments, their constants, and the plan of all memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.names import free_name
from opwest.frontends.mlf.inner import ALIGN
from opwest.frontends.mlf.unpack.functions import NotUnpackedError
from opwest.frontends.mlf.unpack.memory import Base, Budget, Extent, Operator, extent_of, surely_written
from opwest.frontends.mlf.unpack.tensors import Calls, Parts, Tensor, apart
from opwest.frontends.mlf.wrapper import Pool
from opwest.model.types.dtypes import DTYPES
from opwest.plan.memory import Planner, plan_blocks
from opwest.plan.problem import LAST_PHASE, Block, Share
from opwest.plan.uses import Lifetime, Phases
from opwest.plan.verify import flaws, verify

_MAX_PARTS = 500
"""The maximum number of parts of the workspace that an operator uses; those of TVM use some."""
_PLANNERS: tuple[Planner, ...] = ("greedy", "search")


def alignment_of(tensor: Tensor, align: int) -> int:
    """Return the alignment of a tensor: that of TVM's plan, at most the largest access that fits into the tensor."""
    assert tensor.size is not None
    return max(limited(align if tensor.offset is not None else ALIGN, tensor.size), DTYPES[tensor.dtype].size)


def limited(align: int, size: int) -> int:
    """Return an alignment, at most the largest power of two in a size: no larger access fits."""
    return min(align, 1 << (max(size, 1).bit_length() - 1))


def shared_by_tvm(tensors: Sequence[Tensor], calls: Calls) -> list[Share]:
    """Return the results that TVM's plan places over an argument: the code of their operators is correct in place.

    Arguments and results without a common phase are not among them.
    """
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
                and not _in_order(taken, taker, calls)
            ):
                shares.append(Share(taken.name, taker.name, taker.first))
    return sorted(shares, key=lambda share: share.step)


def _in_order(taken: Tensor, taker: Tensor, calls: Calls) -> bool:
    """Return whether the last step of a tensor ends its use before it begins that of another one."""
    before, after = (calls.span(tensor, taken.last) for tensor in (taken, taker))
    return before is not None and after is not None and before[1] < after[0]


@dataclass(frozen=True)
class Placed:
    """The plan of the steps."""

    size: int
    planner: Literal["greedy", "search", "fixed"]
    offsets: Mapping[str, int]
    """The offsets of TVM's plan, for `fixed`."""


def plan(blocks: Sequence[Block], shares: Sequence[Share], before: int, given: Mapping[str, int]) -> Placed:
    """Return opwest's plan if it has at most `before` bytes, those of TVM's plan; otherwise TVM's plan.

    `given` has the offsets of TVM's plan by block. Raises NotUnpackedError if they do not fit the steps: the code does
    not show that two blocks are in use one after the other.
    """
    for planner in _PLANNERS:
        placed = plan_blocks(blocks, shares, planner)
        verify(blocks, placed.offsets, placed.size, shares)
        if placed.size <= before:
            return Placed(placed.size, planner, {})
    for flaw in flaws(blocks, given, before, shares):
        if flaw.kind == "missing":
            step = flaw.block.name.partition(" of ")[2]
            text = f"its steps need {placed.size} bytes of memory, with the bookkeeping of TVMBackendAllocWorkspace in "
            raise NotUnpackedError(f"{text}{step}; as one operator it needs {before}")
        raise NotUnpackedError(f"{flaw.text} in TVM's plan")
    return Placed(max(given[block.name] + block.size for block in blocks), "fixed", given)


def block_of(name: str, size: int, align: int, life: Lifetime) -> Block:
    """Return a block of a plan, with a multiple of its alignment as size."""
    return Block(name, size + -size % align, align, life.first, life.last, life.begin, life.end)


@dataclass(frozen=True)
class Range:
    """Memory of an operator that becomes an argument."""

    parameter: int | None
    """The number of the parameter for the workspace; None for allocated memory."""
    name: str
    size: int
    start: int
    """The offset in TVM's workspace, or in the operator's stack of allocations."""
    offsets: frozenset[int]
    """The offsets in TVM's workspace that the operator uses."""
    phases: Phases | None


def parts_of(operator: Operator, budget: Budget) -> Parts:
    """Return the offsets, sizes (None: unknown) and bases of an operator's memory in the workspace.

    Raises NotUnpackedError if the memory contains values of another operator.
    """
    parts = []
    for base, role in zip(operator.bases, operator.roles, strict=True):
        if role == "workspace":
            if len(base.parts) > _MAX_PARTS:
                raise NotUnpackedError(f"'{operator.tree.function.name}' uses {len(base.parts)} parts of the workspace")
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


def ranges_of(
    name: str, parts: Parts, limit: int, tensors: Sequence[Tensor], calls: Calls, words: Iterable[str]
) -> list[Range]:
    """Return the memory of an operator as arguments: one for each part of the workspace, and for each allocation.

    `words` are those of its code.

    Parts that overlap in TVM's plan and have a common phase are one argument, in which they keep their distance.
    Raises NotUnpackedError if a part contains a tensor that is live at the same time.
    """
    operator = calls.operators[name]
    phases = operator.phases()
    numbers = {
        id(part): n
        for n, role in enumerate(operator.roles)
        for part in operator.bases[n].parts.values()
        if role == "workspace"
    }
    if len(set(numbers.values())) > 1:
        raise NotUnpackedError(f"'{name}' has several parameters for the workspace")
    taken = set(words)
    steps = [number for number, call in enumerate(calls.calls) if call.function == name]
    ranges: list[tuple[int, int, int, list[Base]]] = []
    """Parameter, start, end, parts."""
    for offset, size, part in parts:
        ends = [limit]
        for tensor in tensors:
            for step in steps:
                if tensor.offset is not None and tensor.offset >= offset and apart(tensor, part, step, calls):
                    ends.append(tensor.offset)
        end = offset + size if size is not None else min(ends)
        if end > min(ends) or end > limit:
            raise NotUnpackedError(f"'{name}' uses the workspace at {offset} to {end}, beyond its own memory")
        joined = (numbers[id(part)], offset, end, [part])
        while other := next((r for r in ranges if _belongs(r, joined, phases)), None):
            ranges.remove(other)
            start, end = min(other[1], joined[1]), max(other[2], joined[2])
            joined = (joined[0], start, end, [*other[3], *joined[3]])
        ranges.append(joined)
    found = []
    for parameter, start, end, members in sorted(ranges, key=lambda r: (r[0], r[1], r[2])):
        label = next((part.label for part in members if part.label), "scratch").removesuffix("_let")
        hull = _hull(members, phases) if phases else None
        inside = {id(part) for part in members}
        offsets = frozenset(at for at, part in operator.bases[parameter].parts.items() if id(part) in inside)
        found.append(Range(parameter, free_name(label, taken), max(end - start, 1), start, offsets, hull))
    for one in operator.allocations:
        label, span = free_name(one.base.name.removesuffix("_let"), taken), phases.get(id(one.base))
        found.append(Range(None, label, one.size, one.offset, frozenset(), span))
    return found


def _belongs(
    one: tuple[int, int, int, list[Base]], other: tuple[int, int, int, list[Base]], phases: Mapping[int, Phases]
) -> bool:
    """Return whether two ranges overlap in memory and in phases."""
    if one[1] == one[2] or other[1] == other[2]:  # memory that the operator does not access
        return max(one[1], other[1]) <= min(one[2], other[2])
    if max(one[1], other[1]) >= min(one[2], other[2]):
        return False
    spans = _hull(one[3], phases), _hull(other[3], phases)
    return spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]


def _hull(parts: Sequence[Base], phases: Mapping[int, Phases]) -> Phases:
    used = [part for part in parts if part.phases is not None]
    spans = [phases.get(id(part), (0, LAST_PHASE)) for part in used or parts]
    return min(first for first, _ in spans), max(last for _, last in spans)


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

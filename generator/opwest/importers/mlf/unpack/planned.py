# SPDX-License-Identifier: Apache-2.0
"""The plan of the unpacked memory, never larger than TVM's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from opwest.importers.mlf.unpack.syntax import NotUnpackedError
from opwest.importers.mlf.unpack.tensors import Tensor
from opwest.importers.mlf.workspace import ALIGN
from opwest.model.conventions import UNPACKED, WorkspaceNeed
from opwest.model.dtypes import DTYPES
from opwest.packing.planner import Planner
from opwest.packing.problem import Block, Share
from opwest.packing.verify import verify
from opwest.plan.memory import plan_blocks
from opwest.records import dataclass

_PLANNERS: tuple[Planner, ...] = ("greedy", "search")


@dataclass(frozen=True)
class Planned:
    """The size of opwest's plan, bytes, and the planner that found it."""

    size: int
    planner: Planner


def common_alignment(offsets: Iterable[int]) -> int:
    """Return the alignment that TVM's plan gives to all memory, at most that of its pools."""
    return gcd(ALIGN, *offsets)


def alignment_of(tensor: Tensor, align: int) -> int:
    """Return the alignment of a tensor: that of TVM's plan, at most the largest access that fits into the tensor."""
    assert tensor.size is not None
    return max(limited(align if tensor.offset is not None else ALIGN, tensor.size), DTYPES[tensor.dtype].size)


def limited(align: int, size: int) -> int:
    """Return an alignment, at most the largest power of two in a size: no larger access fits."""
    return min(align, 1 << (max(size, 1).bit_length() - 1))


def shared_by_tvm(tensors: Sequence[Tensor]) -> list[Share]:
    """Return the results that TVM's plan places over an argument: the code of their operators is correct in place."""
    found: list[Share] = []
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
                and not any(taken.name == s.taken or taker.name == s.taker for s in found)
            ):
                found.append(Share(taken.name, taker.name, taker.first))
    return sorted(found, key=lambda share: share.step)


def plan(
    tensors: Sequence[Tensor], own: Sequence[tuple[int, int]], align: int, before: int, shares: Sequence[Share]
) -> Planned:
    """Return the plan. Raises NotUnpackedError if it is larger than TVM's plan of `before` bytes.

    `own` has, for each step, the bytes of its operator in the workspace and from TVMBackendAllocWorkspace.
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
        found = plan_blocks(blocks, shares, planner)
        verify(blocks, found.offsets, found.size, shares)
        if found.size <= before:
            return Planned(found.size, planner)
        smallest = min(found.size, smallest or found.size)
    raise NotUnpackedError(f"its steps need {smallest} bytes of memory, TVM's plan {before}")


def _block(name: str, size: int, align: int, first: int, last: int) -> Block:
    return Block(name, size + -size % align, align, first, last)

# SPDX-License-Identifier: Apache-2.0
"""The tensors that steps use: their lifetimes, and the results that may reuse the memory of an argument.

The plan of a model and the estimate of the workspace during the selection of kernels have these rules in common.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.plan.problem import LAST_PHASE, Share


@dataclass(frozen=True, slots=True)
class Use:
    """A tensor of the workspace as an argument of a step."""

    tensor: str
    argument: str
    direction: str
    """in, out or inout."""
    in_place: Collection[str]
    """The arguments of the step whose memory this one may reuse."""
    is_view: bool
    """The argument is a part of the tensor."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The lifetime of a tensor: from the start of step `first` to the end of step `last` with the following waits.

    It begins with phase `begin` of the first step, and ends with phase `end` of the last one.
    """

    first: int
    last: int
    begin: int = 0
    end: int = LAST_PHASE


Phases = tuple[int, int]
"""The first and the last phase of an operator in which it accesses an argument."""


def lifetimes(
    steps: Sequence[Mapping[str, Phases | None] | Collection[str]],
    ends: Sequence[int],
    roles: Mapping[str, str],
    copied: Collection[str],
) -> dict[str, Lifetime]:
    """Return the lifetime of every tensor.

    steps: the tensors that each step uses, with the phases of its operator if they are known. ends: the step in which
    each step has ended, later than itself if a device runs it. roles: by tensor. copied: the tensors that a run copies
    to states at its end.
    """
    last = max(len(steps) - 1, 0)
    lives: dict[str, Lifetime] = {}
    for index, tensors in enumerate(steps):
        for tensor in tensors:
            phases = tensors[tensor] if isinstance(tensors, Mapping) and ends[index] == index else None
            begin, end = phases or (0, LAST_PHASE)
            known = lives.get(tensor, Lifetime(index, 0, begin, 0))
            until = max((known.last, known.end), (ends[index], end))
            lives[tensor] = Lifetime(known.first, until[0], known.begin, until[1])
    for tensor, role in roles.items():
        life = lives.setdefault(tensor, Lifetime(0, last))  # unused, or of an unresolved step
        # The caller writes an input before the run; constants and states last until the next run.
        first, begin = (0, 0) if role in ("input", "constant", "state") else (life.first, life.begin)
        is_kept = role in ("output", "constant", "state") or tensor in copied  # read after the last step
        lives[tensor] = Lifetime(first, *((last, begin, LAST_PHASE) if is_kept else (life.last, begin, life.end)))
    return lives


def allowed_shares(
    steps: Sequence[Sequence[Use]],
    roles: Mapping[str, str],
    copied: Collection[str],
    has_ended: Callable[[int, int], bool] = lambda earlier, step: True,
) -> tuple[Share, ...]:
    """Return the allowed sharing; each tensor gives and takes memory at most once.

    has_ended: whether the earlier one of two steps has ended when the other one begins.
    """
    touched: dict[str, list[int]] = {}
    for index, uses in enumerate(steps):
        for use in uses:
            touched.setdefault(use.tensor, []).append(index)
    passing = {tensor for tensor, role in roles.items() if role in ("intermediate", "input")}.difference(copied)
    shares: dict[str, Share] = {}
    takers = {tensor for tensor, role in roles.items() if role == "state"}
    for index, uses in enumerate(steps):
        for share in _declared(index, uses):
            if share.taken not in passing or share.taken in shares or share.taker in takers:
                continue
            ended = all(has_ended(earlier, index) for earlier in touched[share.taken])
            if ended and touched[share.taker][0] == index == touched[share.taken][-1]:
                shares[share.taken] = share
                takers.add(share.taker)
    return tuple(shares.values())


def _declared(index: int, uses: Sequence[Use]) -> Iterator[Share]:
    """Yield the sharing that the operator of a step allows.

    `in_place` must list all arguments with the tensor; it does not permit views, which begin at other addresses.
    """
    for result in uses:
        for taken in uses:
            if taken.argument not in result.in_place or (result.direction, taken.direction) != ("out", "in"):
                continue
            same = [use for use in uses if use.tensor == taken.tensor]
            named = all(use.argument in result.in_place and not use.is_view for use in same)
            if named and not result.is_view and result.tensor != taken.tensor:
                yield Share(taken.tensor, result.tensor, index)

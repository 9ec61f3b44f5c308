# SPDX-License-Identifier: Apache-2.0
"""The memory that steps access, by tensor and range of bytes, and conflicts between accesses."""

from __future__ import annotations

from collections import deque

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.model import Step
from opwest.plan.problem import round_up

Ranges = dict[str, list[tuple[int, int]]]
"""Ranges of bytes by tensor, each from its first byte up to its end."""
_END = 1 << 62
"""Whole tensors have no end: two accesses without views conflict by name."""


@dataclass(frozen=True, slots=True)
class Access:
    """The memory that a step accesses, without read-only tensors: constants and inputs of the caller."""

    reads: Ranges
    writes: Ranges
    values: Ranges
    """What the processor reads to pass it by value: at the call, also for a step of a device."""


def access_of(step: Step, line: int) -> Access:
    """Return the accesses of a step. Those through views extend to whole units of `line` bytes.

    Cache maintenance works on lines: a device must not write one part of a line while another agent uses the rest.
    """
    access = Access({}, {}, {})
    for argument, binding in zip(step.operator.args, step.bindings, strict=True):
        if binding.role not in ("buffer", "output"):
            continue
        extent = (0, _END)
        if binding.view is not None:
            end = binding.offset + argument.type.size
            extent = (binding.offset // line * line, round_up(end, line))
        if argument.scalar:
            access.values.setdefault(binding.name, []).append(extent)
        elif argument.direction != "out":
            access.reads.setdefault(binding.name, []).append(extent)
        if argument.direction != "in":
            access.writes.setdefault(binding.name, []).append(extent)
    return access


def _overlap(first: Ranges, second: Ranges) -> bool:
    return any(
        low < end and begin < high
        for name in first.keys() & second.keys()
        for low, high in first[name]
        for begin, end in second[name]
    )


def conflict(first: Access, second: Access) -> bool:
    """Whether the order of two accesses matters: one writes what the other one reads or writes."""
    return (
        _overlap(first.reads, second.writes)
        or _overlap(first.values, second.writes)
        or _overlap(first.writes, second.reads)
        or _overlap(first.writes, second.values)
        or _overlap(first.writes, second.writes)
    )


def passes(second: Access, first: Access) -> bool:
    """Whether the processor passes a value in the second access that the first one writes."""
    return _overlap(second.values, first.writes)


class Pending:
    """The steps launched on a device and not waited for."""

    def __init__(self) -> None:
        self._launched: deque[tuple[int, Access]] = deque()
        self._all = Access({}, {}, {})
        """The accesses of all launched steps, in their order; values have been passed."""

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self._launched)

    @property
    def first(self) -> int:
        """The index of the first step."""
        return self._launched[0][0]

    def add(self, access: Access, index: int) -> None:
        """Add a launched step."""
        self._launched.append((index, access))
        for ranges, added in ((self._all.reads, access.reads), (self._all.writes, access.writes)):
            for name, listed in added.items():
                ranges.setdefault(name, []).extend(listed)

    def complete(self, count: int) -> tuple[int, ...]:
        """Remove the first `count` steps, and return their indexes."""
        done = [self._launched.popleft() for _ in range(count)]
        for _, access in done:
            for ranges, ended in ((self._all.reads, access.reads), (self._all.writes, access.writes)):
                for name, listed in ended.items():
                    del ranges[name][: len(listed)]  # the first ranges are those of the first steps
        return tuple(index for index, _ in done)

    def conflicts(self, access: Access) -> bool:
        """Whether another agent must wait before it makes an access."""
        return conflict(access, self._all)

    def after_writers(self, access: Access) -> int:
        """Return the number of steps after the last one that writes what the processor passes by value."""
        if not passes(access, self._all):
            return len(self._launched)
        later = 0
        while not passes(access, self._launched[-1 - later][1]):
            later += 1
        return later


class Accessed:
    """The earlier accesses that later steps depend on."""

    def __init__(self) -> None:
        self._earlier: dict[str, list[tuple[int, int, int, bool]]] = {}
        """By tensor: step, first byte, end, whether it writes."""

    def add(self, access: Access, index: int) -> set[int]:
        """Add the accesses of step `index`, and return the earlier steps that must precede it."""
        accesses = [
            (name, begin, end, writes)
            for ranges, writes in ((access.reads, False), (access.values, False), (access.writes, True))
            for name, listed in ranges.items()
            for begin, end in listed
        ]
        steps = {
            step
            for name, begin, end, writes in accesses
            for step, low, high, wrote in self._earlier.get(name, [])
            if low < end and begin < high and (writes or wrote)
        }
        for name, begin, end, writes in accesses:
            known = self._earlier.setdefault(name, [])
            if writes:  # later steps depend on this one instead
                known[:] = [earlier for earlier in known if not (begin <= earlier[1] and earlier[2] <= end)]
            known.append((index, begin, end, writes))
        return steps

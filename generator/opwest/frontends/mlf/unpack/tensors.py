# SPDX-License-Identifier: Apache-2.0
"""Main's memory as tensors: the uses of each variable, their directions, sizes and lifetimes.

A variable that a step overwrites completely, without reading it, begins a new tensor. A size that the code does not
show is bounded by TVM's plan: a tensor cannot reach the next one that is live at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.unpack.functions import NotUnpackedError
from opwest.frontends.mlf.unpack.main_body import Call, Location
from opwest.frontends.mlf.unpack.memory import Base, Budget, Extent, Operator, extent_of, surely_written
from opwest.model.types.dtypes import DTYPES, resolve_dtype
from opwest.plan.problem import LAST_PHASE
from opwest.plan.uses import Phases


@dataclass(frozen=True)
class TensorUse:
    """Parameter `parameter` of the call `step`."""

    step: int
    parameter: int


@dataclass
class Tensor:
    """An input, an output, a constant, or a variable of main: one of its contents in turn.

    `offset` is that of TVM's plan; None: no fixed place.
    """

    name: str
    kind: Literal["input", "output", "constant", "own"]
    uses: list[TensorUse]
    limit: int
    """The largest possible size, bytes."""
    offset: int | None = None
    size: int | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """The shape of an input, an output or a constant."""
    directions: dict[TensorUse, str] = field(default_factory=dict)
    content: bytes = b""
    """The bytes of a constant."""
    stack: int | None = None
    """The offset in main's stack of allocations."""

    @property
    def first(self) -> int:
        """The first step that uses the tensor."""
        return self.uses[0].step

    @property
    def last(self) -> int:
        """The last step that uses the tensor."""
        return self.uses[-1].step


class Calls:
    """The calls of main with the accesses of their operators."""

    def __init__(self, calls: Sequence[Call], operators: Mapping[str, Operator], budget: Budget) -> None:
        self.calls = calls
        self.operators = operators
        self._extent = cache(lambda function, number: extent_of(operators[function].bases[number], budget))
        self._phases = cache(lambda function: operators[function].phases())
        self._written = cache(lambda function, number: surely_written(operators[function].bases[number], budget))

    def extent(self, use: TensorUse) -> Extent:
        """Return the bytes that a call accesses through a parameter."""
        return self._extent(self.calls[use.step].function, use.parameter)

    def written(self, use: TensorUse) -> int:
        """Return the bytes from the start that a call certainly writes."""
        return self._written(self.calls[use.step].function, use.parameter)

    def ctype(self, use: TensorUse) -> str | None:
        """Return the element type of a parameter in C; None for void."""
        return self.operators[self.calls[use.step].function].tree.function.parameters[use.parameter].dtype

    def span(self, tensor: Tensor, step: int) -> Phases | None:
        """Return the phases of a step from the first access to a tensor to the last one; None: all.

        Results last until the end of the step.
        """
        uses = [use for use in tensor.uses if use.step == step]
        known = {use: span for use in uses if (span := self.phases(use)) is not None}
        if not known or len(known) < len(uses):
            return None
        ends = [span[1] if tensor.directions[use] == "in" else LAST_PHASE for use, span in known.items()]
        return min(first for first, _ in known.values()), max(ends)

    def phases(self, use: TensorUse) -> Phases | None:
        """Return the phases of an operator in which it accesses a parameter; None: all."""
        operator = self.operators[self.calls[use.step].function]
        return self._phases(operator.tree.function.name).get(id(operator.bases[use.parameter]))

    def escapes(self, tensor: Tensor, step: int) -> set[int]:
        """Return the numbers of the calls inside the operator of a step that receive a tensor."""
        return {number for use in tensor.uses if use.step == step for number in self.extent(use).escapes}

    def last_tensor(self, use: TensorUse) -> bool:
        """Return whether a parameter is the last tensor of its operator."""
        listed = self.operators[self.calls[use.step].function].roles
        return use.parameter == max(n for n, role in enumerate(listed) if role == "tensor")


def memory_of(calls: Sequence[Call]) -> dict[Location, list[TensorUse]]:
    """Return what main passes as tensors, with the uses in order."""
    uses: dict[Location, list[TensorUse]] = {}
    for step, call in enumerate(calls):
        for parameter, place in enumerate(call.args):
            if place.kind not in ("pool", "device"):
                uses.setdefault(place, []).append(TensorUse(step, parameter))
    return uses


def split(place: Location, uses: Sequence[TensorUse], calls: Calls, limit: int, stack: int | None) -> list[Tensor]:
    """Return the tensors that a variable contains, one after the other; `stack` is its offset in the allocations."""
    parts: list[list[TensorUse]] = [[]]
    needed = 0
    for use in reversed(uses):
        extent = calls.extent(use)
        alone = sum(u.step == use.step for u in uses) == 1
        own = extent.size if extent.size is not None else limit
        parts[-1].insert(0, use)
        needed = max(needed, own)
        overwrites = alone and extent.size is not None and extent.writes and not extent.reads and not extent.escapes
        if use != uses[0] and overwrites and calls.written(use) >= needed:
            parts.append([])
            needed = 0
    parts.reverse()
    offset = place.offset if place.kind == "workspace" else None
    name = place.name.removesuffix("_let")
    names = [name] if len(parts) == 1 else [f"{name}_{number}" for number in range(1, len(parts) + 1)]
    return [Tensor(n, "own", part, limit, offset, stack=stack) for n, part in zip(names, parts, strict=True)]


def give_directions(tensors: Iterable[Tensor], calls: Calls) -> None:
    """Set the directions of all uses. Raises NotUnpackedError if a step reads a tensor before one writes it."""
    for tensor in tensors:
        written = tensor.kind in ("input", "constant")
        sizes = [calls.extent(use).size for use in tensor.uses]
        size = max(tensor.limit if known is None else known for known in sizes)
        for use in tensor.uses:
            direction = _direction(use, calls, size, fresh=not written)
            if direction is None:
                raise NotUnpackedError(f"step {use.step} reads '{tensor.name}' before a step writes it")
            if direction != "in" and tensor.kind in ("input", "constant"):
                raise NotUnpackedError(f"step {use.step} writes the {tensor.kind} '{tensor.name}'")
            tensor.directions[use] = direction
            written = True
        counts = Counter(use.step for use in tensor.uses)
        if any(counts[use.step] > 1 and direction != "in" for use, direction in tensor.directions.items()):
            raise NotUnpackedError(f"'{tensor.name}' is passed more than once to a step that writes it")
        if tensor.kind == "own" and set(tensor.directions.values()) == {"out"}:
            raise NotUnpackedError(f"no step reads '{tensor.name}': another variable can refer to its memory")


def _direction(use: TensorUse, calls: Calls, size: int, *, fresh: bool) -> str | None:
    """Return the direction of a use; None if it cannot be the first one of its tensor of at most `size` bytes."""
    extent = calls.extent(use)
    if extent.escapes:  # unknown code: by TVM's convention, the last tensor is the result
        if calls.last_tensor(use):
            return "inout" if extent.reads and not fresh else "out"
        if fresh:
            return "out" if extent.writes else None
        return "inout" if extent.writes else "in"
    if fresh:
        return "out" if extent.writes and not extent.reads_first else None
    if not extent.writes:
        return "in"
    return "out" if calls.written(use) >= size and not extent.reads else "inout"


def give_types(tensors: Iterable[Tensor], calls: Calls) -> None:
    """Set element types and sizes from the code where it shows them. Raises NotUnpackedError if it contradicts."""
    for tensor in tensors:
        types = {t for use in tensor.uses if (t := calls.ctype(use)) is not None}
        if tensor.dtype:  # an input, an output or a constant
            types = {resolve_dtype(t, tensor.dtype) for t in types} | {tensor.dtype}
        if len(types) > 1:
            raise NotUnpackedError(f"'{tensor.name}' has the element types {', '.join(sorted(types))}")
        tensor.dtype = types.pop() if types else "uint8"
        sizes = [calls.extent(use).size for use in tensor.uses]
        known = [s for s in sizes if s is not None]
        if known and max(known) > tensor.limit:
            raise NotUnpackedError(f"'{tensor.name}' has {tensor.limit} bytes, but an operator uses {max(known)}")
        if tensor.kind != "own":
            tensor.size = tensor.limit
        elif len(known) == len(sizes):
            tensor.size = max(known)
        elif tensor.offset is None:
            tensor.size = tensor.limit
        if tensor.size is not None:
            _round_size(tensor)


def _round_size(tensor: Tensor) -> None:
    """Reduce a size to whole elements: an operator accesses no others."""
    assert tensor.size is not None
    tensor.size -= tensor.size % DTYPES[tensor.dtype].size
    if tensor.size <= 0:
        raise NotUnpackedError(f"'{tensor.name}' has less than one element of {tensor.dtype}")


def check_first_writes(tensors: Iterable[Tensor], calls: Calls) -> None:
    """Check that steps read no bytes of a tensor that its first step does not write.

    TVM's plan gives the memory to other tensors before, and to the same one in the call before. Reads at offsets
    that are computed from data are not checked: in C they must be inside the tensor too. Raises NotUnpackedError.
    """
    for tensor in tensors:
        use = tensor.uses[0]
        if calls.extent(use).escapes:
            continue
        read = max(calls.extent(u).read or 0 for u in tensor.uses)
        written = calls.written(use)
        if read > written:
            text = f"step {use.step} writes {written} bytes of '{tensor.name}', but steps read {read} bytes"
            raise NotUnpackedError(text)


Parts = Sequence[tuple[int, "int | None", Base]]
"""Offsets, sizes (None: unknown) and bases of an operator's own memory in the workspace."""


def bound_by_plan(tensors: Sequence[Tensor], calls: Calls, scratch: Mapping[int, Parts]) -> None:
    """Bound unknown sizes by TVM's plan, and check that tensors that are live together are separate in it.

    `scratch` has the memory of each step's operator in the workspace.
    """
    placed = [t for t in tensors if t.offset is not None]
    for tensor in placed:
        assert tensor.offset is not None
        ends = [tensor.limit]
        for other in placed:
            if other is tensor or not _separate(tensor, other, calls):
                continue
            assert other.offset is not None
            if other.offset == tensor.offset:
                raise NotUnpackedError(f"'{tensor.name}' and '{other.name}' share memory while both are live")
            if other.offset > tensor.offset:
                ends.append(other.offset - tensor.offset)
        for step, parts in scratch.items():
            ends += [o - tensor.offset for o, _, p in parts if o > tensor.offset and apart(tensor, p, step, calls)]
        if tensor.size is None:
            tensor.size = min(ends)
            _round_size(tensor)
        elif tensor.size > min(ends):
            raise NotUnpackedError(f"'{tensor.name}' overlaps other memory that is live at the same time")
        for step, parts in scratch.items():
            for offset, size, part in parts:
                if apart(tensor, part, step, calls) and offset <= tensor.offset < offset + (size or 1):
                    raise NotUnpackedError(f"the operator of step {step} uses the memory of '{tensor.name}'")


def _separate(tensor: Tensor, other: Tensor, calls: Calls) -> bool:
    """Return whether TVM's plan must keep two tensors apart.

    Inside an operator, a result can be placed over an argument that has been read before.
    """
    if tensor.first < other.last and other.first < tensor.last:  # both contain values between two steps
        return True
    common = {u.step for u in tensor.uses} & {u.step for u in other.uses}
    # A call inside an operator receives both tensors.
    return any(calls.escapes(tensor, step) & calls.escapes(other, step) for step in common)


def apart(tensor: Tensor, part: Base, step: int, calls: Calls) -> bool:
    """Return whether a tensor and an operator's own memory are in use at the same time."""
    return tensor.first < step < tensor.last or bool(calls.escapes(tensor, step) & (part.escapes | part.lent))

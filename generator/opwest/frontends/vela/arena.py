# SPDX-License-Identifier: Apache-2.0
"""The tensors that are views of the arena, at the offsets that Vela planned.

Vela's plan is right for its own order of operators, with a place for each tensor. opwest's operators for the processor
can use a tensor longer, as one operator that was two, or through a view. So the steps are followed byte by byte: each
one must read what was written for it. A tensor that cannot keep its content there gets memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.compiler.graph.types import Tensor
from opwest.compiler.graph.user import UserOperator
from opwest.compiler.ir.operations import Copy, UserCall
from opwest.compiler.ir.program import Operation, Program, Value, extent_of
from opwest.compiler.output.emit import Emitted, Step
from opwest.frontends.vela.file import Call, Meaning, VelaFile
from opwest.frontends.vela.request import ARENA, FAST, POOLS, SRAM_ONLY, WEIGHTS, Options
from opwest.manifest import writer


def with_copies(program: Program, calls: Mapping[UserOperator, Call]) -> None:
    """Change a program: every input and output of the NPU is a value of its tensor, and no view."""
    operations: list[Operation] = []
    for operation in program.operations:
        if isinstance(operation, UserCall) and operation.operator in calls:
            operations += _bordered(program, operation, calls[operation.operator])
        else:
            operations.append(operation)
    program.operations[:] = operations


def _bordered(program: Program, call: UserCall, of: Call) -> Iterator[Operation]:
    replaced: dict[Value, Value] = {}
    for value, tensor in zip(call.inputs, of.inputs, strict=True):
        if value.root is not None or program.tensors.get(value) is not tensor:
            replaced[value] = _own(program, value, tensor)
            yield Copy(f"{call.label.split(' ', 1)[0]} (copy to the NPU's input)", (value,), (replaced[value],))
    copies = []
    for value, tensor in zip(call.results, of.outputs, strict=True):
        if value.root is not None or program.tensors.get(value) is not tensor:
            replaced[value] = _own(program, value, tensor)
            label = f"{call.label.split(' ', 1)[0]} (copy of the NPU's output)"
            copies.append(Copy(label, (replaced[value],), (value,)))
    inputs, results = (tuple(replaced.get(v, v) for v in values) for values in (call.inputs, call.results))
    tensors = tuple((argument, replaced.get(value, value)) for argument, value in call.tensors)
    yield replace(call, inputs=inputs, results=results, tensors=tensors)
    yield from copies


def _own(program: Program, value: Value, tensor: Tensor) -> Value:
    """Return a value with the place of a tensor."""
    for other in [key for key, placed in program.tensors.items() if placed is tensor]:
        del program.tensors[other]
    own = Value(tensor.name, "intermediate", value.dtype, value.shape, value.quantization)
    program.tensors[own] = tensor
    return own


DEVICE = "npu0"
_LINE = 32
"""Bytes of a cache line of the processors with such NPUs, Cortex-M55 and M85."""
Regions = Mapping[str, Mapping[str, str]]
"""By pool and board: the node label of a memory region."""


def regions_of(options: Options, has_fast: bool) -> Regions:
    """Return the values of --pool. Raises OpwestError with all faults."""
    faults = Diagnostics()
    regions: dict[str, dict[str, str]] = {}
    known = [name for name in POOLS if name != FAST or has_fast]
    for text in options.pools:
        pool, _, rest = text.partition("=")
        board, _, node = rest.rpartition(":")
        if not (pool and board and node):
            faults.error(f"invalid --pool {text!r}", expected=f"NAME=BOARD:NODELABEL, NAME one of {', '.join(known)}")
        elif pool not in known:
            faults.error(f"--pool {text}: the model has no memory '{pool}'", expected=" or ".join(known))
        else:
            regions.setdefault(pool, {})[board] = node
    faults.raise_if_errors()
    return regions


@dataclass(frozen=True, eq=False)
class NpuMemory:
    """The pools, and the constants in them."""

    regions: Regions
    has_fast: bool
    has_processor: bool
    """Whether operators run on the processor."""
    weights: Value | None
    """The weights; None: there are none."""
    weights_pool: str | None
    """The pool that the weights are copied to; None: they are read from flash."""

    @property
    def memory(self) -> Iterator[str]:
        """Yield the section `memory` of the manifest."""
        yield "memory:"
        if self.has_processor:
            yield "  # Tensors of the operators on the processor."
            yield "  sram: {reachable_by: [cpu]}"
        pools = [ARENA, *([FAST] if self.has_fast else []), *([WEIGHTS] if self.weights_pool == WEIGHTS else [])]
        for name in pools:
            yield f"  # {_COMMENTS[name]}"
            given = {writer.scalar(b): writer.flow_map({"nodelabel": n}) for b, n in self.regions.get(name, {}).items()}
            keys = {
                "reachable_by": writer.flow_list(["cpu", DEVICE]),
                "cache_line": str(_LINE),
                "boards": writer.flow_map(given) if given else None,
            }
            yield f"  {name}: {writer.flow_map(keys)}"

    def pools_of(self, emitted: Emitted) -> Mapping[Value, str]:
        """Return the pools of constants."""
        return {} if self.weights is None or self.weights_pool is None else {self.weights: self.weights_pool}


_COMMENTS = {
    ARENA: "Vela's scratch memory, with inputs and outputs: the NPU must reach it.",
    FAST: "Vela's fast scratch memory.",
    WEIGHTS: "A copy of the weights.",
}


def weights_pool(options: Options, regions: Regions) -> str | None:
    """Return the pool of the weights: that of --pool, else the arena's in the mode Sram_Only."""
    if WEIGHTS in regions:
        return WEIGHTS
    return ARENA if options.memory_mode == SRAM_ONLY else None


def boards_of(options: Options) -> Sequence[str]:
    """Return the boards of the manifest: those of --board, then those of --pool."""
    named = [text.partition("=")[2].rpartition(":")[0] for text in options.pools]
    return list(dict.fromkeys([*options.boards, *named]))


_NOTHING, _NPU = -1, -2
"""The owners of bytes that nothing has written, or the NPU for itself."""


_Clash = tuple[Value, Value | None]
"""The tensor that a step needs, and the tensor whose content it finds; None: data of the NPU."""


def places_in_arena(
    program: Program, steps: Sequence[Sequence[Step]], file: VelaFile, meaning: Meaning, place: str
) -> Mapping[Value, int]:
    """Return the offsets in the arena, bytes, that are right for all sequences of steps. Raises OpwestError."""
    places = dict(_planned(program, file))
    fixed = {
        value for sequence in steps for step in sequence if step.function.user in file.calls for value in step.arguments
    }
    unplaced = [value.name for value in fixed if value not in places]
    if unplaced:
        raise fault(f"tensor '{unplaced[0]}' of the NPU has no place in the arena", place)
    while True:
        clashes = (clash for sequence in steps for clash in _clashes(sequence, places, program, file, meaning))
        clash = next(clashes, None)
        if clash is None:
            return places
        movable = [value for value in clash if value in places and value not in fixed]
        if not movable:
            needed, other = clash
            content = f"'{other.name}'" if other is not None else "data of the NPU"
            text = f"the memory that Vela planned for tensor '{needed.name}' has {content} when it is read"
            expected = "tensors that keep their memory until they are read"
            raise fault(text, place, expected, "leave fewer operators on the processor")
        del places[movable[0]]


def _planned(program: Program, file: VelaFile) -> Iterator[tuple[Value, int]]:
    """Yield the values that have a place in Vela's plan, each tensor once."""
    taken: set[Tensor] = set()
    for value in (*program.inputs, *program.outputs, *program.tensors):
        tensor = program.tensors.get(value)
        if tensor is None or tensor in taken or value.root is not None or tensor not in file.offsets:
            continue
        offset = file.offsets[tensor]
        is_inside = offset >= 0 and offset + _bytes(value) <= file.memory.arena
        is_aligned = offset % np.dtype(value.dtype).itemsize == 0
        if value.role in ("input", "output", "intermediate") and is_inside and is_aligned:
            taken.add(tensor)
            yield value, offset


def _bytes(value: Value) -> int:
    return extent_of(value) * np.dtype(value.dtype).itemsize


def _extent(value: Value, places: Mapping[Value, int]) -> tuple[Value, int, int] | None:
    """Return the value with the memory, and the bytes of the arena that a value has; None outside of the arena."""
    begin, base = 0, value
    while base.root is not None:
        begin += base.offset * np.dtype(base.root.dtype).itemsize
        base = base.root
    if base not in places:
        return None
    begin += places[base]
    return base, begin, begin + _bytes(value)


class _Owners:
    """The numbers of the values that the bytes of the arena belong to, one number between two borders."""

    def __init__(self, size: int, borders: Iterable[int]) -> None:
        self._size = size
        self._borders = np.unique(np.clip(np.array([0, size, *borders], np.int64), 0, size))
        self._numbers = np.full(len(self._borders), _NOTHING, np.int64)

    def _span(self, begin: int, end: int) -> slice:
        low, high = np.searchsorted(self._borders, np.clip((begin, end), 0, self._size))
        return slice(int(low), int(high))

    def set(self, begin: int, end: int, number: int) -> None:
        self._numbers[self._span(begin, end)] = number

    def other_than(self, number: int, begin: int, end: int) -> int | None:
        """Return the first other number in a range, None without one."""
        numbers = self._numbers[self._span(begin, end)]
        wrong = numbers[numbers != number]
        return int(wrong[0]) if wrong.size else None


def _clashes(
    steps: Sequence[Step], places: Mapping[Value, int], program: Program, file: VelaFile, meaning: Meaning
) -> Iterator[_Clash]:
    """Yield the steps that find other content than they need."""
    numbers = {value: number for number, value in enumerate(places)}
    values = list(places)
    used = {*program.inputs, *program.outputs, *(argument for step in steps for argument in step.arguments)}
    extents = {value: extent for value in used if (extent := _extent(value, places)) is not None}
    borders = [border for _, begin, end in extents.values() for border in (begin, end)]
    borders += [border for writes in meaning.writes.values() for border in chain(*(writes or ()))]
    owners = _Owners(file.memory.arena, borders)

    def check(value: Value) -> Iterator[_Clash]:
        if value in extents:
            base, begin, end = extents[value]
            other = owners.other_than(numbers[base], begin, end)
            if other is not None:
                yield base, values[other] if other >= 0 else None

    def write(value: Value) -> None:
        if value in extents:
            base, begin, end = extents[value]
            owners.set(begin, end, numbers[base])

    for value in program.inputs:
        write(value)
    for value in program.inputs:
        yield from check(value)
    for step in steps:
        given = [parameter for parameter in step.function.parameters if parameter.direction != "scratch"]
        pairs = list(zip(given, step.arguments, strict=True))
        for parameter, value in pairs:
            if parameter.direction != "out":
                yield from check(value)
        call = file.calls.get(step.function.user) if step.function.user is not None else None
        if call is not None:
            writes = meaning.writes[call]
            for begin, end in [(0, file.memory.arena)] if writes is None else writes:
                owners.set(begin, end, _NPU)
        for parameter, value in pairs:
            if parameter.direction != "in":
                write(value)
        if call is None:  # the functions of the processor need separate memory
            for parameter, value in pairs:
                if parameter.direction == "in":
                    yield from check(value)
    for value in program.outputs:
        yield from check(value)

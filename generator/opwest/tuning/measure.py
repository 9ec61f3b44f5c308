# SPDX-License-Identifier: Apache-2.0
"""Measure the candidates of layers in QEMU: many in one image, each compared with the portable variant."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.output.emit import emit_program
from opwest.compiler.output.variants import candidates
from opwest.compiler.processors import CORES
from opwest.compiler.selection.costs import key_of
from opwest.tuning.emulator import LIBRARY, CmsisNn, run, tools_of
from opwest.tuning.image import Candidate
from opwest.tuning.machines import MACHINES
from opwest.tuning.results import Measurements, Progress, Result, WrongResultError

MOST_BYTES = 8 << 20
"""The bytes of inputs, constants and outputs in an image."""
MOST_CANDIDATES = 150


@dataclass(frozen=True, eq=False)
class _Offer:
    operation: Operation
    variant: str
    program: Program

    @property
    def size(self) -> int:
        values = [*self.program.inputs, *self.program.outputs]
        weights = getattr(self.operation, "weights", np.zeros(0))
        return sum(one.size * np.dtype(one.dtype).itemsize for one in values) + 3 * weights.nbytes


def distinct(programs: Iterable[Program]) -> list[Operation]:
    """Return one operation of each geometry."""
    found: dict[str, Operation] = {}
    for program in programs:
        for operation in program.operations:
            found.setdefault(key_of(operation), operation)
    return list(found.values())


def measure(
    operations: Sequence[Operation],
    core: str,
    work: Path,
    progress: Progress = lambda _: None,
    library: CmsisNn | None = None,
) -> Measurements:
    """Run all candidates of operations; with `library`, also calls of CMSIS-NN. Raises MeasurementError."""
    found: list[Result] = []
    batches = list(_batches(operations, CORES[core], () if library is None else (LIBRARY,)))
    machine = MACHINES[core] if library is None else library.machine
    for number, batch in enumerate(batches):
        progress(f"image {number + 1} of {len(batches)}: {len(batch)} candidates")
        made = list(_candidates(batch))
        measured = run(made, machine, work / f"{core}_{number}")
        for offer, one in zip(batch, measured, strict=True):
            if one.wrong or one.guards:
                raise WrongResultError(offer.operation, offer.variant)
            found.append(Result(offer.operation, offer.variant, one.cycles, one.code))
    functions = {} if library is None else library.functions
    return Measurements(found, tools_of(MACHINES[core]), functions=functions)


def measure_in_qemu(
    operations: Sequence[Operation], progress: Progress, core: str, library: CmsisNn | None = None
) -> Measurements:
    """Run all candidates of operations, with intermediate files in a temporary directory. Raises MeasurementError."""
    with tempfile.TemporaryDirectory(prefix="opwest-tune-") as work:
        return measure(operations, core, Path(work), progress, library)


def _batches(operations: Sequence[Operation], processor: str, libraries: Sequence[str] = ()) -> Iterator[list[_Offer]]:
    """Yield the candidates of images: all of an operation in one, the portable one first."""
    batch: list[_Offer] = []
    for operation in operations:
        program = alone(operation)
        names = candidates(program.operations[0], processor, libraries)
        some = [_Offer(operation, name, program) for name in names]
        is_full = len(batch) + len(some) > MOST_CANDIDATES
        if batch and (is_full or sum(one.size for one in (*batch, *some)) > MOST_BYTES):
            yield batch
            batch = []
        batch += some
    if batch:
        yield batch


def alone(operation: Operation) -> Program:
    """Return a program of one operation, whose data are inputs and whose results are outputs."""

    def fresh(value: Value, role: str) -> Value:
        return Value(role, role, value.dtype, value.shape, value.quantization)

    def part(value: Value) -> Value:
        """Return the first channels of an output whose other channels are not written."""
        whole = Value("output", "output", value.dtype, (*value.shape[:-1], value.pitch))
        return dataclasses.replace(value, name="part", root=whole, offset=0)

    inputs = tuple(one if one.role == "constant" else fresh(one, "input") for one in operation.inputs)
    results = tuple(part(one) if one.pitch else fresh(one, "output") for one in operation.results)
    program = Program()
    program.inputs = [one for one in inputs if one.role == "input"]
    program.outputs = [one.base for one in results]
    program.operations = [dataclasses.replace(operation, inputs=inputs, results=results)]
    return program


def _candidates(batch: Sequence[_Offer]) -> Iterator[Candidate]:
    first = 0
    for number, offer in enumerate(batch):
        is_reference = number == 0 or batch[number - 1].operation is not offer.operation
        first = number if is_reference else first
        emitted = emit_program(offer.program, "A candidate.", offer.variant, prefix=f"c{number}_")
        yield Candidate(offer.program, emitted, inputs_of(offer.program), None, None if is_reference else first)


def inputs_of(program: Program) -> list[Any]:
    """Return an array for each input of a program."""
    return [_data(one) for one in program.inputs]


def _data(value: Value) -> Any:
    """Return data as layers see it: values around the middle, some at the limits."""
    random = np.random.default_rng(1)
    if value.dtype == "float32":
        return random.standard_normal(value.shape).astype(np.float32)
    if value.dtype == "bool":
        return random.integers(0, 2, value.shape).astype(bool)
    limits = np.iinfo(value.dtype)
    spread = min(float(limits.max), 32767.0) / 2.5
    return np.clip(np.rint(random.normal(0, spread, value.shape)), limits.min, limits.max).astype(value.dtype)

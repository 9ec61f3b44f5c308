# SPDX-License-Identifier: Apache-2.0
"""Prove an import: the manifest computes what the graph as it was read computes, for a few inputs.

The rules of programs are checked first (`ir/verify.py`). Then the graph runs, and each planned implementation. The
arithmetic of kernels is not part of the proof: a step does what its operation does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.execution.run import Memory, run_program
from opwest.compiler.faults import REPORT, fault
from opwest.compiler.graph.types import Graph, Tensor
from opwest.compiler.ir.program import INVARIANTS, Operation, Program, Value
from opwest.compiler.ir.verify import Broken, verify
from opwest.compiler.lowering.simplify import Net, rewritten
from opwest.compiler.output.manifest import Implementation
from opwest.compiler.reference.run import Values, run_graph
from opwest.imports.proof.reference import Reference, Run, difference, equal, reference_of, runs_of
from opwest.imports.proof.replay import After, Contradiction, Machine
from opwest.project.request import Examination


@dataclass(frozen=True)
class Blame:
    """The stage that changes the results."""

    stage: str
    operator: str | None
    """The label of the first operator with another result; None: unknown."""
    reason: str


def blame(
    reference: Reference, implementation: Implementation, found: Examination, reason: str, *, is_optimised: bool
) -> Blame:
    """Return the first stage with other results than the graph as it was read."""
    program = implementation.program
    assert program is not None
    return (
        (_of_rewrites(reference) if is_optimised else None)
        or _of_programs(reference, program.history)
        or _of_placement(reference, implementation, found, reason)
    )


def _of_rewrites(reference: Reference) -> Blame | None:
    """Return the rewrite of the graph, and its operator."""
    net = Net(reference.graph)
    for name, node in rewritten(net):
        if not _is_equal_graph(reference, net.finish()):
            return Blame(f"the simplification '{name}'", node.label, "the results differ")
    return None


def _is_equal_graph(reference: Reference, graph: Graph) -> bool:
    try:
        runs = runs_of(graph, [run.inputs for run in reference.runs], reference.states)
    except (AssertionError, IndexError, KeyError, TypeError):
        return False
    return all(
        difference(wanted, run.outputs, run.states, reference.has_floats) is None
        for wanted, run in zip(reference.runs, runs, strict=True)
    )


def _of_programs(reference: Reference, programs: Sequence[Program]) -> Blame | None:
    """Return the lowering, or the pass, with the first operator whose results differ."""
    for program in programs:
        found = _wrong_program(reference, program)
        if found is not None:
            label, reason = found
            return Blame(f"the pass '{program.made_by}'", label or _changed(program), reason)
    return None


def _changed(program: Program) -> str | None:
    """Return the label of the first operation that a pass changed."""
    before = set() if program.source is None else {*program.source.operations}
    return next((operation.label for operation in program.operations if operation not in before), None)


def _wrong_program(reference: Reference, program: Program) -> tuple[str | None, str] | None:
    """Return the operator and the reason of a program with other results than the graph; None if there is none."""
    graph_state: Values = {}
    state: dict[Value, Any] = {}
    for run in reference.runs:
        wanted = _values(reference.graph, run, graph_state)
        label: list[str] = []
        try:
            outputs = run_program(program, run.inputs, state, _watched(program, wanted, label, reference.has_floats))
        except ValueError as error:
            if run.outputs is not None:
                return _last(label), str(error)
            graph_state, state = {}, {}
            continue
        except (AssertionError, IndexError, TypeError) as error:
            return _last(label), str(error) or type(error).__name__
        states = [state.get(value, value.content) for value in program.states]
        if difference(run, outputs, states, reference.has_floats) is not None:
            return _last(label), "the results differ"
    return None


def _last(labels: Sequence[str]) -> str | None:
    return labels[0] if labels else None


def _values(graph: Graph, run: Run, state: Values) -> Mapping[Tensor, Any]:
    """Return the arrays of all tensors of the graph; none where an operator returns an error code."""
    try:
        return run_graph(graph, run.inputs, state)
    except ValueError:
        return {}


def _watched(
    program: Program, wanted: Mapping[Tensor, Any], labels: list[str], has_floats: bool
) -> Callable[[Operation, Memory], None]:
    """Return a function that appends the label of each operation with another result than the graph."""

    def watch(operation: Operation, memory: Memory) -> None:
        for value in operation.results:
            tensor = program.tensors.get(value)
            if tensor is None or tensor not in wanted:
                continue
            array = wanted[tensor][..., program.channels[value]] if value in program.channels else wanted[tensor]
            if not equal(array, memory.part(value), has_floats):
                labels.append(operation.label)

    return watch


def _of_placement(reference: Reference, implementation: Implementation, found: Examination, reason: str) -> Blame:
    """Return the first step whose results differ from those of its operation in the program."""
    assert implementation.program is not None
    stage = "the placement in memory"
    try:
        machine = Machine(found.model, found.plan, implementation)
    except Contradiction as contradiction:
        label = None if contradiction.operation is None else contradiction.operation.label
        return Blame(stage, label, str(contradiction))
    state: dict[Value, Any] = {}
    for run in reference.runs:
        if run.outputs is None:
            machine.open()
            state = {}
            continue
        wanted = _results(implementation.program, run, state)
        labels: list[str] = []
        try:
            machine.run(run.inputs, _compared(wanted, labels))
        except (Contradiction, ValueError, AssertionError, IndexError) as error:
            return Blame(stage, _last(labels), str(error))
        if labels:
            return Blame(stage, labels[0], "it reads what another step wrote into the same memory")
    return Blame(stage, None, reason)


def _compared(wanted: Sequence[Sequence[Any]], labels: list[str]) -> After:
    """Return a function that appends the label of each step with other results."""

    def compare(number: int, operation: Operation, results: Sequence[Any]) -> None:
        if not all(map(np.array_equal, results, wanted[number])):
            labels.append(operation.label)

    return compare


def _results(program: Program, run: Run, state: dict[Value, Any]) -> list[list[Any]]:
    """Return the results of each operation."""
    found: list[list[Any]] = []

    def keep(operation: Operation, memory: Memory) -> None:
        found.append([memory.part(value).copy() for value in operation.results])

    run_program(program, run.inputs, state, keep)
    return found


def check_programs(implementations: Sequence[Implementation], place: str, *, optimised: bool) -> None:
    """Check the rules of the programs of all implementations, in the order of the passes. Raises OpwestError."""
    checked: set[Program] = set()
    for implementation in implementations:
        for program in [] if implementation.program is None else implementation.program.history:
            if program in checked:
                continue
            checked.add(program)
            try:
                verify(program)
            except Broken as reason:
                label = None if reason.operation is None else reason.operation.label
                raise _internal(
                    Blame(f"the pass '{program.made_by}'", label, reason.reason), place, optimised
                ) from None


def prove(
    graph: Graph,
    implementations: Sequence[Implementation],
    planned: Sequence[Examination],
    place: str,
    *,
    optimised: bool,
) -> None:
    """Run the graph as it was read, and the planned implementations. Raises OpwestError if results differ.

    `planned`: the base and the variants of the manifest, in the order of the implementations.
    """
    base = implementations[0].program
    assert base is not None
    states = [base.tensors[value] for value in base.states]
    reference = reference_of(graph, states)
    seen: set[Program] = set()
    for implementation, found in zip(implementations, planned, strict=True):
        program = implementation.program
        runs = reference.few if program in seen else reference.runs
        seen.update(() if program is None else (program,))
        reason = _failure(reference, runs, implementation, found)
        if reason is not None:
            named = blame(reference, implementation, found, reason, is_optimised=optimised)
            raise _internal(named, place, optimised)


def _failure(
    reference: Reference, runs: Sequence[Run], implementation: Implementation, found: Examination
) -> str | None:
    """Return how an implementation differs from the graph; None if it does not."""
    try:
        machine = Machine(found.model, found.plan, implementation)
    except Contradiction as reason:
        return str(reason)
    for run in runs:
        try:
            outputs, states = machine.run(run.inputs)
        except ValueError as reason:
            if run.outputs is not None:
                return f"an operator returns an error: {reason}"
            machine.open()
            continue
        except (Contradiction, AssertionError, IndexError) as reason:
            return str(reason) or type(reason).__name__
        number = difference(run, outputs, states, reference.has_floats)
        if number is not None:
            names = [f"output '{output.name}'" for output in reference.graph.outputs]
            return f"{names[number] if number < len(names) else 'the content of a state'} differs"
    return None


def _internal(found: Blame, place: str, optimised: bool) -> OpwestError:
    """Return the error of a proof that failed."""
    where = "" if found.operator is None else f" at operator {found.operator}"
    kept = next((text for name, text in INVARIANTS.items() if f"'{name}'" in found.stage), None)
    hint = REPORT
    if optimised:
        hint = f"import with --no-optimisations; {hint}"
    return fault(
        f"internal error: {found.stage} is wrong{where}: {found.reason}; nothing was written",
        place,
        kept or "the results of the model as it was read",
        hint,
    )

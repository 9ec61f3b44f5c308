# SPDX-License-Identifier: Apache-2.0
"""Prove an import: the manifest computes what the graph as it was read computes, for a few inputs.

The rules of programs are checked first (`compiler/ir/verify.py`). Then the graph runs, and each planned implementation.
The arithmetic of kernels is not part of the proof: a step does what its operation does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opwest.base.diagnostics import OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.execution.run import Memory, run_program
from opwest.compiler.faults import REPORT, fault
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.ir.program import INVARIANTS, Operation, Program, Value
from opwest.compiler.ir.verify import Broken, verify
from opwest.compiler.lowering.simplify import Net, rewritten
from opwest.compiler.output.manifest import Implementation
from opwest.compiler.reference.run import Values, outputs_of, run_graph
from opwest.imports.proof.replay import After, Contradiction, Machine
from opwest.imports.vectors import make_inputs
from opwest.project.request import Examination

CASES = 6
"""Constants, the least and the greatest elements, a ramp, random ones twice: those of make_inputs()."""
FEW = (1, 3, 5)
"""The cases of large graphs, and of an implementation whose program another one has: the least, a ramp, random ones."""
MAX_PRODUCTS = 1 << 22
"""The products of layers in one run of a graph that is not large."""
RELATIVE, ABSOLUTE = 1e-4, 1e-5
"""The tolerance of float32 results: relative, and relative to the greatest result of the tensor in all runs."""
_SEED = 7


@dataclass(frozen=True, eq=False)
class Run:
    """The results of one case; None if an operator returns an error code."""

    inputs: Sequence[Any]
    outputs: Sequence[Any] | None
    states: Sequence[Any]
    """The contents of the states of the graph after the run."""
    greatest: Sequence[float] = ()
    """The greatest float32 number of each output in all runs: sums of one run can cancel out."""


@dataclass(frozen=True, eq=False)
class Reference:
    """The results of a graph."""

    graph: Graph
    states: tuple[Tensor, ...]
    runs: tuple[Run, ...]
    has_floats: bool
    """Whether integers can depend on float32 numbers: they can then differ by one."""

    @property
    def few(self) -> Sequence[Run]:
        """A part of the runs; all of them if there are states, because they are a sequence."""
        if self.states:
            return self.runs
        return self.runs[-1:] if len(self.runs) < CASES else [self.runs[number] for number in FEW]


def reference_of(graph: Graph, states: Sequence[Tensor]) -> Reference:
    """Run a graph; the cases are a sequence of runs. `states` are the states to compare."""
    cases = make_inputs(graph, CASES, _SEED)
    if sum(map(_products, graph.nodes)) > MAX_PRODUCTS:
        cases = [cases[number] for number in FEW]
    has_floats = any(output.dtype == "float32" for node in graph.nodes for output in node.outputs)
    runs = runs_of(graph, cases, states)
    outputs = [run.outputs for run in runs if run.outputs is not None]
    greatest = [max(map(_greatest, arrays)) for arrays in zip(*outputs, strict=True)]
    return Reference(graph, tuple(states), tuple(replace(run, greatest=greatest) for run in runs), has_floats)


def runs_of(graph: Graph, cases: Sequence[Sequence[Any]], states: Sequence[Tensor]) -> list[Run]:
    """Return the results of a graph for a sequence of inputs."""
    runs, memory = [], Values()
    for case in cases:
        try:
            values = run_graph(graph, case, memory)
        except ValueError:
            memory = Values()  # run sets all states to their initial content
            runs.append(Run(case, None, ()))
            continue
        contents = [np.array(memory.get(state, state.content)) for state in states]
        runs.append(Run(case, outputs_of(graph, values), contents))
    return runs


def _products(node: Node) -> int:
    """Return about the number of products of a layer."""
    inputs = (tensor for tensor in node.inputs[:2] if tensor is not None)
    weights = [tensor for tensor in inputs if tensor.is_constant and len(tensor.shape) > 1]
    if not weights or not node.outputs:
        return 0
    results = weights[0].shape[3 if node.kind.startswith("DEPTHWISE") else 0]
    return node.outputs[0].size * (weights[0].size // max(results, 1))


def _greatest(array: Any) -> float:
    """Return the greatest magnitude of the finite numbers of an array; 0 for integers."""
    if array.dtype.kind != "f":
        return 0.0
    return float(np.abs(array[np.isfinite(array)], dtype=np.float64).max(initial=0.0))


def equal(wanted: Any, array: Any, has_floats: bool, greatest: float = 0.0) -> bool:
    """Whether two arrays are equal: integers are, float32 numbers within the tolerance.

    `greatest`: the greatest number of the tensor in other runs.
    """
    wanted, array = np.asarray(wanted), np.asarray(array)
    if wanted.dtype != array.dtype or wanted.size != array.size:
        return False
    array = array.reshape(wanted.shape)
    if wanted.dtype.kind != "f":
        if np.array_equal(wanted, array) or not has_floats or wanted.dtype.kind == "b":
            return np.array_equal(wanted, array)
        return bool((np.abs(wanted.astype(np.int64) - array.astype(np.int64)) <= 1).all())
    with np.errstate(all="ignore"):
        if np.array_equal(wanted, array, equal_nan=True):
            return True
        limit = ABSOLUTE * max(_greatest(wanted), greatest, 1e-3)
        return np.allclose(array, wanted, RELATIVE, limit, equal_nan=True)


def difference(run: Run, outputs: Sequence[Any] | None, states: Sequence[Any], has_floats: bool) -> int | None:
    """Return the number of the first output that differs, the number of outputs for a state; None if all are equal."""
    if run.outputs is None or outputs is None:
        return None if run.outputs is outputs else 0
    for number, (wanted, array) in enumerate(zip(run.outputs, outputs, strict=True)):
        greatest = run.greatest[number] if run.greatest else 0.0
        if not equal(wanted, array, has_floats, greatest):
            return number
    same = all(equal(wanted, array, has_floats) for wanted, array in zip(run.states, states, strict=True))
    return None if same else len(run.outputs)


@dataclass(frozen=True)
class Blame:
    """The stage that changes the results."""

    stage: str
    operator: str | None
    """The label of the first operator with another result; None: unknown."""
    reason: str


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
        wrong = _wrong_program(reference, program)
        if wrong is not None:
            label, reason = wrong
            before = set() if program.source is None else {*program.source.operations}
            changed = (operation.label for operation in program.operations if operation not in before)
            return Blame(f"the pass '{program.made_by}'", label or next(changed, None), reason)
    return None


def _wrong_program(reference: Reference, program: Program) -> tuple[str | None, str] | None:
    """Return the operator and the reason of a program with other results than the graph; None if there is none."""
    graph_state: Values = {}
    state: dict[Value, Any] = {}
    for run in reference.runs:
        try:
            wanted: Mapping[Tensor, Any] = run_graph(reference.graph, run.inputs, graph_state)
        except ValueError:  # an operator returns an error code
            wanted = {}
        labels: list[str] = []
        try:
            outputs = run_program(program, run.inputs, state, _watched(program, wanted, labels, reference.has_floats))
        except ValueError as error:
            if run.outputs is not None:
                return next(iter(labels), None), str(error)
            graph_state, state = {}, {}
            continue
        except (AssertionError, IndexError, TypeError) as error:
            return next(iter(labels), None), str(error) or type(error).__name__
        states = [state.get(value, value.content) for value in program.states]
        if difference(run, outputs, states, reference.has_floats) is not None:
            return next(iter(labels), None), "the results differ"
    return None


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


def _of_placement(reference: Reference, implementation: Implementation, planned: Examination, reason: str) -> Blame:
    """Return the first step whose results differ from those of its operation in the program."""
    assert implementation.program is not None
    stage = "the placement in memory"
    try:
        machine = Machine(planned.model, planned.plan, implementation)
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
            return Blame(stage, next(iter(labels), None), str(error))
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
    results: list[list[Any]] = []

    def keep(operation: Operation, memory: Memory) -> None:
        results.append([memory.part(value).copy() for value in operation.results])

    run_program(program, run.inputs, state, keep)
    return results


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
                blamed = Blame(f"the pass '{program.made_by}'", label, reason.reason)
                raise _internal(blamed, place, optimised) from None


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
    for implementation, examination in zip(implementations, planned, strict=True):
        program = implementation.program
        runs = reference.few if program in seen else reference.runs
        seen.update(() if program is None else (program,))
        reason = _failure(reference, runs, implementation, examination)
        if reason is not None:
            assert program is not None
            raise _internal(
                (_of_rewrites(reference) if optimised else None)
                or _of_programs(reference, program.history)
                or _of_placement(reference, implementation, examination, reason),
                place,
                optimised,
            )


def _failure(
    reference: Reference, runs: Sequence[Run], implementation: Implementation, planned: Examination
) -> str | None:
    """Return how an implementation differs from the graph; None if it does not."""
    try:
        machine = Machine(planned.model, planned.plan, implementation)
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


def _internal(blamed: Blame, place: str, optimised: bool) -> OpwestError:
    """Return the error of a proof that failed."""
    where = "" if blamed.operator is None else f" at operator {blamed.operator}"
    kept = next((text for name, text in INVARIANTS.items() if f"'{name}'" in blamed.stage), None)
    hint = f"import with --no-optimisations; {REPORT}" if optimised else REPORT
    text = f"internal error: {blamed.stage} is wrong{where}: {blamed.reason}; nothing was written"
    return fault(text, place, kept or "the results of the model as it was read", hint)

# SPDX-License-Identifier: Apache-2.0
"""Prove an import: the manifest computes what the graph as it was read computes, for a few inputs.

The rules of programs are checked first (`ir/verify.py`). Then the graph runs, and each planned implementation. The
arithmetic of kernels is not part of the proof: a step does what its operation does.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.base.diagnostics import OpwestError
from opwest.compiler.faults import REPORT, fault
from opwest.compiler.graph.types import Graph
from opwest.compiler.ir.program import INVARIANTS, Program
from opwest.compiler.ir.verify import Broken, verify
from opwest.compiler.output.manifest import Implementation
from opwest.imports.proof.blame import Blame, blame
from opwest.imports.proof.reference import Reference, Run, difference, reference_of
from opwest.imports.proof.replay import Contradiction, Machine
from opwest.project.request import Examination


def check_programs(implementations: Sequence[Implementation], place: str, *, optimised: bool) -> None:
    """Check the rules of the programs of all implementations, in the order of the passes. Raises OpwestError."""
    checked: set[Program] = set()
    for one in implementations:
        for program in [] if one.program is None else one.program.history:
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
            names = [f"output '{one.name}'" for one in reference.graph.outputs]
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

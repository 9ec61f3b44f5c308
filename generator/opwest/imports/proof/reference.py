# SPDX-License-Identifier: Apache-2.0
"""The cases of a proof, their results on the graph as it was read, and the comparison with other results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.reference.run import Values, outputs_of, run_graph
from opwest.imports.vectors import make_inputs

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
    if products_of(graph) > MAX_PRODUCTS:
        cases = [cases[number] for number in FEW]
    has_floats = any(output.dtype == "float32" for node in graph.nodes for output in node.outputs)
    runs = runs_of(graph, cases, states)
    found = [run.outputs for run in runs if run.outputs is not None]
    greatest = [max(map(_greatest, arrays)) for arrays in zip(*found, strict=True)]
    return Reference(graph, tuple(states), tuple(replace(run, greatest=greatest) for run in runs), has_floats)


def runs_of(graph: Graph, cases: Sequence[Sequence[Any]], states: Sequence[Tensor]) -> list[Run]:
    """Return the results of a graph for a sequence of inputs."""
    found, memory = [], Values()
    for case in cases:
        try:
            values = run_graph(graph, case, memory)
        except ValueError:
            memory = Values()  # run sets all states to their initial content
            found.append(Run(case, None, ()))
            continue
        found.append(
            Run(case, outputs_of(graph, values), [np.array(memory.get(state, state.content)) for state in states])
        )
    return found


def products_of(graph: Graph) -> int:
    """Return about the number of products of the layers of a graph."""
    return sum(map(_products, graph.nodes))


def _products(node: Node) -> int:
    weights = [one for one in node.inputs[:2] if one is not None and one.is_constant and len(one.shape) > 1]
    if not weights or not node.outputs:
        return 0
    results = weights[0].shape[3 if node.kind.startswith("DEPTHWISE") else 0]
    return node.outputs[0].size * (weights[0].size // max(results, 1))


def _greatest(array: Any) -> float:
    """Return the greatest magnitude of the finite numbers of an array; 0 for integers."""
    if array.dtype.kind != "f":
        return 0.0
    return float(np.abs(array[np.isfinite(array)], dtype=np.float64).max(initial=0.0))


def equal(wanted: Any, found: Any, has_floats: bool, greatest: float = 0.0) -> bool:
    """Whether two arrays are equal: integers are, float32 numbers within the tolerance.

    `greatest`: the greatest number of the tensor in other runs.
    """
    wanted, found = np.asarray(wanted), np.asarray(found)
    if wanted.dtype != found.dtype or wanted.size != found.size:
        return False
    found = found.reshape(wanted.shape)
    if wanted.dtype.kind != "f":
        if np.array_equal(wanted, found) or not has_floats or wanted.dtype.kind == "b":
            return np.array_equal(wanted, found)
        return bool((np.abs(wanted.astype(np.int64) - found.astype(np.int64)) <= 1).all())
    with np.errstate(all="ignore"):
        if np.array_equal(wanted, found, equal_nan=True):
            return True
        limit = ABSOLUTE * max(_greatest(wanted), greatest, 1e-3)
        return np.allclose(found, wanted, RELATIVE, limit, equal_nan=True)


def difference(run: Run, outputs: Sequence[Any] | None, states: Sequence[Any], has_floats: bool) -> int | None:
    """Return the number of the first output that differs, the number of outputs for a state; None if all are equal."""
    if run.outputs is None or outputs is None:
        return None if run.outputs is outputs else 0
    for number, (wanted, found) in enumerate(zip(run.outputs, outputs, strict=True)):
        greatest = run.greatest[number] if run.greatest else 0.0
        if not equal(wanted, found, has_floats, greatest):
            return number
    same = all(equal(wanted, found, has_floats) for wanted, found in zip(run.states, states, strict=True))
    return None if same else len(run.outputs)

# SPDX-License-Identifier: Apache-2.0
"""Inputs, and the results of every operator in the format's runtime: `opwest import --compare N`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opwest import pipeline
from opwest.base import commands
from opwest.base.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Graph
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.reference.distances import distance, largest
from opwest.compiler.reference.runtimes import AbsentError, Cases, UnavailableError
from opwest.frontends.read import read_file, read_model
from opwest.imports.vectors import all_tensors, make_inputs, results
from opwest.project.request import Request
from opwest.runs.check_steps import host_results
from opwest.runs.project_data import choose_model, project_record


def answers(path: Path, inputs: Cases) -> Cases:
    """Return the outputs of the only model in a file. Raises OpwestError for files that cannot be imported."""
    content, faults = read_file(path), Diagnostics()
    [graph] = read_model(content, str(path))
    check_graph(graph, str(path), faults)
    faults.raise_if_errors()
    return results(graph, content, inputs).outputs


INPUT, TENSOR = "input/", "tensor/"
"""The start of the names of arrays; the first dimension counts the cases."""


def comparison(
    graph: Graph, content: bytes, program: Program, names: Mapping[Value, str], count: int, place: str
) -> dict[str, Any]:
    """Return the arrays of `count` cases. Raises OpwestError if the runtime is absent or cannot run the model."""
    cases = make_inputs(graph, count, seed=1)
    try:
        outcomes = all_tensors(graph, content, cases)
    except AbsentError as error:
        install = commands.pip_install(error.package)
        raise fault(f"--compare requires {error.package}, which is not installed", place, hint=install) from None
    except UnavailableError as error:
        hint = "import without --compare; golden vectors are then those of opwest's interpreter"
        raise fault(f"--compare: there is nothing to compare with: {error}", place, hint=hint) from None
    arrays = {
        f"{INPUT}{names[value]}": np.stack([case[number] for case in cases])
        for number, value in enumerate(program.inputs)
    }
    for value, tensor in program.tensors.items():
        if value in names and value.role in ("intermediate", "output") and tensor in outcomes[0]:
            channels = program.channels.get(value, slice(None))
            arrays[f"{TENSOR}{names[value]}"] = np.stack([outcome[tensor][..., channels] for outcome in outcomes])
    return arrays


DEQUANTISED = 0.05
"""The tolerance of float results of a model with dequantised weights, as a part of the largest element: the runtime
rounds the data of each layer to 8 bits."""


@dataclass(frozen=True)
class Compared:
    """A comparison without a wrong result."""

    inputs: int
    results: int
    """The number of compared results of operators."""
    largest: float
    """The largest difference of a float result; 0 if all results are equal."""
    tolerance: float | None

    def as_text(self) -> str:
        """Return one line of text."""
        words = "no difference" if self.largest == 0 else f"largest difference of a float result {self.largest:.3g}"
        if self.tolerance is not None:
            words += f", tolerance {self.tolerance:g} of the largest element of a result"
        inputs, results = counted(self.inputs, "input"), counted(self.results, "result")
        return f"compared with the reference on {inputs}, {results} of operators: {words}"


def compare(folder: Path, given: Mapping[str, Any], place: Location, tolerance: float | None = None) -> Compared:
    """Compare the results of operators. Raises OpwestError that names the first operator whose result differs.

    `given` are the arrays of comparison(). `tolerance` is that of float results, as a part of their
    largest element, and only they are compared; without it they agree within 1e-4.
    """
    expected = {name.removeprefix(TENSOR): array for name, array in given.items() if name.startswith(TENSOR)}
    inputs = {name.removeprefix(INPUT): array for name, array in given.items() if name.startswith(INPUT)}
    count = min((len(array) for array in inputs.values()), default=0)
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        project = Path(work) / "app"
        pipeline.run(Request((folder / "manifest.yaml",), project, vendored=True), Diagnostics())
        record = project_record(project)
        assert record is not None
        model = choose_model(None, project, record)
        worst = 0.0
        compared: set[str] = set()
        for case in range(count):
            results = host_results(project, record, model, {name: array[case] for name, array in inputs.items()})
            for (point, name), result in sorted(results.items(), key=lambda item: item[0][0]):
                if name in expected and (tolerance is None or expected[name].dtype.kind == "f"):
                    compared.add(name)
                    worst = max(worst, _difference(result, expected[name][case], (case, point, name), place, tolerance))
    return Compared(count, len(compared), worst, tolerance)


def _difference(
    result: Any, expected: Any, where: tuple[int, int, str], place: Location, tolerance: float | None
) -> float:
    """Return the largest difference of a float result; raise OpwestError for a wrong one."""
    case, point, name = where
    other = expected.reshape(result.shape)
    gap = distance(result, other)
    wrong = result != other
    if expected.dtype.kind == "f":
        size = np.abs(other.astype(np.float64))
        limit = 1e-4 * np.maximum(1.0, size)
        if tolerance is not None:
            limit = np.maximum(limit, tolerance * largest([other]))
        wrong = (gap != 0) & ~(np.isfinite(gap) & (gap <= limit))
    if wrong.any():
        text = f"result '{name}' of step {point} differs from the reference"
        hint = f"{int(wrong.sum())} of {counted(wrong.size, 'value')} of input {case}, by at most {gap.max():g}"
        raise OpwestError([Diagnostic("error", text, place, None, hint)])
    return float(gap.max(initial=0.0)) if expected.dtype.kind == "f" else 0.0

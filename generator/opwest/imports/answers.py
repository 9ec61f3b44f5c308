# SPDX-License-Identifier: Apache-2.0
"""The outputs of a reference for given inputs, for scripts."""

from __future__ import annotations

from pathlib import Path

from opwest.base.diagnostics import Diagnostics
from opwest.compiler.graph.check import check_graph
from opwest.compiler.reference.runtimes import Cases
from opwest.frontends.read import read_file, read_model
from opwest.imports.vectors import results


def answers(path: Path, inputs: Cases) -> Cases:
    """Return the outputs of the only model in a file. Raises OpwestError for files that cannot be imported."""
    content, faults = read_file(path), Diagnostics()
    [graph] = read_model(content, str(path))
    check_graph(graph, str(path), faults)
    faults.raise_if_errors()
    return results(graph, content, inputs).outputs

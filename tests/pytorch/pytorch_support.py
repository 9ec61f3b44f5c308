# SPDX-License-Identifier: Apache-2.0
"""Programs that PyTorch wrote in its own environment, imported here, where PyTorch is not installed.

The environment is `make torch-environment` (build/torch), or the Python of the variable OPWEST_TORCH.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
from models.bounds import compare, record
from models.executor import Library, checked, interpreted, program_of
from opwest.compiler.graph.types import Rules
from opwest.compiler.lowering.simplify import Folding, simplify
from opwest.frontends.read import read_model
from requirements_support import need, torch_python

WRITER = Path(__file__).resolve().parent / "writer"
QUANTISERS = ("xnnpack-channel", "xnnpack-tensor", "x86", "arm", "cortex-m")
FOREIGN = ("PYTHONPATH", "COVERAGE_PROCESS_CONFIG")
"""Variables of this environment that the other one does not get."""


def torch_run(*words):
    """Run Python with PyTorch; return what it prints."""
    need("torch")
    variables = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    done = subprocess.run([torch_python(), *words], capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def table(folder):
    """Return the operators, and whether quantisers annotate them, and the networks of the writer."""
    torch_run(WRITER, folder)
    return json.loads((folder / "table.json").read_text())


def write(folder, jobs):
    """Let PyTorch write programs; return the rows of the index."""
    folder.mkdir(parents=True, exist_ok=True)
    torch_run(WRITER, folder, json.dumps(jobs))
    return json.loads((folder / "index.json").read_text())


def cases_of(folder, row):
    """Return the inputs and torch's results of each case of a file."""
    with np.load(folder / f"{row['name']}.npz") as found:
        arrays = dict(found)
    kinds = (("x", row["inputs"]), ("y", row["outputs"]))
    return [tuple([arrays[f"{x}{case}_{i}"] for i in range(n)] for x, n in kinds) for case in range(row["cases"])]


def graph_of(file, exact=False):
    """Return the checked graph of a file, whose shapes are those of the operators' own inference."""
    [graph] = read_model(file.read_bytes(), str(file), Rules(float_requantization=exact))
    shapes = [(one, one.shape) for node in graph.nodes for one in node.outputs]
    checked(graph, Folding(graph.rules))
    for tensor, shape in shapes:
        assert tensor.shape == shape, tensor
    return graph


def check_files(folder, rows, place, bound, exact=False, steps=0.0):
    """Compare the interpreter and the emitted C with torch's results, one after another; return the graphs.

    `bound`: from a row to |found - expected| <= bound * max(1, |expected|) of float results. Raises AssertionError
    after all comparisons, with each program that differs.
    """
    graphs = [graph_of(folder / f"{row['name']}.pt2", exact) for row in rows]
    place.mkdir(exist_ok=True)
    library, wrong = Library([program_of(simplify(graph)) for graph in graphs], place), []
    for number, (row, graph) in enumerate(zip(rows, graphs, strict=True)):
        states, cases = ({}, {}), cases_of(folder, row)
        key = (f"ATen {row.get('operator', 'network')}", f"{row['form']}, exact" if exact else row["form"], "torch")
        record(*key, files=row.get("configurations", 1), runs=len(cases))
        for given, expected in cases:
            found = (interpreted(graph, given, states[0]), library.run(number, given, states[1]))
            for name, results in zip(("interpreter", "emitted C"), found, strict=True):
                for output, (one, two) in enumerate(zip(expected, results, strict=True)):
                    assert one.size == two.size and one.dtype == two.dtype, (row["name"], output, one, two)
                    where = f"{row['name']}, output {output}, {name}"
                    try:
                        compare(key, one, two.reshape(one.shape), bound(row), where, steps)
                    except AssertionError as error:
                        wrong.append(str(error))
    assert not wrong, "\n".join(wrong[:20])
    return graphs

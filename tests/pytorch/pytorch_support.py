# SPDX-License-Identifier: Apache-2.0
"""Programs that PyTorch wrote in its own environment, imported here, where PyTorch cannot be imported.

The environment is that of `make torch-environment` (build/torch), or the Python of the variable OPWEST_TORCH.
"""

import contextlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from campaign import sized
from models.bounds import compare, record
from models.executor import Library, checked, interpreted, program_of
from opwest.base.diagnostics import OpwestError
from opwest.compiler.graph.types import Rules
from opwest.compiler.lowering.simplify import Folding, simplify
from opwest.frontends.read import read_model
from requirements_support import need, torch_python
from session_support import made_once

WRITER = Path(__file__).resolve().parent / "writer"
QUANTISERS = ("xnnpack-channel", "xnnpack-tensor", "x86", "arm", "cortex-m")
CHOSEN = sized(("xnnpack-channel",), QUANTISERS)
"""Of the operators; the networks of a sample have all quantisers."""
_WHOLE = {"network": "*", "whole": sized(False, True)}
_NUMBERS = list(range(sized(1, 30)))
_QUANTISED = list(range(sized(2, 30)))
JOBS = {
    "plain": [{"operator": "*", "numbers": _NUMBERS}],
    "decomposed": [{"operator": "*", "numbers": _NUMBERS, "decomposed": True, "every": sized(5, 1)}],
    **{one: [{"operator": "*", "numbers": _QUANTISED, "quantiser": one, "every": sized(3, 1)}] for one in CHOSEN},
    "networks": [{**_WHOLE, "every": sized(4, 1)}],
    "networks-any": [{**_WHOLE, "quantiser": "*"}],
    "streaming": [{"network": "streaming", "quantiser": "xnnpack-channel"}],
}
if sized(False, True):
    JOBS |= {f"networks-{one}": [{**_WHOLE, "quantiser": one}] for one in QUANTISERS}
    JOBS |= {"boards": [{"network": "*", "quantiser": "*"}]}  # those of a sample
    JOBS |= {"networks-decomposed": [{**_WHOLE, "decomposed": True}]}
    JOBS |= {f"networks-{one}-decomposed": [{**_WHOLE, "quantiser": one, "decomposed": True}] for one in QUANTISERS}
FOREIGN = ("PYTHONPATH", "COVERAGE_PROCESS_CONFIG")
"""Variables of this environment that the other one does not get."""


def torch_run(*words):
    """Run Python with PyTorch; return what it prints."""
    need("torch")
    variables = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    done = subprocess.run([torch_python(), *words], capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def write(folder, jobs):
    """Let PyTorch write the programs of named lists of jobs (writer/__main__.py), each to the folder of its name."""
    (folder / "jobs.json").write_text(json.dumps(jobs))
    torch_run(WRITER, folder)


def programs(name):
    """Return the folder of the programs of JOBS[name], written once in a session, and the rows of its index.

    A sample is written by one process: its start takes as long as ten programs.
    """
    chosen = sized(JOBS, {name: JOBS[name]})
    folder = made_once(f"torch-{sized('sample', name)}", lambda made: write(made, chosen)) / name
    return folder, json.loads((folder / "index.json").read_text())


@contextlib.contextmanager
def closed():
    """PyTorch cannot be imported, also where it is installed; whoever opens a pickle fails the test."""

    def refuse(*args, **options):
        raise SystemExit("a pickle was opened")  # readers report an Exception as a damaged file

    assert "torch" not in sys.modules
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        for name in ("load", "loads", "Unpickler", "_load", "_loads", "_Unpickler"):
            patch.setattr(pickle, name, refuse)
        yield


def cases_of(folder, row):
    """Return the inputs, torch's results, and these with exact sums, of each case of a file."""
    with np.load(folder / f"{row['name']}.npz") as found:
        arrays = dict(found)
    kinds = (("x", row["inputs"]), ("y", row["outputs"]), ("z" if "z0_0" in arrays else "y", row["outputs"]))
    return [tuple([arrays[f"{x}{case}_{i}"] for i in range(n)] for x, n in kinds) for case in range(row["cases"])]


def graph_of(file, exact=False):
    """Return the checked graph of a file, whose shapes are those of the operators' own inference."""
    [graph] = read_model(file.read_bytes(), str(file), Rules(float_requantization=exact))
    shapes = [(one, one.shape) for node in graph.nodes for one in node.outputs]
    checked(graph, Folding(graph.rules))
    for tensor, shape in shapes:
        assert tensor.shape == shape, tensor
    return graph


def steps_of(graph):
    """Return the scale of each result that a DEQUANTIZE computes, and possibly moves, 0.0 of the others."""
    made = {tensor: node for node in graph.nodes for tensor in node.outputs}

    def step(tensor):
        node = made.get(tensor)
        while node is not None and node.kind in ("TRANSPOSE", "RESHAPE"):
            tensor, node = node.inputs[0], made.get(node.inputs[0])
        if node is not None and node.kind == "DEQUANTIZE":
            tensor = node.inputs[0]
        return tensor.quantization.scale if tensor.quantization is not None else 0.0

    return [step(tensor) for tensor in graph.outputs]


def _settled(expected, rounded, found, row):
    """Return what is expected where torch's float32 sums round away from a tie: its results with exact sums.

    Such sums depend on the vectors of the processor. The table of the campaign counts these values.
    """
    other = (found != expected) & (found == rounded)
    record(f"ATen {row.get('operator', 'network')}", f"{row['form']}, ties", "torch", values=other.sum())
    return np.where(other, rounded, expected)


def check_files(folder, rows, place, bound, exact=False, steps=0.0):
    """Compare the interpreter and the emitted C with torch's results, one after another; return the graphs by name.

    `bound`: from a row to |found - expected| <= bound * max(1, |expected|) of float results. With `exact` results of
    dequantisations are equal; without, they differ by `steps` of their scale at most. Raises AssertionError after all
    comparisons, with each program that is refused or differs.
    """
    graphs, faults = {}, []
    for row in rows:
        if "refused" in row:
            faults.append(f"{row}: PyTorch does not write it")
            continue
        try:
            graphs[row["name"]] = graph_of(folder / f"{row['name']}.pt2", exact)
        except (OpwestError, AssertionError) as error:
            faults.append(f"{row['name']}: {error}")
    place.mkdir(exist_ok=True)
    library = Library([program_of(simplify(graph)) for graph in graphs.values()], place)
    for number, row in enumerate(row for row in rows if row.get("name") in graphs):
        graph = graphs[row["name"]]
        name, cases = f"ATen {row.get('operator', 'network')}", cases_of(folder, row)
        exactly = [exact and is_quantised for is_quantised in row["quantised"]]
        keys = [(name, f"{row['form']}, exact" if one else row["form"], "torch") for one in exactly]
        record(*keys[0], files=row.get("configurations", 1), runs=len(cases))
        limits = [0.0 if one else bound(row) for one in exactly]
        allowed, states = [steps * scale for scale in steps_of(graph)], ({}, {})
        for given, expected, rounded in cases:
            found = (interpreted(graph, given, states[0]), library.run(number, given, states[1]))
            for what, results in zip(("interpreter", "emitted C"), found, strict=True):
                for output, (one, two, limit, step) in enumerate(zip(expected, results, limits, allowed, strict=True)):
                    where = f"{row['name']}, output {output}, {what}"
                    assert one.size == two.size and one.dtype == two.dtype, (where, one, two)
                    two = two.reshape(one.shape)
                    if exactly[output]:
                        one = _settled(one, rounded[output], two, row)
                    try:
                        compare(keys[output], one, two, limit, where, step)
                    except AssertionError as error:
                        faults.append(str(error))
    assert not faults, "\n".join(faults[:20])
    return graphs

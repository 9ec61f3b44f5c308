# SPDX-License-Identifier: Apache-2.0
"""Random float graphs that are quantised: what is written, and what LiteRT computes with it."""

import numpy as np
from graphs.campaign import cases_of
from graphs.drawn import drawn
from models.executor import checked, interpreted
from models.oracle import litert
from opwest.base.diagnostics import OpwestError
from opwest.frontends.tflite.read import read_tflite
from opwest.quantisation.layers import layers_of, run_quantised
from opwest.quantisation.request import Options
from opwest.quantisation.samples import Samples
from opwest.quantisation.tflite import Backend, float_graph

STEPS = 1
"""The most steps between integers of LiteRT and opwest behind float32 layers, whose sums have another order."""


def quantised(content, seed):
    """Return the quantised graph of a file, the new file and the cases; some layers are kept in another arithmetic."""
    graph, _ = float_graph(content, "made.tflite")
    random = np.random.default_rng([seed, 4])
    cases = cases_of(graph.inputs, seed)
    dtype = str(random.choice(["int8", "int16x8"], p=[0.7, 0.3]))
    options = Options("", dtype=dtype, float_io=bool(random.integers(2)))
    backend = Backend(graph, content, Samples(cases, None), options, "made.tflite", ())
    backend.calibrate()
    method = str(random.choice(["minmax", "percentile", "mse"]))
    layers = [node for node in layers_of(graph) if backend.can_keep(node)]
    kept = frozenset(node for node in layers if random.random() < 0.25)
    written = backend.content(method, kept)
    return backend.graph_of(method, kept), written, cases


def compare(seed, kinds):
    """Quantise the graph of a seed; LiteRT's results and those of opwest are equal. Returns why it is no float model.

    `kinds` counts the operators by their arithmetic.
    """
    content = drawn(seed, "float32")[0].build()
    try:
        made, written, cases = quantised(content, seed)
    except OpwestError as error:
        return error.diagnostics[0].message
    kinds.update(f"{node.kind} {precision}" for node, precision in made.precisions.items())
    steps = STEPS if "float" in made.precisions.values() else 0
    [back] = map(checked, read_tflite(written))
    runs = [run_quantised(made, case) for case in cases]
    inputs = [[run[tensor] for tensor in made.graph.inputs] for run in runs]
    for case, run, expected in zip(inputs, runs, litert(written, inputs), strict=True):
        found = interpreted(back, case)
        for number, (one, wanted) in enumerate(zip(found, expected, strict=True)):
            where = f"seed {seed}, output {number}"
            assert np.array_equal(one, run[made.graph.outputs[number]]), f"{where}: the file is not the graph"
            if one.dtype.kind == "f":
                assert np.allclose(one, wanted, 1e-3, 1e-4 * max(1, np.abs(wanted).max())), where
            else:
                assert np.abs(one.astype(np.int64) - wanted).max() <= steps, where
    return None

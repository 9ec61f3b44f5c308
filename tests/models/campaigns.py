# SPDX-License-Identifier: Apache-2.0
"""Random configurations of operators: files made by the test, against the oracle, the interpreter and the emitted C.

A family module has CONFIGURATIONS: {"KIND dtype": function(random) -> made.Model}. A configuration that the oracle
cannot run is a fault of the configuration, except for rows of oracles.
"""

import numpy as np
import pytest
from campaign import sized
from models.executor import Library
from models.oracle import litert
from models.records import compare, record
from opwest.diagnostics import Diagnostics, OpwestError
from opwest.importers.models.control import resolve_control
from opwest.importers.models.graph.check import check_graph
from opwest.importers.models.interpret.run import outputs_of, run_graph
from opwest.importers.models.lower.lower import lower_graph, with_passes
from opwest.importers.models.simplify.folding import Folding
from opwest.importers.models.simplify.simplify import simplify
from opwest.importers.models.tflite.read import read_tflite

CONFIGURATIONS = sized(6, 50)
"""The number of configurations of one operator and dtype."""
CASES = 3


def graph_of(content, simplified=False):
    """Return the checked graph of a file, on request as an import simplifies it."""
    [graph] = read_tflite(content)
    faults = Diagnostics()
    graph = resolve_control(graph)
    if simplified:
        check_graph(graph, "made.tflite", faults, Folding(graph.rules))
    else:
        check_graph(graph, "made.tflite", faults)
    assert not faults.has_errors, "\n".join(map(str, faults))
    return simplify(graph) if simplified else graph


def lowering_fault(model):
    """Return the only fault of the lowering of a model."""
    faults = Diagnostics()
    with pytest.raises(OpwestError):
        lower_graph(graph_of(model.build()), "made", faults)
    [fault] = faults
    return fault


def cases_of(graph, random, count=CASES):
    """Return random inputs."""

    def one(tensor):
        if tensor.dtype == "bool":
            return random.integers(0, 2, tensor.shape).astype(bool)
        if tensor.dtype == "float32":
            return (random.standard_normal(tensor.shape) * random.choice([0.5, 1, 4])).astype(np.float32)
        limits = np.iinfo(tensor.dtype)
        low, high = max(int(limits.min), -1000), min(int(limits.max), 1000)
        if tensor.dtype == "int16":
            low, high = -32768, 32767
        return random.integers(low, high + 1, tensor.shape).astype(tensor.dtype)

    return [[one(tensor) for tensor in graph.inputs] for _ in range(count)]


def check_configurations(
    build,
    folder,
    seed,
    count=None,
    bound=0.0,
    resolver="BUILTIN_REF",
    cases=cases_of,
    oracle=litert,
    simplified=False,
    steps=False,
):
    """Compare the oracle, the interpreter and the emitted C on `count` files; return the emitted programs.

    `bound` is that of float results.

    `bound`: |found - expected| <= bound * max(1, |expected|). `oracle` replaces LiteRT: (content, cases, resolver).
    `steps`: the cases of a file are a sequence, the state lasts.
    """
    random = np.random.default_rng(seed)
    models = [build(random) for _ in range(count or CONFIGURATIONS)]
    contents = [model.build() for model in models]
    graphs = [graph_of(content, simplified) for content in contents]
    programs = []
    for graph in graphs:
        faults = Diagnostics()
        programs.append(with_passes(lower_graph(graph, "made.tflite", faults)))
    library = Library(programs, folder)
    varied, which = 0, f"LiteRT {resolver}" if oracle is litert else "rule in the test"
    for number, (model, content, graph) in enumerate(zip(models, contents, graphs, strict=True)):
        given, key = cases(graph, random), key_of(model, which)
        record(*key, files=1, runs=len(given))
        expected = oracle(content, given, resolver, **({"steps": True} if steps else {}))
        states = ({}, {})
        for case, wanted in zip(given, expected, strict=True):
            interpreted = outputs_of(graph, run_graph(graph, case, states[0] if steps else None))
            compiled = library.run(number, case, states[1] if steps else None)
            for one, two, three in zip(wanted, interpreted, compiled, strict=True):
                assert one.shape == two.shape, f"configuration {number}: {one.shape} {two.shape}"
                compare(key, one, two, bound, f"configuration {number}: interpreter")
                compare(key, one, three.reshape(one.shape), bound, f"configuration {number}: emitted C")
                varied += len(np.unique(one)) > 2 or one.size < 3 or one.dtype == bool
    assert varied, "all results are saturated"
    return library.emitted


def key_of(model, oracle):
    """Return the row of the summary: the first operator of a file, the dtype of the first input."""
    main = model.subgraphs[0]
    dtype = main.inputs[0].dtype if main.inputs else main.operators[0][2][0].dtype
    if dtype == "float32" and any(one.dtype == "int8" and one.content is not None for one in main.tensors):
        dtype = "hybrid"
    return main.operators[0][0], dtype, oracle

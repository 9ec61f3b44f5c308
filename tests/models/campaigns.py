# SPDX-License-Identifier: Apache-2.0
"""Random configurations of operators: files made by the test, against the oracle, the interpreter and the emitted C."""

import itertools

import numpy as np
import pytest
from campaign import sized
from models.bounds import bound_of, compare, record
from models.executor import Library, checked, interpreted, program_of
from models.oracle import litert
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.lowering.control import resolve_control
from opwest.compiler.lowering.simplify import Folding, simplify
from requirements_support import need

need("tflite")

from opwest.frontends.tflite.read import read_tflite  # noqa: E402

CONFIGURATIONS = sized(6, 50)
"""The number of configurations of one operator and dtype."""
CASES = 3


def seed_of(*parts):
    return [ord(c) for c in "".join(parts)]


def graph_of(content, simplified=False):
    """Return the checked graph of a file, on request as an import simplifies it."""
    [graph] = read_tflite(content)
    graph = resolve_control(graph)
    return simplify(checked(graph, Folding(graph.rules))) if simplified else checked(graph)


def refusal(model):
    with pytest.raises(AssertionError) as caught:
        graph_of(model.build())
    return str(caught.value)


def lowering_fault(model):
    faults = Diagnostics()
    with pytest.raises(OpwestError):
        lower_graph(graph_of(model.build()), "made", faults)
    [fault] = faults
    return fault


def cases_of(graph, random, count=CASES):
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


def sequences(graph, random):
    return cases_of(graph, random, 5)


def check_family(folder, make, *words, **options):
    """Compare files of make(random, *words). The words are the seed; the bound is that of the first operator."""
    options = {"bound": None, **options}
    seed = options.pop("seed", None) or seed_of(*words)
    check_configurations(lambda random: make(random, *words), folder, seed, **options)


def families(rows):
    """Parametrise a test by rows of a builder and its words."""
    ids = [" ".join([make.__name__, *map(str, words)]) for make, *words in rows]
    return pytest.mark.parametrize(("make", "words"), [(make, words) for make, *words in rows], ids=ids)


def check_models(models, folder, seed, **options):
    each = iter(models)
    check_configurations(lambda _: next(each), folder, seed, len(models), **options)


def check_configurations(
    build, folder, seed, count=None, bound=0.0, resolver="BUILTIN_REF", cases=cases_of, oracle=litert, simplified=False,
    steps=False,
):  # fmt: skip
    """Compare the oracle, the interpreter and the emitted C on `count` files; return the emitted programs.

    `bound`: |found - expected| <= bound * max(1, |expected|) of float results; None: that of the first operator.
    `oracle` replaces LiteRT: (content, cases, resolver). `steps`: the cases of a file are a sequence, the state lasts.
    """
    random = np.random.default_rng(seed)
    models = [build(random) for _ in range(count or CONFIGURATIONS)]
    contents = [model.build() for model in models]
    graphs = [graph_of(content, simplified) for content in contents]
    library = Library([program_of(graph) for graph in graphs], folder)
    varied, which = 0, f"LiteRT {resolver}" if oracle is litert else "rule in the test"
    for number, (model, content, graph) in enumerate(zip(models, contents, graphs, strict=True)):
        given, key = cases(graph, random), key_of(model, which)
        limit = bound_of(f"{key[0]} hybrid" if key[1] == "hybrid" else key[0]) if bound is None else bound
        record(*key, files=1, runs=len(given))
        expected = oracle(content, given, resolver, **({"steps": True} if steps else {}))
        states = ({}, {})
        for case, wanted in zip(given, expected, strict=True):
            found = interpreted(graph, case, states[0] if steps else None)
            compiled = library.run(number, case, states[1] if steps else None)
            for one, two, three in zip(wanted, found, compiled, strict=True):
                assert one.shape == two.shape, f"configuration {number}: {one.shape} {two.shape}"
                compare(key, one, two, limit, f"configuration {number}: interpreter")
                compare(key, one, three.reshape(one.shape), limit, f"configuration {number}: emitted C")
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


EACH = sized(1, 50)
"""The number of configurations of one operator and dtype."""
ZEROS = {"int8": (-128, 128), "uint8": (0, 256), "int16": (0, 1)}
OPTIMISED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
"""The resolver for operators that LiteRT's reference kernels lack."""


def quantised(random, dtype, factor=1.0):
    """Return a random scale and zero point; nothing for plain dtypes."""
    if dtype not in ZEROS:
        return None, 0
    scale = random.uniform(0.0001, 0.001) if dtype == "int16" else random.uniform(0.01, 0.1)
    return float(np.float32(scale * factor)), int(random.integers(*ZEROS[dtype]))


def any_shape(random, least=1, greatest=5):
    return tuple(int(n) for n in random.integers(1, 5, int(random.integers(least, greatest + 1))))


def broadcast_shapes(random, count=2, greatest=5):
    """Return shapes that are equal, or broadcast in random dimensions; one operand can have fewer dimensions."""
    whole = any_shape(random, 1, greatest)
    shapes = [whole] * count
    if random.random() < 0.25:
        return shapes
    for number in range(count):
        kept = random.random(len(whole)) < 0.6
        shapes[number] = tuple(n if k else 1 for n, k in zip(whole, kept, strict=True))
    if len(whole) > 1 and random.random() < 0.5:
        which = int(random.integers(0, count))
        shapes[which] = shapes[which][int(random.integers(1, len(whole))) :]
    return shapes


def check_dtypes(build, dtypes, folder, seed, **options):
    """Compare configurations of all dtypes; `build(random, dtype)` returns a model."""
    turns = itertools.cycle(dtypes)
    check_configurations(
        lambda random: build(random, next(turns)),
        folder,
        seed=[ord(c) for c in seed],
        count=EACH * len(dtypes),
        **options,
    )


def nonzero_cases(graph, random, count=3):
    """Return random inputs without 0 in the second one, which LiteRT refuses, and quantised numerators not close to 0.

    Where LiteRT would shift a quotient by more than 31 places, its result is undefined.
    """
    cases = []
    for _ in range(count):
        arrays = []
        for place, tensor in enumerate(graph.inputs):
            if tensor.dtype == "float32":
                arrays.append(random.standard_normal(tensor.shape).astype(np.float32) * 4)
                continue
            limits = np.iinfo(tensor.dtype)
            array = random.integers(max(limits.min, -100000), min(limits.max, 100000) + 1, tensor.shape)
            zero = 0 if tensor.quantization is None else tensor.quantization.zero
            least = 1 if place else 0 if tensor.quantization is None else 1024 if tensor.dtype == "int16" else 65
            other = zero + least if zero + least <= limits.max else zero - least
            arrays.append(np.where(np.abs(array - zero) < least, other, array).astype(tensor.dtype))
        cases.append(arrays)
    return cases

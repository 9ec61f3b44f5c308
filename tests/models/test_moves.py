# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, in all dtypes, against LiteRT."""

import itertools

import numpy as np
import pytest
from campaign import sized
from in_process import succeed
from models.campaigns import cases_of, check_configurations, check_models, graph_of, seed_of
from models.executor import Library, program_of
from models.made import Model, of_one
from models.moves import KINDS, numbers
from models.oracle import litert
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Damaged
from opwest.compiler.lowering.simplify import Folding, simplify
from opwest.compiler.output.emit import emit_program
from opwest.compiler.reference.run import run_graph
from opwest.compiler.selection.costs import key_of
from opwest.frontends.tflite.read import read_tflite
from opwest.imports.convert import import_model
from opwest.imports.vectors import make_vectors
from requirements_support import need

RESULT = ("int8", 0.2, 0)


class Limited:
    """Random inputs, with indices that are inside of their dimensions."""

    def __init__(self):
        self.made = []

    def build(self, make, random, dtype):
        model = make(random, dtype)
        self.made.append([(getattr(t, "limits", None), getattr(t, "small", False)) for t in model.graph.inputs])
        return model

    def cases(self, graph, random):
        limits = self.made.pop(0)
        found = cases_of(graph, random)
        for case, (number, (limit, is_small)) in itertools.product(found, enumerate(limits)):
            if limit is not None:
                whole = random.integers(0, 1 << 30, case[number].shape)
                case[number] = (whole % (limit if len(limit) > 1 else limit[0])).astype(case[number].dtype)
            elif is_small or (graph.nodes[0].kind == "ONE_HOT" and number == 0):
                case[number] = random.integers(-2, 7, case[number].shape).astype(case[number].dtype)
        return found


@pytest.mark.parametrize("kind", KINDS)
def test_moves(kind, tmp_path):
    make, dtypes = KINDS[kind]
    each, limited = itertools.cycle(dtypes), Limited()
    check_configurations(
        lambda random: limited.build(make, random, next(each)), tmp_path, seed_of(kind),
        count=sized(max(5, len(dtypes)), 50 * len(dtypes)), bound=None, cases=limited.cases,
    )  # fmt: skip


def _indexed(kind, dtype):
    """Return a model of an operator with computed indices, the first input."""
    indices, data = (dtype, (3, 2) if kind.endswith("_ND") else (3,)), ("int8", (5, 4, 2), 0.1, 3)
    if kind == "SCATTER_ND":
        return of_one(kind, [indices, ("int8", (3, 2)), (np.int32([5, 4, 2]),)], ("int8",))
    model = of_one(kind, [indices, data] if kind == "EMBEDDING_LOOKUP" else [data, indices], ("int8", 0.1, 3))
    model.graph.inputs.sort(key=lambda one: one.dtype == "int8")
    return model


@pytest.mark.parametrize("kind", ["GATHER", "GATHER_ND", "EMBEDDING_LOOKUP", "SCATTER_ND"])
def test_indices_outside_of_their_dimension_are_an_error(kind, tmp_path):
    dtype = "int32" if kind in ("EMBEDDING_LOOKUP", "SCATTER_ND") else "int64"
    graph = graph_of(_indexed(kind, dtype).build())
    library = Library([program_of(graph)], tmp_path)
    [case] = cases_of(graph, np.random.default_rng(1), 1)
    case[0] = np.zeros(case[0].shape, dtype)
    library.run(0, case)
    for wrong in (-1, 5, 2**31 - 1, *([2**32, -(2**63)] if dtype == "int64" else [])):
        case[0].reshape(-1)[2] = wrong
        with pytest.raises(OSError, match=r"\[Errno 22\]"):
            library.run(0, case)
        with pytest.raises(ValueError, match="outside of 0 to 4"):
            run_graph(graph, case)


def _program(model):
    return program_of(graph_of(model.build()))


def _twice(model, data):
    """Return the result of an operator that writes memory of its own."""
    return model.operator("ADD", [data, data], RESULT)


def test_parts_that_are_contiguous_are_views():
    model = Model()
    inner = _twice(model, model.input("int8", (1, 6, 4), 0.1, 0))
    parts = [*model.operator("SPLIT", [numbers(model, [1]), inner], RESULT, RESULT, num_splits=2)]
    indices = [numbers(model, v) for v in ([0, 2, 0], [0, 0, 0], [1, 1, 1])]
    parts.append(model.operator("STRIDED_SLICE", [inner, *indices], RESULT, begin_mask=1, end_mask=7))
    sizes = [numbers(model, v) for v in ([0, 1, 1], [1, 1, 3])]
    parts.append(model.operator("SLICE", [inner, *sizes], RESULT))
    program = _program(model.output(*(_twice(model, part) for part in parts)))
    assert [type(one).__name__ for one in program.operations] == ["Elementwise"] * 5
    assert [one.inputs[0].offset for one in program.operations[1:]] == [0, 12, 8, 5]


def test_producers_write_into_the_concatenation(tmp_path):
    """Also into a concatenation of concatenations; inputs, outputs and constants are copied."""
    model = Model()
    data = model.input("int8", (1, 2, 3), 0.1, 0)
    a, b, c, d = (_twice(model, data) for _ in range(4))
    inner = model.operator("CONCATENATION", [a, b], RESULT, axis=1)
    constant = model.constant(np.arange(6, dtype=np.int8).reshape(1, 2, 3), 0.2)
    outer = model.operator("CONCATENATION", [c, inner, constant, d], RESULT, axis=1)
    program = _program(model.output(outer, d, _twice(model, c)))
    names = [type(one).__name__ for one in program.operations]
    assert names == ["Elementwise"] * 4 + ["Move", "Move", "Elementwise"]
    places = [(one.results[0].root, one.results[0].offset) for one in program.operations[:3]]
    assert places == [(program.outputs[0], offset) for offset in (6, 12, 0)]
    check_models([model], tmp_path, seed=1)


def test_producers_write_into_the_concatenation_of_reshaped_results(tmp_path):
    """The heads of detectors: results as rows, then joined."""
    model = Model()
    data = model.input("int8", (1, 2, 3, 4), 0.1, 0)
    shape = numbers(model, [1, 6, 4])
    rows = [model.operator("RESHAPE", [_twice(model, data), shape], RESULT) for _ in range(2)]
    program = _program(model.ending_with("CONCATENATION", rows, RESULT, axis=1))
    found = [(type(one).__name__, one.results[0].offset) for one in program.operations]
    assert found == [("Elementwise", 0), ("Elementwise", 24)]
    check_models([model], tmp_path, seed=1)


@pytest.mark.parametrize(
    ("amounts", "offset", "fills"),
    [
        ([[0, 0], [1, 2], [0, 0], [0, 0]], 12, [(0, 12), (36, 24)]),
        ([[0, 0], [0, 1], [0, 0], [0, 0]], 0, [(24, 12)]),
        ([[2, 0], [0, 0], [0, 0], [0, 0]], 48, [(0, 48)]),
    ],
)
def test_the_producer_writes_between_the_edges_of_padding(tmp_path, amounts, offset, fills):
    model = Model()
    inner = _twice(model, model.input("int8", (1, 2, 3, 4), 0.1, 0))
    padded = model.operator("PAD", [inner, numbers(model, amounts)], RESULT)
    # The data has another reader.
    model.output(_twice(model, inner), _twice(model, padded))
    producer, *edges = _program(model).operations[: 1 + len(fills)]
    assert producer.results[0].offset == offset
    assert [(one.results[0].offset, one.results[0].size, one.inputs) for one in edges] == [(*one, ()) for one in fills]
    assert key_of(edges[0]) == f"move int8 to {fills[0][1]}"
    assert {one.results[0].root for one in (producer, *edges)} == {producer.results[0].base}
    check_models([model], tmp_path, seed=1)


@pytest.mark.parametrize("amounts", [[[0, 0], [0, 0], [1, 0], [0, 0]], [[0, 0], [1, 0], [0, 0], [0, 1]]])
def test_padding_of_rows_is_a_copy(amounts):
    model = Model()
    inner = _twice(model, model.input("int8", (1, 2, 3, 4), 0.1, 0))
    padded = model.operator("PAD", [inner, numbers(model, amounts)], RESULT)
    producer, copied, _ = _program(model.output(_twice(model, padded))).operations
    assert producer.results[0].root is None
    assert copied.inputs == producer.results


def test_views_and_indices_in_a_generated_application(tmp_path):
    """Producers write into a concatenation that later steps read."""
    result, random = ("int8", 0.2, 1), np.random.default_rng(2)
    model = Model()
    data = model.input("int8", (1, 4, 6), 0.1, 3, name="data")
    which = model.input("int32", (3,), name="which")
    first = model.operator("ADD", [data, data], result)
    second = model.operator("PAD", [data, numbers(model, [[0, 0], [1, 0], [0, 0]])], ("int8", 0.1, 3))
    second = model.operator("ADD", [second, second], result)
    joined = model.operator("CONCATENATION", [first, second], result, axis=1)
    rows = model.operator("RESHAPE", [joined, numbers(model, [18, 3])], result)
    taken = model.operator("GATHER", [rows, which], result)
    last = model.operator("ADD", [first, first], result)
    turned = model.operator("TRANSPOSE", [taken, numbers(model, [1, 0])], result)
    turned.name, last.name = "turned", "last"
    model.output(turned, last)
    file, app = model.save(tmp_path / "m.tflite"), tmp_path / "app"
    import_model(file, tmp_path / "model")
    succeed("generate", tmp_path / "model/manifest.yaml", "-o", app)
    given = [random.integers(-128, 128, (1, 4, 6)).astype(np.int8), np.asarray([17, 0, 9], np.int32)]
    np.savez(tmp_path / "in.npz", data=given[0], which=given[1])
    results = litert(file.read_bytes(), [given])[0]
    np.savez(tmp_path / "out.npz", turned=results[0], last=results[1])
    succeed("run", "--host", app, "--input", tmp_path / "in.npz", "--reference", tmp_path / "out.npz")


def _damage(model, random):
    """Change constants and options of a model to other small numbers, or the shape of an input."""
    for tensor in model.graph.tensors:
        if tensor.content is not None and tensor.content.dtype.kind == "i" and random.random() < 0.5:
            values = random.choice([-(2**31), -5, -2, -1, 0, 1, 2, 3, 7, 2**31 - 1], tensor.content.shape)
            limits = np.iinfo(tensor.content.dtype)
            tensor.content = np.clip(values, limits.min, limits.max).astype(tensor.content.dtype)
            if random.random() < 0.3:
                tensor.content = tensor.content.reshape(-1)[: int(random.integers(0, 3))]
                tensor.shape = tensor.content.shape
    for _, _, _, options in model.graph.operators:
        for name, value in options.items():
            if isinstance(value, int) and name != "version" and random.random() < 0.4:
                options[name] = int(random.choice([-7, -1, 0, 1, 2, 5, 31, 2**30]))
    for tensor in model.graph.inputs:
        if random.random() < 0.3:
            tensor.shape = tuple(int(n) for n in random.integers(1, 4, int(random.integers(0, 6))))


def test_contradictory_operators_are_refused():
    """Nothing but a report: neither an exception nor a program that cannot be emitted."""
    random = np.random.default_rng(12)
    refused, passed = set(), set()
    for _ in range(sized(8, 400)):
        for kind, (make, dtypes) in KINDS.items():
            model = make(random, str(random.choice(dtypes)))
            _damage(model, random)
            try:
                content = model.build()
            except (ValueError, OverflowError, TypeError):
                continue  # not a file
            faults = Diagnostics()
            try:
                [graph] = read_tflite(content)
            except Damaged:
                continue
            check_graph(graph, "made.tflite", faults, Folding(graph.rules, 1 << 20))
            (refused if faults.has_errors else passed).add(kind)
            if not faults.has_errors and all(one.size < 1 << 16 for node in graph.nodes for one in node.outputs):
                emit_program(program_of(simplify(graph)), "made by a test")
    assert len(refused) > 25 and len(passed) > 25


def test_models_whose_indices_fail_have_no_vectors():
    need("ai_edge_litert")
    model = Model()
    data = model.input("float32", (1, 3))
    # A number from 3 on: no index of three elements.
    number = model.operator("EXP", [model.input("float32", (2,))], ("float32",))
    above = model.operator("ADD", [number, model.constant(np.float32([3]))], ("float32",))
    which = model.operator("CAST", [above], ("int32",))
    content = model.ending_with("GATHER", [data, which], ("float32",)).build()
    vectors, [remark] = make_vectors(graph_of(content), content, 6)
    assert vectors is None
    assert remark.startswith("there are no golden vectors: each input that was tried fails: ")
    assert "is outside of 0 to 0" in remark
    content = of_one("GATHER", [("float32", (1, 3)), ("int32", (2,))], ("float32",)).build()
    vectors, remarks = make_vectors(graph_of(content), content, 6)
    assert not remarks
    assert "LiteRT" in vectors.remark and not any(case[1].any() for case in vectors.inputs)

# SPDX-License-Identifier: Apache-2.0
"""Control flow and variables that are resolved at import, against LiteRT."""

import numpy as np
import pytest
from in_process import fail, opwest, succeed
from requirements_support import need

need("cc", "tflite", "ai_edge_litert")

from models.campaigns import cases_of, check_configurations, graph_of  # noqa: E402
from models.made import Model  # noqa: E402
from opwest.importers.models.graph.faults import Damaged  # noqa: E402
from opwest.importers.models.graph.spec import OPERATORS, Operator, broadcast, specify  # noqa: E402
from opwest.importers.models.interpret.registry import interprets  # noqa: E402
from opwest.importers.models.tflite.read import read_tflite  # noqa: E402

if "LESS" not in OPERATORS:
    specify(Operator("LESS", lambda node: [("bool", broadcast(one.shape for one in node.inputs))]))

    @interprets("LESS")
    def less(node, arrays, rules):
        return arrays[0] < arrays[1]


def model_with(*subgraphs):
    """Return a model whose main subgraph is filled last: `subgraphs` fill the others."""
    model = Model()
    main = model.subgraphs[0]
    for fill in subgraphs:
        model.subgraph()
        fill(model)
    model.subgraphs.append(main)  # the last one is the current one
    return model


def finish(model):
    model.subgraphs.pop()
    return model


def variables(random):
    """A counter and a running sum: both are read before and after the assignment."""
    shape = tuple(int(n) for n in random.integers(1, 5, 2))
    names = ("sum", "last")
    first = [random.standard_normal(shape).astype(np.float32) for _ in names]

    def init(model):
        for name, content in zip(names, first, strict=True):
            handle = model.operator("VAR_HANDLE", [], ("resource",), container="", shared_name=name)
            model.operator("ASSIGN_VARIABLE", [handle, model.constant(content)])

    model = model_with(init)
    data = model.input("float32", shape)
    model.operator("CALL_ONCE", [], init_subgraph_index=1)
    total, last = (model.operator("VAR_HANDLE", [], ("resource",), container="", shared_name=n) for n in names)
    before = model.operator("READ_VARIABLE", [total], ("float32",))
    after = model.operator("ADD", [before, data], ("float32",))
    previous = model.operator("READ_VARIABLE", [last], ("float32",))
    model.operator("ASSIGN_VARIABLE", [total, after])
    model.operator("ASSIGN_VARIABLE", [last, data])
    again = model.operator("READ_VARIABLE", [total], ("float32",))
    model.output(model.operator("ADD", [again, previous], ("float32",)))
    return finish(model)


def test_variables(tmp_path):
    check_configurations(
        variables, tmp_path, seed=1, cases=lambda graph, random: cases_of(graph, random, 5), steps=True
    )


def window(random):
    """A state with the latest rows: the next one is a part of the rows with the new one, which are computed."""
    rows, columns = 4, 5

    def init(model):
        handle = model.operator("VAR_HANDLE", [], ("resource",), container="", shared_name="rows")
        model.operator("ASSIGN_VARIABLE", [handle, model.constant(np.zeros((rows, columns), np.float32))])

    model = model_with(init)
    data = model.input("float32", (1, columns))
    model.operator("CALL_ONCE", [], init_subgraph_index=1)
    handle = model.operator("VAR_HANDLE", [], ("resource",), container="", shared_name="rows")
    before = model.operator("READ_VARIABLE", [handle], ("float32",))
    both = model.operator("CONCATENATION", [before, data], ("float32",), axis=0)
    ends = [model.constant(np.array(one, np.int32)) for one in ([1, 0], [rows + 1, columns], [1, 1])]
    model.operator("ASSIGN_VARIABLE", [handle, model.operator("STRIDED_SLICE", [both, *ends], ("float32",))])
    weights = model.constant(random.standard_normal((3, (rows + 1) * columns)).astype(np.float32))
    model.output(model.operator("FULLY_CONNECTED", [both, weights, None], ("float32",)))
    return finish(model)


def test_window_of_rows(tmp_path):
    """The manifest declares the tensor of which the next state is a view. Every compared case begins without rows."""
    file = window(np.random.default_rng(8)).save(tmp_path / "m.tflite")
    out = succeed("import", file, "-o", tmp_path / "model", "--compare", "3").stdout
    assert "2 results of operators" in out
    manifest = (tmp_path / "model/manifest.yaml").read_text()
    assert "view_of" in manifest
    check_configurations(window, tmp_path, seed=3, count=2, bound=1e-5, steps=True)


def condition(random):
    """IF with a constant condition."""
    shape, numbers = (2, 3), [random.standard_normal(3).astype(np.float32) for _ in range(2)]

    def fill(number):
        def branch(model):
            data = model.input("float32", shape)
            model.output(model.operator("ADD", [data, model.constant(numbers[number])], ("float32",)))

        return branch

    model = model_with(fill(0), fill(1))
    data = model.input("float32", shape)
    truth = model.constant(np.array(bool(random.integers(0, 2))))
    options = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    found = model.operator("IF", [truth, data], ("float32",), **options)
    model.output(model.operator("ADD", [found, data], ("float32",)))
    return finish(model)


def test_if(tmp_path):
    check_configurations(condition, tmp_path, seed=2)


NO_MAP = bytes([0, 0, 1, 0, 0, 36, 1])
"""An empty map of FlexBuffers."""


def composite(random):
    """A composite in a composite; the constants are after the flatbuffer."""
    shape, numbers = (2, 3), [random.standard_normal(3).astype(np.float32) for _ in range(2)]

    def call(model, inputs, number):
        options = {"name": "odml.example", "decomposition_subgraph_index": number, "composite_attributes": NO_MAP}
        return model.operator("STABLEHLO_COMPOSITE", inputs, ("float32",), **options)

    def inner(model):
        data = [model.input("float32", shape) for _ in range(2)]
        model.output(model.operator("SUB", [model.operator("MUL", data, ("float32",)), data[0]], ("float32",)))

    def outer(model):
        data = model.input("float32", shape)
        model.output(call(model, [data, model.constant(np.stack([numbers[0]] * 2))], 1))

    model = model_with(inner, outer)
    model.data_after = True
    data = model.input("float32", shape)
    found = call(model, [model.operator("ADD", [data, model.constant(numbers[1])], ("float32",))], 2)
    model.output(model.operator("ADD", [found, call(model, [data], 2)], ("float32",)))
    return finish(model)


def test_composites(tmp_path):
    check_configurations(composite, tmp_path, seed=4, bound=1e-6)
    model = model_with(
        lambda model: model.output(model.operator("COMPLEX_ABS", [model.input("float32", (1,))], ("float32",)))
    )
    data = model.input("float32", (1,))
    model.output(model.operator("STABLEHLO_COMPOSITE", [data], ("float32",), decomposition_subgraph_index=1))
    file = finish(model).save(tmp_path / "m.tflite")
    code, _, err = opwest("import", file, "-o", tmp_path / "model")
    assert code == 1 and "operator 0 (COMPLEX_ABS)" in err and "of 0 (STABLEHLO_COMPOSITE)" in err


def test_data_beyond_the_end_of_the_file():
    model = Model()
    model.data_after = True
    model.output(
        model.operator("ADD", [model.input("float32", (4,)), model.constant(np.ones(4, np.float32))], ("float32",))
    )
    content = model.build()
    with pytest.raises(Damaged, match=r"is stored in bytes \d+ to \d+ of \d+"):
        read_tflite(content[:-1])


def loop(random, limit=None):
    """WHILE with a counter that is known, and data that are not."""
    limit = int(random.integers(0, 5)) if limit is None else limit
    step = random.standard_normal((2, 3)).astype(np.float32)

    def test(model):
        counter, _ = model.input("int32", ()), model.input("float32", (2, 3))
        model.output(model.operator("LESS", [counter, model.constant(np.array(limit, np.int32))], ("bool",)))

    def body(model):
        counter, data = model.input("int32", ()), model.input("float32", (2, 3))
        more = model.operator("ADD", [counter, model.constant(np.array(1, np.int32))], ("int32",))
        model.output(more, model.operator("ADD", [data, model.constant(step)], ("float32",)))

    model = model_with(test, body)
    data, counter = model.input("float32", (2, 3)), model.constant(np.array(0, np.int32))
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    _, found = model.operator("WHILE", [counter, data], ("int32",), ("float32",), **options)
    model.output(model.operator("ADD", [found, data], ("float32",)))
    return finish(model)


def test_while(tmp_path):
    check_configurations(loop, tmp_path, seed=3, bound=1e-6)


def test_refused_control():
    random = np.random.default_rng(4)
    model = condition(random)
    truth = next(one for one in model.subgraphs[0].tensors if one.dtype == "bool")
    truth.content = None
    model.subgraphs[0].inputs.append(truth)
    with pytest.raises(AssertionError, match="of IF is computed when the model runs"):
        graph_of(model.build())
    model = loop(random)
    counter = next(one for one in model.subgraphs[0].tensors if one.dtype == "int32")
    counter.content = None
    model.subgraphs[0].inputs.append(counter)
    with pytest.raises(
        AssertionError, match=r"of WHILE is computed when the model runs\n.*a number of turns that is known at import"
    ):
        graph_of(model.build())
    with pytest.raises(AssertionError, match="a loop with too many turns"):
        graph_of(loop(random, 1 << 20).build())


def test_refused_counts():
    """Files whose control flow contradicts its subgraphs."""
    random = np.random.default_rng(4)
    for kind, change, text in (
        ("ASSIGN_VARIABLE", lambda one: one[1].pop(), "1 inputs and 0 results.*2 inputs and 0 results"),
        ("VAR_HANDLE", lambda one: one[2].append(one[2][0]), "0 inputs and 2 results.*0 inputs and 1 results"),
        ("READ_VARIABLE", lambda one: one[1].__setitem__(0, None), "an absent input"),
    ):
        model = variables(random)
        change(next(one for one in model.subgraphs[0].operators if one[0] == kind))
        with pytest.raises(AssertionError, match=f"(?s){text}"):
            graph_of(model.build())
    model = condition(random)
    model.subgraphs[0].operators[0][2].append(model.subgraphs[0].operators[0][2][0])
    with pytest.raises(AssertionError, match="a subgraph with 1 outputs for 2 results"):
        graph_of(model.build())
    model = loop(random)
    model.subgraphs[1].outputs.clear()
    with pytest.raises(AssertionError, match="a condition of WHILE with 0 outputs"):
        graph_of(model.build())
    model = condition(random)
    truth = next(one for one in model.subgraphs[0].tensors if one.dtype == "bool")
    truth.dtype, truth.content = "int32", np.array([1, 0], np.int32)
    truth.shape = (2,)
    with pytest.raises(AssertionError, match=r"(?s)is int32 of shape \[2\].*one bool"):
        graph_of(model.build())


def test_endless_loop_without_operators():
    def test(model):
        model.input("float32", (2,))
        model.output(model.constant(np.array(True)))

    def body(model):
        model.output(model.input("float32", (2,)))

    model = model_with(test, body)
    data = model.input("float32", (2,))
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    model.output(model.operator("WHILE", [data], ("float32",), **options))
    with pytest.raises(AssertionError, match="a loop with too many turns"):
        graph_of(finish(model).build())


def test_refusals_after_control_flow(tmp_path):
    """A loop that cannot be resolved, an unsupported operator and a missing scale are reported at once."""
    model = loop(np.random.default_rng(6), 1 << 20)
    data = model.subgraphs[0].inputs[0]
    model.subgraphs.append(model.subgraphs[0])
    model.output(model.operator("MyOwn", [data], ("float32",)), model.operator("TANH", [data], ("float32",)))
    model.output(model.operator("QUANTIZE", [data], ("int8",)))
    model.subgraphs.pop()
    file = model.save(tmp_path / "m.tflite")
    err = fail("import", file, "-o", tmp_path / "model").stderr
    assert "operator 0 (WHILE), result" in err and "a loop with too many turns" in err
    assert "operator 2 (MyOwn), result" in err and "--operator MyOwn=FILE.yaml" in err
    assert "operator 4 (QUANTIZE), result" in err and "--operator QUANTIZE=FILE.yaml" in err
    assert "(TANH)" not in err and "(ADD)" not in err and "--operator WHILE" not in err


def test_subgraph_that_calls_itself():
    model = Model()
    data, truth = model.input("float32", (1,)), model.constant(np.array(True))
    options = {"then_subgraph_index": 0, "else_subgraph_index": 0}
    model.output(model.operator("IF", [truth, data], ("float32",), **options))
    with pytest.raises(Damaged, match="is called by itself"):
        read_tflite(model.build())

# SPDX-License-Identifier: Apache-2.0
"""Control flow and variables that are resolved at import, against LiteRT."""

import re

import numpy as np
import pytest
from in_process import fail, succeed
from models.campaigns import check_configurations, refusal, sequences
from models.made import Model
from opwest.compiler.graph.types import Damaged
from opwest.frontends.tflite.read import read_tflite


def model_with(*subgraphs):
    """Return a model whose main subgraph is filled last: `subgraphs` fill the others."""
    model = Model()
    for fill in subgraphs:
        model.subgraph()
        fill(model)
    model.current = model.subgraphs[0]
    return model


def handle(model, name):
    return model.operator("VAR_HANDLE", [], ("resource",), container="", shared_name=name)


def initialised(**contents):
    def init(model):
        for name, content in contents.items():
            model.operator("ASSIGN_VARIABLE", [handle(model, name), model.constant(content)])

    return model_with(init)


def real(model, kind, *inputs, **options):
    return model.operator(kind, list(inputs), ("float32",), **options)


def number(model, value, dtype=np.int32):
    return model.constant(np.array(value, dtype))


def variables(random):
    """A counter and a running sum: both are read before and after the assignment."""
    shape = tuple(int(n) for n in random.integers(1, 5, 2))
    model = initialised(**{name: random.standard_normal(shape).astype(np.float32) for name in ("sum", "last")})
    data = model.input("float32", shape)
    model.operator("CALL_ONCE", [], init_subgraph_index=1)
    total, last = handle(model, "sum"), handle(model, "last")
    after = real(model, "ADD", real(model, "READ_VARIABLE", total), data)
    previous = real(model, "READ_VARIABLE", last)
    model.operator("ASSIGN_VARIABLE", [total, after])
    model.operator("ASSIGN_VARIABLE", [last, data])
    return model.output(real(model, "ADD", real(model, "READ_VARIABLE", total), previous))


def test_variables(tmp_path):
    check_configurations(variables, tmp_path, seed=1, cases=sequences, steps=True)


def window(random):
    """A state with the latest rows: the next one is a part of the rows with the new one, which are computed."""
    rows, columns = 4, 5
    model = initialised(rows=np.zeros((rows, columns), np.float32))
    data = model.input("float32", (1, columns))
    model.operator("CALL_ONCE", [], init_subgraph_index=1)
    state = handle(model, "rows")
    both = real(model, "CONCATENATION", real(model, "READ_VARIABLE", state), data, axis=0)
    ends = [number(model, one) for one in ([1, 0], [rows + 1, columns], [1, 1])]
    model.operator("ASSIGN_VARIABLE", [state, real(model, "STRIDED_SLICE", both, *ends)])
    weights = model.constant(random.standard_normal((3, (rows + 1) * columns)).astype(np.float32))
    return model.output(real(model, "FULLY_CONNECTED", both, weights, None))


def test_window_of_rows(tmp_path):
    """The manifest declares the tensor of which the next state is a view. Every compared case begins without rows."""
    check_configurations(window, tmp_path, seed=3, count=2, bound=1e-5, steps=True)
    file = window(np.random.default_rng(8)).save(tmp_path / "m.tflite")
    out = succeed("import", file, "-o", tmp_path / "model", "--compare", "3").stdout
    assert "2 results of operators" in out
    assert "view_of" in (tmp_path / "model/manifest.yaml").read_text()


def condition(random):
    shape, numbers = (2, 3), [random.standard_normal(3).astype(np.float32) for _ in range(2)]

    def adding(added):
        return lambda model: model.output(real(model, "ADD", model.input("float32", shape), model.constant(added)))

    model = model_with(*map(adding, numbers))
    data = model.input("float32", shape)
    truth = number(model, random.integers(0, 2), bool)
    found = real(model, "IF", truth, data, then_subgraph_index=1, else_subgraph_index=2)
    return model.output(real(model, "ADD", found, data))


def test_if(tmp_path):
    check_configurations(condition, tmp_path, seed=2)


NO_MAP = bytes([0, 0, 1, 0, 0, 36, 1])
"""An empty map of FlexBuffers."""


def composite(random):
    """A composite in a composite; the constants are after the flatbuffer."""
    shape, numbers = (2, 3), [random.standard_normal(3).astype(np.float32) for _ in range(2)]

    def call(model, *inputs, subgraph):
        options = {"name": "odml.example", "decomposition_subgraph_index": subgraph, "composite_attributes": NO_MAP}
        return real(model, "STABLEHLO_COMPOSITE", *inputs, **options)

    def inner(model):
        data = [model.input("float32", shape) for _ in range(2)]
        model.output(real(model, "SUB", real(model, "MUL", *data), data[0]))

    def outer(model):
        data = model.input("float32", shape)
        model.output(call(model, data, model.constant(np.stack([numbers[0]] * 2)), subgraph=1))

    model = model_with(inner, outer)
    model.data_after = True
    data = model.input("float32", shape)
    found = call(model, real(model, "ADD", data, model.constant(numbers[1])), subgraph=2)
    return model.output(real(model, "ADD", found, call(model, data, subgraph=2)))


def test_composites(tmp_path):
    check_configurations(composite, tmp_path, seed=4, bound=1e-6)
    model = model_with(lambda model: model.output(real(model, "COMPLEX_ABS", model.input("float32", (1,)))))
    data = model.input("float32", (1,))
    model.output(real(model, "STABLEHLO_COMPOSITE", data, decomposition_subgraph_index=1))
    file = model.save(tmp_path / "m.tflite")
    err = fail("import", file, "-o", tmp_path / "model").stderr
    assert "operator 0 (COMPLEX_ABS)" in err and "of 0 (STABLEHLO_COMPOSITE)" in err


def test_data_beyond_the_end_of_the_file():
    model = Model()
    model.data_after = True
    inputs = model.input("float32", (4,)), model.constant(np.ones(4, np.float32))
    content = model.output(real(model, "ADD", *inputs)).build()
    with pytest.raises(Damaged, match=r"is stored in bytes \d+ to \d+ of \d+"):
        read_tflite(content[:-1])


def test_empty_tensor_with_impossible_sizes():
    model = Model()
    shape = (0, 1 << 30, 1 << 30, 1 << 30)
    content = model.output(real(model, "ADD", *(model.input("float32", shape) for _ in range(2)))).build()
    with pytest.raises(Damaged, match=r"has the impossible shape \[0, 1073741824, "):
        read_tflite(content)


def loop(random, limit=None):
    """WHILE with a counter that is known, and data that are not."""
    limit = int(random.integers(0, 5)) if limit is None else limit
    step = random.standard_normal((2, 3)).astype(np.float32)

    def test(model):
        counter, _ = model.input("int32", ()), model.input("float32", (2, 3))
        model.ending_with("LESS", [counter, number(model, limit)], ("bool",))

    def body(model):
        counter, data = model.input("int32", ()), model.input("float32", (2, 3))
        model.ending_with("ADD", [counter, number(model, 1)], ("int32",))
        model.output(real(model, "ADD", data, model.constant(step)))

    model = model_with(test, body)
    data, counter = model.input("float32", (2, 3)), number(model, 0)
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    _, found = model.operator("WHILE", [counter, data], ("int32",), ("float32",), **options)
    return model.output(real(model, "ADD", found, data))


def test_while(tmp_path):
    check_configurations(loop, tmp_path, seed=3, bound=1e-6)


def computed(model, dtype):
    [tensor, *_] = [one for one in model.subgraphs[0].tensors if one.dtype == dtype]
    tensor.content = None
    model.subgraphs[0].inputs.append(tensor)
    return model


def test_refused_control():
    random = np.random.default_rng(4)
    assert "of IF is computed when the model runs" in refusal(computed(condition(random), "bool"))
    text = refusal(computed(loop(random), "int32"))
    assert re.search(r"of WHILE is computed when the model runs\n.*a number of turns that is known at import", text)
    assert "a loop with too many turns" in refusal(loop(random, 1 << 20))


@pytest.mark.parametrize(
    ("make", "kind", "change", "text"),
    [
        (variables, "ASSIGN_VARIABLE", lambda one: one[1].pop(), "1 input and 0 results.*2 inputs and 0 results"),
        (variables, "VAR_HANDLE", lambda one: one[2].append(one[2][0]), "0 inputs and 2 results.*0 inputs and 1 res"),
        (variables, "READ_VARIABLE", lambda one: one[1].__setitem__(0, None), "an absent input"),
        (condition, "IF", lambda one: one[2].append(one[2][0]), "a subgraph with 1 output for 2 results"),
    ],
)
def test_refused_counts(make, kind, change, text):
    """Files whose control flow contradicts its subgraphs."""
    model = make(np.random.default_rng(4))
    change(next(one for one in model.subgraphs[0].operators if one[0] == kind))
    assert re.search(f"(?s){text}", refusal(model))


def test_refused_conditions():
    random = np.random.default_rng(4)
    model = loop(random)
    model.subgraphs[1].outputs.clear()
    assert "a condition of WHILE with 0 outputs" in refusal(model)
    model = condition(random)
    truth = next(one for one in model.subgraphs[0].tensors if one.dtype == "bool")
    truth.dtype, truth.content, truth.shape = "int32", np.array([1, 0], np.int32), (2,)
    assert re.search(r"(?s)is int32 of shape \[2\].*one bool", refusal(model))


def test_endless_loop_without_operators():
    def test(model):
        model.input("float32", (2,))
        model.output(number(model, True, bool))

    model = model_with(test, lambda model: model.output(model.input("float32", (2,))))
    data = model.input("float32", (2,))
    model.output(real(model, "WHILE", data, cond_subgraph_index=1, body_subgraph_index=2))
    assert "a loop with too many turns" in refusal(model)


def test_refusals_after_control_flow(tmp_path):
    """A loop that cannot be resolved, an unsupported operator and a missing scale are reported at once."""
    model = loop(np.random.default_rng(6), 1 << 20)
    [data] = model.graph.inputs
    model.output(real(model, "MyOwn", data), real(model, "TANH", data))
    model.ending_with("QUANTIZE", [data], ("int8",))
    file = model.save(tmp_path / "m.tflite")
    err = fail("import", file, "-o", tmp_path / "model").stderr
    assert "operator 0 (WHILE), result" in err and "a loop with too many turns" in err
    assert "operator 2 (MyOwn), result" in err and "--operator MyOwn=FILE.yaml" in err
    assert "operator 4 (QUANTIZE), result" in err and "--operator QUANTIZE=FILE.yaml" in err
    assert "(TANH)" not in err and "(ADD)" not in err and "--operator WHILE" not in err


def test_subgraph_that_calls_itself():
    model = Model()
    data, truth = model.input("float32", (1,)), number(model, True, bool)
    model.output(real(model, "IF", truth, data, then_subgraph_index=0, else_subgraph_index=0))
    with pytest.raises(Damaged, match="is called by itself"):
        read_tflite(model.build())

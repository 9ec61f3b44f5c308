# SPDX-License-Identifier: Apache-2.0
"""If and Loop of ONNX that are known at import, against onnxruntime, and what remains refused."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "onnx", "onnxruntime")

from models.bounds import onnx_bound  # noqa: E402
from models.onnx_support import CONFIGURATIONS, Made, check, floats, kinds_of  # noqa: E402
from models.test_onnx_refusals import refused  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def value(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs, [output], **attributes)


def graph(nodes, inputs, outputs, *constants):
    kept = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants]
    return helper.make_graph(nodes, "inner", inputs, outputs, kept)


def body(nodes, results, *constants, carried=("h",)):
    """Return the body of a loop; `again` is its condition."""
    inputs = [value("turn", TensorProto.INT64, []), value("before", TensorProto.BOOL, []), *map(value, carried)]
    outputs = [value("again", TensorProto.BOOL, []), *map(value, results)]
    return graph(nodes, inputs, outputs, *constants)


def unrolled(random, count, scans):
    """A recurrence over the rows of the input, as exporters write a loop of a scripted module."""
    made = Made(int(random.integers(13, 22)))
    width = int(random.integers(1, 5))
    x = made.input(1, count, width)
    h = made.constant(floats(random, 1, width))
    turns = made.add("Gather", made.add("Shape", x), np.asarray(1, np.int64), axis=0)
    row = [node("Gather", [x, "turn"], "row", axis=1), node("Mul", ["h", "factor"], "scaled")]
    row += [node("Add", ["scaled", "row"], "sum"), node("Tanh", ["sum"], "new")]
    row += [node("Identity", ["before"], "again"), node("Neg", ["new"], "scan")]
    loop = body(row, ["new", "scan"] if scans else ["new"], ("factor", np.float32(0.5)))
    results = made.add("Loop", turns, np.asarray(True), h, body=loop, results=1 + scans)
    made.output(*([results] if isinstance(results, str) else results))
    return made


def test_loops(tmp_path):
    random = np.random.default_rng(60)
    models = [unrolled(random, int(random.integers(1, 6)), number % 2) for number in range(2 * CONFIGURATIONS)]
    for made in check(models, tmp_path, random, onnx_bound("Tanh")):
        assert "TANH" in kinds_of(made)


def test_condition_that_ends_a_loop(tmp_path):
    """`while i < 3`: the greatest number of turns is that of int64, the condition depends on the turn only."""
    made = Made(17)
    x = made.input(2, 3)
    nodes = [node("Exp", ["h"], "e"), node("Sub", ["e", "one"], "new")]
    nodes += [node("Add", ["turn", "step"], "next"), node("Less", ["next", "limit"], "again")]
    constants = ("one", np.float32(1)), ("step", np.int64(1)), ("limit", np.int64(3))
    loop = body(nodes, ["new"], *constants)
    made.output(made.add("Loop", np.asarray(np.iinfo(np.int64).max), np.asarray(True), x, body=loop))
    made.output(made.add("Loop", np.int64(5), np.asarray(False), x, body=loop))
    made.output(made.add("Loop", "", np.asarray(True), x, body=loop))
    [found] = check([made], tmp_path, np.random.default_rng(61), onnx_bound("Exp") * 100)
    assert kinds_of(found).count("EXP") == 6, "three turns, none, three"


def branched(random, nested):
    """A branch by the shape; nested: in a loop, with names of the outer graph, the body and the branch."""
    made = Made(int(random.integers(13, 22)))
    x = made.input(1, int(random.integers(2, 5)))
    size = made.add("Gather", made.add("Shape", x), np.asarray(1, np.int64), axis=0)
    first = graph([node("Relu", ["h" if nested else x], "r")], [], [value("r")])
    second = graph([node("Mul", [x, "two"], "r")], [], [value("r")], ("two", np.float32(2)))
    if not nested:
        made.output(made.add("If", made.add("Equal", size, np.int64(3)), then_branch=first, else_branch=second))
        return made
    inner = [node("Equal", ["turn", "one"], "odd"), node("If", ["odd"], "new", then_branch=first, else_branch=second)]
    inner.append(node("Identity", ["before"], "again"))
    loop = body(inner, ["new"], ("one", np.int64(1)))
    made.output(made.add("Loop", np.int64(3), "", made.add("Neg", x), body=loop))
    return made


def test_branches(tmp_path):
    random = np.random.default_rng(62)
    models = [branched(random, number % 2) for number in range(2 * CONFIGURATIONS)]
    check(models, tmp_path, random, onnx_bound("Mul"))


def refused_branch():
    made = Made(17)
    x = made.input(1, 2)
    flag = made.add("Greater", made.add("ReduceSum", x, keepdims=0), np.float32(0))
    parts = [graph([node(kind, [x], "r")], [], [value("r")]) for kind in ("Relu", "Neg")]
    made.output(made.add("If", flag, then_branch=parts[0], else_branch=parts[1]))
    return made.model()


def refused_loop(turns, again="before"):
    made = Made(17)
    x = made.input(1, 2)
    nodes = [node("Relu", ["h"], "new"), node("ReduceSum", ["h"], "sum", keepdims=0)]
    nodes += [node("Cast", ["sum"], "flag", to=TensorProto.BOOL), node("Identity", [again], "again")]
    count = made.input(dtype="int64") if turns is None else np.int64(turns)
    made.output(made.add("Loop", count, np.asarray(True), x, body=body(nodes, ["new"])))
    return made.model()


REFUSED = {
    "operator 2 (If), result 't2_0': the condition 't1_0' is computed when the model runs": refused_branch,
    "the number of turns or the condition 'x1' is computed": lambda: refused_loop(None),
    "the condition 't0_0/0/again' is computed when the model runs": lambda: refused_loop(2, "flag"),
    "operator 0 (Loop): more than 1024 turns": lambda: refused_loop(5000),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_reasons(reason):
    text = refused(REFUSED[reason]())
    assert reason in text and "damaged" not in text and text.count("error:") == 1, text

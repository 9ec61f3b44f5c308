# SPDX-License-Identifier: Apache-2.0
"""ONNX files that onnxruntime runs: no axes, operators in any order, one domain, known control flow."""

import numpy as np
import pytest
from in_process import fail
from models.bounds import ONNX
from models.onnx_support import CONFIGURATIONS, Made, check, floats, interpreted, kinds_of, opset_of, session
from models.test_onnx_refusals import refused
from onnx import TensorProto, defs, helper, numpy_helper
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.compiler import child
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Rules
from opwest.compiler.lowering.simplify import Folding
from opwest.compiler.request import Options
from opwest.frontends.onnx import reductions
from opwest.frontends.onnx.reductions import axes_of
from opwest.frontends.onnx.translation import TRANSLATIONS
from opwest.frontends.read import read_model
from opwest.imports.convert import import_model

REDUCTIONS = [f"Reduce{name}" for name in "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()]


def node(kind, inputs, output, **options):
    return helper.make_node(kind, inputs, [output], **options)


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def made(*nodes, shape=(2, 3), initializers=(), outputs=("y",), opset=("", 18), infos=()):
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(list(nodes), "made", [x], results, list(initializers), value_info=list(infos))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*opset)], ir_version=8).SerializeToString()


def graph_of(content):
    [graph] = read_model(content, "made.onnx", Rules())
    faults = Diagnostics()
    check_graph(graph, "made.onnx", faults, Folding(graph.rules))
    faults.raise_if_errors()
    return graph


def compare(content, folder, shape=(2, 3)):
    """Compare onnxruntime, the interpreter, and the manifest that an import proves; return the graph."""
    x = np.random.default_rng(3).uniform(0.5, 2, shape).astype(np.float32)
    graph = graph_of(content)
    wanted = session(content).run(None, {"x": x})
    found = interpreted(graph, [x])
    for one, other in zip(wanted, found, strict=True):
        assert one.shape == other.shape and np.allclose(one, other, 1e-5, 1e-6)
    folder.mkdir(exist_ok=True)
    (folder / "m.onnx").write_bytes(content)
    import_model(folder / "m.onnx", folder / "out", Options(vectors=0))
    return graph


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMax", "ReduceL2"])
def test_only_1_keeps_the_dimensions(kind, tmp_path):
    """Other values of keepdims are 0, as in onnxruntime."""
    graph = compare(made(node(kind, ["x"], "y", keepdims=2)), tmp_path / "m")
    assert len(graph.outputs[0].shape) < 2


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_over_no_axes(kind, tmp_path):
    """Nothing is reduced, the function of the elements remains."""
    axes = [constant("axes", [], np.int64)]
    for number, (inputs, keep) in enumerate((i, k) for i in (["x"], ["x", ""], ["x", "axes"]) for k in (0, 1)):
        one = node(kind, inputs, "y", noop_with_empty_axes=1, keepdims=keep)
        compare(made(one, initializers=axes if "axes" in inputs else []), tmp_path / str(number))
    compare(made(node(kind, ["x"], "y", keepdims=0)), tmp_path / "all")


CHAIN = [node("Relu", ["x"], "a"), node("Mul", ["a", "k"], "b"), node("Add", ["b", "a"], "y")]
"""Three operators in order."""
FACTOR = constant("k", [2])


def test_operators_in_any_order(tmp_path):
    kinds = []
    for number, order in enumerate(([0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1])):
        graph = compare(made(*(CHAIN[i] for i in order), initializers=[FACTOR]), tmp_path / str(number))
        kinds.append([one.kind for one in graph.nodes])
    assert kinds == [kinds[0]] * 4


def test_operators_in_any_order_inside_of_a_branch():
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))
    branch = helper.make_graph(CHAIN[::-1], "b", [], [result])
    condition = constant("c", True, bool)
    one = node("If", ["c"], "z", then_branch=branch, else_branch=branch)
    x = np.float32([[1, -2, 3], [4, 5, -6]])
    graph = graph_of(made(one, initializers=[FACTOR, condition], outputs=("z",)))
    assert np.array_equal(interpreted(graph, [x])[0], np.maximum(x, 0) * 3)


def test_damaged_connections(tmp_path):
    def messages(*nodes, outputs):
        (tmp_path / "m.onnx").write_bytes(made(*nodes, outputs=outputs))
        return fail("import", tmp_path / "m.onnx", "-o", tmp_path / "out").stderr

    err = messages(node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b"), outputs=("b",))
    assert "the file is damaged: the operators 0 (Add), 1 (Relu) read results of each other" in err
    # All of them, also where the operators are not in their order.
    err = messages(node("Add", ["a", "b"], "y"), node("Mul", ["x", "c"], "a"), outputs=("y", "z"))
    text = "the file is damaged: operator 0 (Mul) reads 'c', which nothing writes; operator 1 (Add) reads 'b', which "
    assert f"{text}nothing writes; nothing writes the output 'z'\n" in err


def test_files_with_one_domain(tmp_path):
    gelu = node("Gelu", ["x"], "y", domain="com.microsoft")
    compare(made(gelu, opset=("com.microsoft", 1)), tmp_path / "m")
    (tmp_path / "m.onnx").write_bytes(made(node("Relu", ["x"], "y"), opset=("com.microsoft", 1)))
    with pytest.raises(OpwestError, match=r"opset none of ai\.onnx"):
        import_model(tmp_path / "m.onnx", tmp_path / "none", Options())


@pytest.mark.parametrize(("version", "count"), [(18, 2), (21, 4)])
def test_group_normalisation(version, count, tmp_path):
    """One factor for each group before opset 21, then for each channel."""
    numbers = [constant("s", np.linspace(1, 2, count)), constant("b", np.linspace(-1, 2, count))]
    one = node("GroupNormalization", ["x", "s", "b"], "y", num_groups=2)
    content = made(one, shape=(1, 4, 3, 5), initializers=numbers, opset=("", version))
    compare(content, tmp_path / "m", (1, 4, 3, 5))


def test_shapes_of_the_file():
    """A stale shape is a note, as onnxruntime warns: operators determine shapes."""
    shapes = {"b": (7, 3), "a": (2, "n")}
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = graph_of(made(*CHAIN, initializers=[FACTOR], infos=infos))
    assert graph.remarks == ("'b' has the shape [7, 3] in the file, and operator 1 (Mul), result 'b' computes [2, 3]",)


def test_a_wrong_translation_is_an_internal_error(monkeypatch):
    """Shapes of the reader are compared with those of its own operators."""
    monkeypatch.setattr(reductions, "axes_of", lambda op, rank: axes_of(op, rank)[:1])
    with pytest.raises(OpwestError) as caught:
        graph_of(made(node("ReduceSum", ["x"], "y", keepdims=1)))
    text = str(caught.value)
    assert "internal error: result 'y' has the shape [1, 1], and SUM computes [1, 3]" in text
    assert "report this error with the model file and the version, opwest" in text


def test_an_exception_of_a_reader_is_an_internal_error(monkeypatch, tmp_path):
    """It is not 'the file is damaged'; nothing is written."""
    source = "def wrong(op, t):\n    return {}[op.kind]\n"
    scope = {"__name__": reductions.__name__}
    exec(compile(source, reductions.__file__, "exec"), scope)
    monkeypatch.setitem(TRANSLATIONS, "Relu", scope["wrong"])
    (tmp_path / "m.onnx").write_bytes(made(*CHAIN, initializers=[FACTOR]))
    with pytest.raises(OpwestError) as caught:
        import_model(tmp_path / "m.onnx", tmp_path / "out", Options())
    [one] = caught.value.diagnostics
    assert one.message == "internal error: KeyError: 'Relu', at opwest.frontends.onnx.reductions:2"
    assert one.hint.startswith("report this error with the model file and the version, opwest ")
    assert not (tmp_path / "out").exists()


def test_an_exception_in_the_child_is_an_internal_error(tmp_path):
    scope = {"__name__": "opwest.imports.convert"}
    exec("def run(path, folder, options, progress):\n    return [][3]\n", scope)
    request = {"path": str(tmp_path / "m.onnx"), "folder": str(tmp_path / "out"), "options": {}}
    [one] = child._answer(scope["run"], request, "cannot import the model")["diagnostics"]
    assert one["message"].startswith("internal error: IndexError: list index out of range, at opwest.imports.convert:2")
    # numpy is not to blame for its operands.
    exec("def run(*_):\n    import numpy\n    numpy.broadcast_to(numpy.zeros(3), (2,))\n", scope)
    [one] = child._answer(scope["run"], request, "cannot import the model")["diagnostics"]
    assert one["message"].startswith("internal error: ValueError: ") and one["message"].endswith(".convert:3")
    # An exception of another package is no internal error.
    answer = child._answer(lambda *_: np.zeros(3).reshape(2), request, "cannot import the model")
    assert answer["diagnostics"][0]["message"].startswith("cannot import the model: ")


def test_the_checker_of_onnx_has_the_deprecated_operator():
    """Otherwise the exception for it is superfluous."""
    assert defs.get_schema("GroupNormalization", 18, "").deprecated


def value(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


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
    made = Made(opset_of(random, 13))
    width = int(random.integers(1, 5))
    x = made.input(1, count, width)
    h = made.constant(floats(random, 1, width))
    turns = made.add("Gather", made.add("Shape", x), np.asarray(1, np.int64), axis=0)
    row = [node("Gather", [x, "turn"], "row", axis=1), node("Mul", ["h", "factor"], "scaled")]
    row += [node("Add", ["scaled", "row"], "sum"), node("Tanh", ["sum"], "new")]
    row += [node("Identity", ["before"], "again"), node("Neg", ["new"], "scan")]
    loop = body(row, ["new", "scan"] if scans else ["new"], ("factor", np.float32(0.5)))
    results = made.add("Loop", turns, np.asarray(True), h, body=loop, results=1 + scans)
    return made.output(*([results] if isinstance(results, str) else results))


def test_loops(tmp_path):
    random = np.random.default_rng(60)
    models = [unrolled(random, int(random.integers(1, 6)), number % 2) for number in range(2 * CONFIGURATIONS)]
    for made in check(models, tmp_path, random, ONNX["Tanh"]):
        assert "TANH" in kinds_of(made)


def test_condition_that_ends_a_loop(tmp_path):
    """`while i < 3`: the greatest number of turns is that of int64, the condition depends on the turn only."""
    made = Made(17)
    x = made.input(2, 3)
    nodes = [node("Exp", ["h"], "e"), node("Sub", ["e", "one"], "new")]
    nodes += [node("Add", ["turn", "step"], "next"), node("Less", ["next", "limit"], "again")]
    constants = ("one", np.float32(1)), ("step", np.int64(1)), ("limit", np.int64(3))
    loop = body(nodes, ["new"], *constants)
    for turns, condition in ((np.asarray(np.iinfo(np.int64).max), True), (np.int64(5), False), ("", True)):
        made.ending_with("Loop", turns, np.asarray(condition), x, body=loop)
    [found] = check([made], tmp_path, np.random.default_rng(61), ONNX["Exp"] * 100)
    assert kinds_of(found).count("EXP") == 6, "three turns, none, three"


def branched(random, nested):
    """A branch by the shape; nested: in a loop, with names of the outer graph, the body and the branch."""
    made = Made(opset_of(random, 13))
    x = made.input(1, int(random.integers(2, 5)))
    size = made.add("Gather", made.add("Shape", x), np.asarray(1, np.int64), axis=0)
    first = graph([node("Relu", ["h" if nested else x], "r")], [], [value("r")])
    second = graph([node("Mul", [x, "two"], "r")], [], [value("r")], ("two", np.float32(2)))
    if not nested:
        return made.ending_with("If", made.add("Equal", size, np.int64(3)), then_branch=first, else_branch=second)
    inner = [node("Equal", ["turn", "one"], "odd"), node("If", ["odd"], "new", then_branch=first, else_branch=second)]
    inner.append(node("Identity", ["before"], "again"))
    loop = body(inner, ["new"], ("one", np.int64(1)))
    return made.ending_with("Loop", np.int64(3), "", made.add("Neg", x), body=loop)


def test_branches(tmp_path):
    random = np.random.default_rng(62)
    models = [branched(random, number % 2) for number in range(2 * CONFIGURATIONS)]
    check(models, tmp_path, random, ONNX["Mul"])


def refused_branch():
    made = Made(17)
    x = made.input(1, 2)
    flag = made.add("Greater", made.add("ReduceSum", x, keepdims=0), np.float32(0))
    parts = [graph([node(kind, [x], "r")], [], [value("r")]) for kind in ("Relu", "Neg")]
    return made.ending_with("If", flag, then_branch=parts[0], else_branch=parts[1]).model()


def refused_loop(turns, again="before"):
    made = Made(17)
    x = made.input(1, 2)
    nodes = [node("Relu", ["h"], "new"), node("ReduceSum", ["h"], "sum", keepdims=0)]
    nodes += [node("Cast", ["sum"], "flag", to=TensorProto.BOOL), node("Identity", [again], "again")]
    count = made.input(dtype="int64") if turns is None else np.int64(turns)
    return made.ending_with("Loop", count, np.asarray(True), x, body=body(nodes, ["new"])).model()


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

# SPDX-License-Identifier: Apache-2.0
"""ONNX files that onnxruntime runs: no axes, operators in any order, one domain; and internal errors of readers."""

from pathlib import Path

import numpy as np
import pytest
from requirements_support import need, skip_here

need("onnx", "onnxruntime")

import onnx  # noqa: E402
from models.onnx_support import session  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from opwest.cli.main import main  # noqa: E402
from opwest.diagnostics import Diagnostics, OpwestError  # noqa: E402
from opwest.importers import child  # noqa: E402
from opwest.importers.models.convert import import_model  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.graph.types import Rules  # noqa: E402
from opwest.importers.models.interpret.run import outputs_of, run_graph  # noqa: E402
from opwest.importers.models.onnx.reductions import axes_of  # noqa: E402
from opwest.importers.models.onnx.registry import TRANSLATIONS  # noqa: E402
from opwest.importers.models.read import read_model  # noqa: E402
from opwest.importers.models.request import Options  # noqa: E402
from opwest.importers.models.simplify.folding import Folding  # noqa: E402

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases" / "onnx"
REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)


def made(nodes, shape=(2, 3), initializers=(), outputs=("y",), opsets=(("", 18),), infos=()):
    """Return a file with the input x."""
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    for one in results:
        one.type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(list(nodes), "made", values, results, list(initializers), value_info=list(infos))
    versions = [helper.make_opsetid(*one) for one in opsets]
    return helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString()


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
    found = outputs_of(graph, run_graph(graph, [x]))
    for one, other in zip(wanted, found, strict=True):
        assert one.shape == other.shape and np.allclose(one, other, 1e-5, 1e-6)
    folder.mkdir(exist_ok=True)
    (folder / "m.onnx").write_bytes(content)
    import_model(folder / "m.onnx", folder / "out", Options(vectors=0))
    return graph


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMax", "ReduceL2"])
def test_only_1_keeps_the_dimensions(kind, tmp_path):
    """Other values of keepdims are 0, as in onnxruntime."""
    graph = compare(made([helper.make_node(kind, ["x"], ["y"], keepdims=2)]), tmp_path / "m")
    assert len(graph.outputs[0].shape) < 2


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_over_no_axes(kind, tmp_path):
    """Nothing is reduced, the function of the elements remains."""
    empty = numpy_helper.from_array(np.zeros(0, np.int64), "axes")
    for number, (inputs, keep) in enumerate((i, k) for i in (["x"], ["x", ""], ["x", "axes"]) for k in (0, 1)):
        node = helper.make_node(kind, inputs, ["y"], noop_with_empty_axes=1, keepdims=keep)
        compare(made([node], initializers=[empty] if "axes" in inputs else []), tmp_path / str(number))
    compare(made([helper.make_node(kind, ["x"], ["y"], keepdims=0)]), tmp_path / "all")


def chain():
    """Return three operators in order."""
    one = numpy_helper.from_array(np.float32([2]), "k")
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Mul", ["a", "k"], ["b"]),
        helper.make_node("Add", ["b", "a"], ["y"]),
    ]
    return nodes, [one]


def test_operators_in_any_order(tmp_path):
    nodes, constants = chain()
    kinds = []
    for number, order in enumerate(([2, 1, 0], [1, 0, 2], [0, 1, 2], [2, 0, 1])):
        content = made([nodes[i] for i in order], initializers=constants)
        if order == [0, 1, 2]:
            compare(content, tmp_path / "sorted")
        graph = graph_of(content)
        kinds.append([node.kind for node in graph.nodes])
        (tmp_path / f"{number}.onnx").write_bytes(content)
        import_model(tmp_path / f"{number}.onnx", tmp_path / f"out{number}", Options(vectors=0))
    assert kinds == [kinds[2]] * 4


def test_operators_in_any_order_inside_of_a_branch(tmp_path):
    nodes, constants = chain()
    branch = helper.make_graph(
        [nodes[2], nodes[1], nodes[0]], "b", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))]
    )
    condition = numpy_helper.from_array(np.asarray(True), "c")
    node = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    content = made([node], initializers=[*constants, condition], outputs=("z",))
    x = np.float32([[1, -2, 3], [4, 5, -6]])
    graph = graph_of(content)
    assert np.array_equal(outputs_of(graph, run_graph(graph, [x]))[0], np.maximum(x, 0) * 3)


def test_operators_that_need_each_other(tmp_path, capsys):
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    (tmp_path / "m.onnx").write_bytes(made(nodes, outputs=("b",)))
    assert main(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 1
    assert "the file is damaged: the operators 0 (Add), 1 (Relu) read results of each other" in capsys.readouterr().err


def test_tensors_that_nothing_writes(tmp_path, capsys):
    """All of them, also where the operators are not in their order."""
    nodes = [helper.make_node("Add", ["a", "b"], ["y"]), helper.make_node("Mul", ["x", "c"], ["a"])]
    (tmp_path / "m.onnx").write_bytes(made(nodes, outputs=("y", "z")))
    assert main(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 1
    expected = (
        "the file is damaged: operator 0 (Mul) reads 'c', which nothing writes; "
        "operator 1 (Add) reads 'b', which nothing writes; nothing writes the output 'z'\n"
    )
    assert expected in capsys.readouterr().err


def test_files_with_one_domain(tmp_path):
    node = helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    compare(made([node], opsets=(("com.microsoft", 1),)), tmp_path / "m")
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    (tmp_path / "m.onnx").write_bytes(made(nodes, opsets=(("com.microsoft", 1),)))
    with pytest.raises(OpwestError, match=r"opset none of ai\.onnx"):
        import_model(tmp_path / "m.onnx", tmp_path / "none", Options())


@pytest.mark.parametrize(("version", "count"), [(18, 2), (21, 4)])
def test_group_normalisation(version, count, tmp_path):
    """One factor for each group before opset 21, then for each channel."""
    ranges = {"s": (1, 2), "b": (-1, 2)}
    numbers = [
        numpy_helper.from_array(np.linspace(*ends, count).astype(np.float32), name) for name, ends in ranges.items()
    ]
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
    content = made([node], shape=(1, 4, 3, 5), initializers=numbers, opsets=(("", version),))
    compare(content, tmp_path / "m", (1, 4, 3, 5))


def test_shapes_of_the_file(tmp_path):
    """A stale shape is a note, as onnxruntime warns: operators determine shapes."""
    nodes, constants = chain()
    shapes = {"b": (7, 3), "a": (2, "n")}
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = graph_of(made(nodes, initializers=constants, infos=infos))
    assert graph.remarks == ("'b' has the shape [7, 3] in the file, and operator 1 (Mul), result 'b' computes [2, 3]",)


def test_a_wrong_translation_is_an_internal_error(monkeypatch):
    """Shapes of the reader are compared with those of its own operators."""
    module = __import__("opwest.importers.models.onnx.reductions", fromlist=["axes_of"])
    monkeypatch.setattr(module, "axes_of", lambda op, rank: axes_of(op, rank)[:1])
    content = made([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1)])
    with pytest.raises(OpwestError) as caught:
        graph_of(content)
    text = str(caught.value)
    assert "internal error: result 'y' has the shape [1, 1], and SUM computes [1, 3]" in text
    assert "report this error with the model file and the version, opwest" in text


def test_an_exception_of_a_reader_is_an_internal_error(monkeypatch, tmp_path):
    """It is not 'the file is damaged'; nothing is written."""
    from opwest.importers.models.onnx import reductions

    source = "def wrong(op, t):\n    return {}[op.kind]\n"
    scope = {"__name__": reductions.__name__}
    exec(compile(source, reductions.__file__, "exec"), scope)
    monkeypatch.setitem(TRANSLATIONS, "Relu", scope["wrong"])
    nodes, constants = chain()
    (tmp_path / "m.onnx").write_bytes(made(nodes, initializers=constants))
    with pytest.raises(OpwestError) as caught:
        import_model(tmp_path / "m.onnx", tmp_path / "out", Options())
    [one] = caught.value.diagnostics
    assert one.message == "internal error: KeyError: 'Relu', at opwest.importers.models.onnx.reductions:2"
    assert one.hint.startswith("report this error with the model file and the version, opwest ")
    assert not (tmp_path / "out").exists()


def test_an_exception_in_the_child_is_an_internal_error(tmp_path):
    scope = {"__name__": "opwest.importers.models.convert"}
    exec("def run(path, folder, options, progress):\n    return [][3]\n", scope)
    request = {"path": str(tmp_path / "m.onnx"), "folder": str(tmp_path / "out"), "options": {}}
    [one] = child._answer(scope["run"], request, "cannot import the model")["diagnostics"]
    assert one["message"].startswith(
        "internal error: IndexError: list index out of range, at opwest.importers.models.convert:2"
    )
    # numpy is not to blame for its operands.
    exec("def run(*_):\n    import numpy\n    numpy.broadcast_to(numpy.zeros(3), (2,))\n", scope)
    [one] = child._answer(scope["run"], request, "cannot import the model")["diagnostics"]
    assert one["message"].startswith("internal error: ValueError: ") and one["message"].endswith(".convert:3")
    # An exception of another package is no internal error.
    answer = child._answer(lambda *_: np.zeros(3).reshape(2), request, "cannot import the model")
    assert answer["diagnostics"][0]["message"].startswith("cannot import the model: ")


@pytest.mark.parametrize(
    "name", ["rs_noop_none_18", "rs_noop_nokeep_18", "ReduceMax_noop_18", "groupnorm_18", "unsorted"]
)
def test_shared_cases(name, tmp_path):
    if not SHARED.is_dir():
        skip_here(f"no directory {SHARED}")
    content = (SHARED / f"{name}.onnx").read_bytes()
    graph = graph_of(content)
    import_model(SHARED / f"{name}.onnx", tmp_path / "out", Options(vectors=0))
    if "noop" in name:
        x = np.load(SHARED / "x.npy")
        [found] = outputs_of(graph, run_graph(graph, [x]))
        assert np.array_equal(found, x)


def test_the_checker_of_onnx_has_the_deprecated_operator():
    """Otherwise the exception for it is superfluous."""
    assert onnx.defs.get_schema("GroupNormalization", 18, "").deprecated

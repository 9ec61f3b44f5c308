# SPDX-License-Identifier: Apache-2.0
"""Archives of exported programs, made by the test without PyTorch: what they mean, and what is refused."""

import io
import json
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from importers.torch_made import Program, Ref, argument, convolution, meta, quantised, ring, zipped
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Rules, Unsupported
from opwest.compiler.reference.run import outputs_of, run_graph
from opwest.compiler.request import Options
from opwest.frontends.read import read_model
from opwest.frontends.torch.trusted import for_runtime
from opwest.imports.convert import import_model


@pytest.fixture
def generator():
    return np.random.default_rng(3)


def read(content, rules=None):
    """Return the checked graph of an archive."""
    [graph] = read_model(content, "m.pt2", rules)
    faults = Diagnostics()
    check_graph(graph, "m.pt2", faults)
    faults.raise_if_errors()
    return graph


def results(graph, *inputs, state=None):
    return outputs_of(graph, run_graph(graph, list(inputs), {} if state is None else state))


def refused(content):
    with pytest.raises(OpwestError) as caught:
        read(content)
    return str(caught.value)


def refused_program(change, make=convolution):
    """Return the error of a program that `change` has changed."""
    program = make(np.random.default_rng(3))
    change(program)
    return refused(program.content())


def test_a_network(generator):
    """The same operations in numpy."""
    p = convolution(generator)
    graph = read(p.content())
    assert [tensor.name for tensor in (*graph.inputs, *graph.outputs)] == ["x", "softmax"]
    assert graph.nodes[-1].label == "5 'softmax' (aten.softmax.int)"
    x = generator.normal(size=(1, 3, 8, 8)).astype(np.float32)
    arrays = p.arrays
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))[:, :, ::2, ::2]
    y = np.einsum("nchwij,ocij->nohw", windows, arrays["p.conv"])
    along = (1, 4, 1, 1)
    y = (y - arrays["b.mean"].reshape(along)) / np.sqrt(arrays["b.var"].reshape(along) + 1e-5)
    y = np.maximum(y * arrays["p.bn"].reshape(along) + arrays["p.shift"].reshape(along), 0).mean((2, 3))
    y = np.exp(y @ arrays["p.matrix"].T + arrays["p.bias"])
    [found] = results(graph, x)
    np.testing.assert_allclose(found, y / y.sum(), atol=1e-6)


@pytest.mark.parametrize("form", ["deflated", "other top folder", "2.7"])
def test_forms_of_an_archive(generator, form):
    """Equal tensors in all of them."""
    p = convolution(generator)
    expected = results(read(p.content()), np.ones((1, 3, 8, 8), np.float32))
    contents = {
        "deflated": lambda: p.content(compression=zipfile.ZIP_DEFLATED),
        "other top folder": lambda: p.content(top="archive/"),
        "2.7": p.old_content,
    }
    np.testing.assert_array_equal(results(read(contents[form]()), np.ones((1, 3, 8, 8), np.float32)), expected)


def test_exact_rounding(generator):
    """A product with the inverse of the scale, the float32 bias before the rounding, half to even."""
    p = quantised(generator)
    x = generator.uniform(-2, 2, (1, 3, 8, 8)).astype(np.float32)
    inverse = np.float32(1 / 0.02)
    q = np.clip(np.rint(x * inverse) + 3, -128, 127)
    wide = np.pad((q - 3) * 0.02, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    weights = p.arrays["b.weight"] * p.arrays["b.scales"].astype(np.float64).reshape(4, 1, 1, 1)
    y = np.einsum("nchwij,ocij->nohw", windows, weights) + p.arrays["p.bias"].reshape(1, 4, 1, 1)
    expected = np.clip(np.rint(y / 0.05) - 7, -128, 127)
    [exact] = results(read(p.content(), Rules(float_requantization=True)), x)
    np.testing.assert_array_equal(np.rint(exact / 0.05) - 7, expected)
    [rounded] = results(read(p.content()), x)
    assert 0 < np.abs(rounded - exact).max() <= 0.05 * 1.001


def test_narrow_limits_are_clamps(generator):
    p = quantised(generator)
    for node in p.nodes:
        for entry in node["inputs"]:
            if entry["name"] == "quant_min" and node["outputs"][0]["as_tensor"]["name"] == "q_1":
                entry["arg"] = {"as_int": -20}
    [found] = results(read(p.content(), Rules(float_requantization=True)), np.full((1, 3, 8, 8), -2, np.float32))
    assert np.isclose(found.min(), (-20 + 7) * 0.05)


def test_affine_operators_of_torchao(generator):
    """Scales are tensors of one element, blocks are whole tensors: equal to quantize_per_tensor."""
    p = quantised(generator)
    expected = results(read(p.content()), np.ones((1, 3, 8, 8), np.float32))
    constants = {}
    for number, node in enumerate(p.nodes):
        kind = node["target"].rpartition(".")[0].rpartition(".")[2]
        if kind not in ("quantize_per_tensor", "dequantize_per_tensor"):
            continue
        given = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        scale = p.constant(f"b_scale{number}", np.asarray([given["scale"]["as_float"]], np.float32), "buffer")
        zero = p.constant(f"b_zero{number}", np.asarray([given["zero_point"]["as_int"]], np.int32), "buffer")
        constants[number] = (scale, zero)
        shape = [size["as_int"] for size in p.metas[given["input"]["as_tensor"]["name"]]["sizes"]]
        arguments = {"input": given["input"], "block_size": shape, "scale": scale, "zero_point": zero}
        node["target"] = f"torch.ops.torchao.{kind.partition('_')[0]}_affine.default"
        node["inputs"] = [{"name": name, "arg": argument(value)} for name, value in arguments.items()]
    assert len(constants) == 4
    np.testing.assert_array_equal(results(read(p.content()), np.ones((1, 3, 8, 8), np.float32)), expected)
    blocks = next(entry for entry in p.nodes[1]["inputs"] if entry["name"] == "block_size")
    blocks["arg"] = {"as_ints": [1, 3, 4, 8]}
    assert "scales of blocks [1, 3, 4, 8] of [1, 3, 8, 8]" in refused(p.content())


def test_graphs_that_only_set_a_mode():
    """with torch.no_grad(): the operators of the inner graph, whose names occur outside as well."""
    p, inner = Program(), Program()
    x = p.input("x", (1, 4))
    y = p.call("aten.neg.default", "y", (1, 4), self=x)
    inner.metas["x"] = meta("float32", (1, 4))
    z = inner.call("aten.relu.default", "y", (1, 4), self=Ref("x"))
    inner.call("aten.add.Tensor", "z", (1, 4), self=z, other=Ref("x"))
    graph = inner.document()["graph_module"]["graph"]
    graph |= {"inputs": [{"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "z"}}]}
    wrapped = {"as_graph": {"name": "submod", "graph": graph}}
    p.call("higher_order.wrap_with_set_grad_enabled", "out", (1, 4), **{"0": False, "1": wrapped, "2": y})
    p.output("out", y)
    given = np.asarray([[1, -2, 3, -4]], np.float32)
    outputs = results(read(p.content()), given)
    np.testing.assert_array_equal(outputs[0], np.maximum(-given, 0) - given)
    np.testing.assert_array_equal(outputs[1], -given)
    p.nodes[1]["target"] = "torch.ops.higher_order.cond"
    assert "control flow that depends on data" in refused(p.content())


def test_a_buffer_that_changes_is_a_state(generator):
    p = ring(generator)
    graph = read(p.content())
    [(state, after)] = graph.updates.items()
    assert state.is_state and state.name == "b_ring" and after.name == "cat"
    values = list(p.arrays["b.ring"][0])
    memory = {}
    for number in range(6):
        values = [*values[1:], np.float32(number)]
        [found] = results(graph, np.full((1, 1), number, np.float32), state=memory)
        np.testing.assert_allclose(found, [sum(values)], rtol=1e-6)


def test_a_state_in_the_manifest(generator, tmp_path):
    (tmp_path / "ring.pt2").write_bytes(ring(generator).content())
    done = import_model(tmp_path / "ring.pt2", tmp_path / "out", Options(vectors=2))
    text = (tmp_path / "out/manifest.yaml").read_text()
    assert "state:" in text and "b_ring: {dtype: float32, shape: [1, 4]" in text
    layers = [layer["operators"][0] for layer in done.layers[0]["layers"] if layer["operators"]]
    assert {"number": 3, "kind": "aten.sum.dim_IntList", "name": "sum_1"}.items() <= layers[-1].items()


def test_a_symbolic_batch_is_one():
    p = Program()
    x = p.input("x", (5, 4), symbol="Symbol('s77', positive=True, integer=True)")
    p.output(p.call("aten.relu.default", "relu", (1, 4), self=x))
    p.metas["relu"] = meta("float32", (5, 4), "s77")
    graph = read(p.content())
    assert graph.inputs[0].shape == (1, 4)
    assert graph.remarks == ("input 'x' of shape [s77, 4] is imported as [1, 4]",)


def test_other_symbolic_dimensions():
    p = Program()
    x = p.input("x", (5, 4))
    p.metas["x"]["sizes"][1] = {"as_expr": {"expr_str": "s3"}}
    p.output(p.call("aten.relu.default", "relu", (5, 4), self=x))
    text = refused(p.content())
    assert "the input 'x' has the symbolic dimension 's3'" in text and "without dynamic_shapes" in text


def test_all_unsupported_operators_at_once():
    p = Program()
    x = p.input("x", (1, 4))
    y = p.call("mylib.scaled.default", "scaled", (1, 4), x=x, factor=0.5)
    z = p.call("aten.fft_rfft.default", "rfft", (1, 3), "complex64", self=x)
    z = p.call("aten.abs.default", "abs_1", (1, 3), self=z)
    y = p.call("aten.linalg_inv.default", "inv", (1, 4), self=y)
    p.output(y, z)
    text = refused(p.content())
    for operator in ("0 'scaled' (mylib.scaled)", "1 'rfft' (aten.fft_rfft)", "3 'inv' (aten.linalg_inv)"):
        assert f"operator {operator}: unsupported operator" in text
    assert "--operator mylib.scaled=FILE.yaml" in text and "abs" not in text


def test_an_operator_of_the_user(tmp_path):
    p = Program()
    x = p.input("x", (1, 4))
    y = p.call("mylib.scaled.default", "scaled", (1, 4), x=x, factor=0.5)
    p.output(p.call("aten.relu.default", "relu", (1, 4), self=y))
    (tmp_path / "m.pt2").write_bytes(p.content())
    source = "void scaled(const float *x, float *y, float factor)\n{\n\ty[0] = x[0] * factor;\n}\n"
    (tmp_path / "scaled.c").write_text(source)
    (tmp_path / "scaled.yaml").write_text(
        "objects: [{files: [scaled.c]}]\noperators:\n  scaled:\n    returns: void\n    args:\n"
        "      - {name: x, dtype: float32}\n      - {name: y, dtype: float32, direction: out}\n"
        "      - {name: factor, dtype: float32, scalar: true}\n"
    )
    for name in ("mylib.scaled", "mylib.scaled.default"):
        options = Options(operators=((name, str(tmp_path / "scaled.yaml")),), vectors=0)
        import_model(tmp_path / "m.pt2", tmp_path / name, options)
        assert "call: scaled, args: [x, t0, 0.5]" in (tmp_path / name / "manifest.yaml").read_text().replace("\n", "")


def test_pickles_are_never_opened(generator):
    """Payloads that are pickles are refused; sample inputs are not read, and no runtime gets them."""
    p = convolution(generator)
    members = p.members()
    config = json.loads(members["data/weights/model_weights_config.json"])
    config["config"]["p.conv"]["use_pickle"] = True
    text = refused(zipped(members | {"data/weights/model_weights_config.json": json.dumps(config)}))
    assert "the tensor 'p.conv' is a pickle ('use_pickle': true), which is never opened" in text
    with zipfile.ZipFile(io.BytesIO(for_runtime(p.content()))) as archive:
        assert archive.read("m/data/sample_inputs/model.pt") == b""
        assert json.loads(archive.read("m/models/model.json")) == json.loads(members["models/model.json"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.nodes[0].update(target="torch.serialization.os.system"), "calls 'torch.serialization.os.system'"),
        (lambda p: p.metas["x"]["sizes"].insert(0, expression("__import__('os')")), "PyTorch evaluates"),
        (lambda p: p.metas["x"]["sizes"].insert(0, expression("eval('x')")), "PyTorch evaluates"),
        (lambda p: p.metas["x"]["sizes"].insert(0, expression("s0.__class__")), "PyTorch evaluates"),
        (lambda p: p.nodes[0].update(in_spec='[1, {"type": "os.path", "context": "null"}]'), "other containers"),
    ],
)
def test_pytorch_gets_no_code(generator, change, message):
    """What torch.export.load would evaluate, import or call."""
    p = convolution(generator)
    change(p)
    with pytest.raises(Unsupported) as caught:
        for_runtime(p.content())
    assert message in str(caught.value)


def expression(text):
    return {"as_expr": {"expr_str": text}}


def test_pytorch_gets_programs_of_pytorch(generator):
    p = convolution(generator)
    symbol = "Mul(Integer(2), Symbol('s77', positive=True, integer=True))"
    p.metas["x"]["sizes"][0] = expression(symbol)
    p.nodes[0]["in_spec"] = '[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]'
    document = p.document() | {"guards_code": ["print('guard')"]}
    members = p.members() | {"models/model.json": json.dumps(document)}
    with zipfile.ZipFile(io.BytesIO(for_runtime(zipped(members)))) as archive:
        given = json.loads(archive.read("m/models/model.json"))
    assert given.pop("guards_code") == [] and given == p.document()


def test_calls_of_old_pickles_are_refused(generator):
    p = convolution(generator)
    members = {"serialized_exported_program.json": json.dumps(p.document())}
    call = b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R."
    saved = zipped({"data.pkl": call}, top="archive/")
    text = refused(zipped(members | {"serialized_state_dict.pt": saved}, top=""))
    assert "a pickle with a call of 'os.system', which is not executed" in text
    saved = zipped({"data.pkl": b"\x80\x02I1\n."}, top="archive/")
    text = refused(zipped(members | {"serialized_state_dict.pt": saved}, top=""))
    assert "a pickle with the opcode 0x49, which is not read" in text and "torch.export.save" in text


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"data/aotinductor/model/model.so": b""}, "AOTInductor compiled for this machine"),
        ({"models/other.json": b"{}"}, "the archive contains the models 'model', 'other'"),
        ({"byteorder": b"big"}, "an archive of a big-endian machine"),
        ({"models/model.json": b"[1"}, "the member 'm/models/model.json' is no JSON text"),
        ({"models/model.json": b"[]"}, "the member 'm/models/model.json' is no JSON object"),
        ({"../x": b""}, "a member with the path"),
        ({"data/weights/weight_0": b"123"}, "the tensor 'p.conv' has 3 bytes, fewer than its shape [4, 3, 3, 3]"),
    ],
)
def test_members(generator, members, message):
    assert message in refused(zipped(convolution(generator).members() | members))


def test_missing_members(generator):
    members = convolution(generator).members()
    del members["data/weights/weight_2"]
    assert "no member 'm/data/weights/weight_2'" in refused(zipped(members))
    assert "error: the file is a zip file" in refused(zipped({"notes.txt": b""}))


def test_overlapping_members(generator):
    """Two entries of the directory with one place: a zip bomb."""
    content = convolution(generator).content()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.start_dir
    first = content.index(b"PK\x01\x02", start)
    second = content.index(b"PK\x01\x02", first + 4)
    place = content[first + 42 : first + 46]
    assert "overlaps another one" in refused(content[: second + 42] + place + content[second + 46 :])


def test_sizes_are_limited(generator):
    """A member that announces more than its bytes, and a tensor of 2**40 elements."""
    content = bytearray(convolution(generator).content())
    entry = content.index(b"PK\x01\x02")
    content[entry + 20 : entry + 28] = struct.pack("<II", 1 << 30, 1 << 30)
    assert "ends after the end of the file" in refused(bytes(content))

    def widen(program):
        program.metas["relu"]["sizes"] = [{"as_int": 1 << 20}, {"as_int": 1 << 20}]

    assert "the tensor 'relu' has the impossible shape [1048576, 1048576]" in refused_program(widen)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.schema.update(major=4), "version 4 of PyTorch's schema of exported programs"),
        (lambda p: p.metas["x"].update(dtype=77), "the tensor 'x' has the unknown dtype 77"),
        (lambda p: p.metas.pop("x"), "the tensor 'x' has no type"),
        (lambda p: p.nodes[0].pop("target"), "operator 0 has no 'target'"),
        (lambda p: p.nodes[0]["inputs"].append([]), "operator 0 is not an object"),
        (lambda p: p.metas.update(relu=meta("float32", (1, 4, 4, 5))), "the tensor 'relu' is float32 [1, 4, 4, 5]"),
        (lambda p: p.output_specs.clear(), "no output"),
        (lambda p: p.input_specs.append({"custom_obj": {"custom_obj_name": "o"}}), "the custom object 'o'"),
        (lambda p: p.nodes[1]["inputs"][5].update(arg={"as_bool": True}), "aten.batch_norm of a training"),
        (
            lambda p: p.nodes[3]["inputs"][1].update(arg={"as_ints": [9]}),
            "operator 3 'mean' (aten.mean.dim): dimension 9",
        ),
        (
            lambda p: p.nodes[2]["inputs"][0].update(arg={"as_tensor": {"name": "no"}}),
            "operator 2 'relu' (aten.relu) reads 'no', which no earlier operator computes",
        ),
    ],
)
def test_damaged_programs(change, message):
    assert message in refused_program(change)


def test_views_share_their_elements():
    """y = x * 1; y[:, 1:3].mul_(2): y changes, x does not."""
    p = Program()
    x = p.input("x", (1, 4))
    y = p.call("aten.mul.Tensor", "y", (1, 4), self=x, other=1.0)
    part = p.call("aten.slice.Tensor", "part", (1, 2), self=y, dim=1, start=1, end=3)
    p.call("aten.mul_.Tensor", "mul_", (1, 2), self=part, other=2.0)
    p.output(p.call("aten.add.Tensor", "sum", (1, 4), self=y, other=x))
    given = np.asarray([[1, 2, 3, 4]], np.float32)
    np.testing.assert_array_equal(results(read(p.content()), given)[0], [[2, 6, 9, 8]])


def test_a_copy_or_a_view_that_changes_is_refused():
    p = Program()
    x = p.input("x", (1, 4))
    y = p.call("aten.mul.Tensor", "y", (1, 4), self=x, other=1.0)
    flat = p.call("aten.reshape.default", "flat", (4,), self=y, shape=[4])
    p.call("aten.mul_.Tensor", "mul_", (4,), self=flat, other=2.0)
    p.output(p.call("aten.add.Tensor", "sum", (1, 4), self=y, other=x))
    text = refused(p.content())
    assert "'y' can be a copy or a view of a tensor that is changed in place" in text
    assert "run_decompositions()" in text


def test_a_changed_input_is_a_remark():
    p = Program()
    x = p.input("x", (1, 4))
    y = p.call("aten.relu_.default", "relu_", (1, 4), self=x)
    p.output(p.call("aten.mul.Tensor", "mul", (1, 4), self=y, other=3.0))
    assert read(p.content()).remarks == ("the program changes its input 'x' in place: the import leaves it as it is",)


def test_one_tensor_as_several_outputs():
    p = Program()
    x = p.input("x", (1, 4))
    y = p.call("aten.relu.default", "relu", (1, 4), self=x)
    p.output(y, y, Ref("x"))
    graph = read(p.content())
    assert [tensor.name for tensor in graph.outputs] == ["relu", "relu_1", "x_2"]


def test_the_reader_imports_no_torch_and_no_pickle():
    code = (
        "import sys, opwest.frontends.torch.read\n"
        "before = set(sys.modules)\n"
        "import opwest.frontends.torch.saved, opwest.frontends.torch.archive\n"
        "sources = [m.__file__ for n, m in sys.modules.items() if n.startswith('opwest.frontends.torch')]\n"
        "assert len(sources) > 15 and 'torch' not in sys.modules\n"
        "for path in sources:\n"
        "    text = open(path).read()\n"
        "    assert 'import pickle' not in text and 'import torch' not in text, path\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

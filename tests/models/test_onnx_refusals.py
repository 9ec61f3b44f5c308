# SPDX-License-Identifier: Apache-2.0
"""ONNX files that cannot be imported: every reason with what was found, shapes of parameters, and damaged files."""

import numpy as np
import pytest
from models.onnx_support import Made
from onnx import ModelProto, TensorProto, helper
from onnxruntime import InferenceSession
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.compiler.graph.check import check_graph
from opwest.compiler.lowering.builder import lower_graph
from opwest.frontends.read import read_model


def refused(model):
    content = model if isinstance(model, bytes) else model.SerializeToString()
    faults = Diagnostics()
    try:
        for graph in read_model(content, "m.onnx"):
            check_graph(graph, "m.onnx", faults)
    except OpwestError as error:
        return "\n".join(map(str, error.diagnostics))
    return "\n".join(map(str, faults))


def one(kind, *inputs, opset=17, shape=(1, 2, 4, 4), data="float32", **options):
    """Return a model of one operator; inputs are constants, or functions that add to the model."""
    made = Made(opset)
    x = made.input(*shape, dtype=data)
    inputs = [given(made) if callable(given) else given for given in inputs]
    return made.ending_with(kind, x, *inputs, **options).model()


def zeros(*shape):
    return np.zeros(shape, np.float32)


def integers(*shape):
    return np.zeros(shape, np.uint8)


def test_all_operators_are_reported_at_once():
    made = Made(17)
    x = made.input(1, 2, 4, 4)
    y = made.add("Relu", made.add("Bernoulli", x))
    z = made.add("MaxPool", made.add("Custom", x, domain="com.microsoft"), kernel_shape=[2, 2])
    made.output(y, made.add("Det", x), z)
    text = refused(made.model())
    assert "operator 0 (Bernoulli), result 't0_0': unsupported operator" in text
    assert "operator 2 (Custom), result 't2_0': unsupported operator" in text and "importing-models.md" in text
    assert "operator 4 (Det)" in text and text.count("error:") == 3


def test_sequences_are_not_damaged():
    made = Made(17)
    x = made.input(1, 2, 4, 4)
    items = made.add("SequenceConstruct", x, x)
    made.output(made.add("SequenceAt", items, np.array(0, np.int64)))
    text = refused(made.model())
    assert "operator 0 (SequenceConstruct), result 't0_0': unsupported operator" in text and "damaged" not in text


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # as in a run: an error would prevent folding
@pytest.mark.parametrize(("kind", "dtype"), [(k, d) for k in ("Div", "Mod") for d in ("int32", "int64")])
def test_constant_quotients_by_zero_are_not_folded(kind, dtype):
    """onnxruntime refuses the model; numpy would compute 0."""
    made = Made(17)
    quotient = made.add(kind, np.array([4, 3], dtype), np.array([1, 0], dtype))
    made.output(made.add("Add", made.input(2), made.add("Cast", quotient, to=TensorProto.FLOAT)))
    model = made.model()
    content = model.SerializeToString()
    with pytest.raises(Exception, match=r"zero|initialization"):
        InferenceSession(content, providers=["CPUExecutionProvider"])
    text = refused(model)
    if dtype == "int64" and kind == "Div":
        assert "operator 0 (Div)" in text and "unsupported dtypes int64, int64" in text
        return
    faults = Diagnostics()
    with pytest.raises(OpwestError):
        lower_graph(read_model(content, "m.onnx")[0], "m.onnx", faults)
    text = "\n".join(map(str, faults))
    assert f"operator 0 ({kind})" in text and "contains 0" in text


def dynamic_shape(*shape):
    model = one("Relu")
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape))
    return model


def external():
    model = one("Add", zeros(1, 2, 4, 4))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return model


def sparse():
    model = one("Relu")
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("places", TensorProto.INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    return model


def with_opset(version):
    model = one("Relu")
    model.opset_import[0].version = version
    return model


def rnn(*inputs, **options):
    return one(
        "RNN", zeros(1, 4, 3), zeros(1, 4, 4), *inputs, opset=13, shape=(2, 1, 3), results=2, hidden_size=4, **options
    )


def resized_integers(size, **options):
    made = Made(18)
    y = made.add("QuantizeLinear", made.input(1, 2, 4, 4), np.float32(0.1), np.uint8(3))
    return made.ending_with("Resize", y, "", "", np.asarray([1, 2, size, size], np.int64), **options).model()


REFUSED = {
    "the weights 't0_0' are computed when the model runs": lambda: one(
        "Conv", lambda made: made.add("Relu", made.input(3, 2, 1, 1))
    ),
    "the input 'x0' has the shape [1, 2, height, 4]": lambda: dynamic_shape(1, 2, "height", 4),
    "the tensor 'c0' is in another file": external,
    "the shape of 't0_0' is unknown": lambda: one("Reshape", lambda made: made.input(2, dtype="int64"), shape=(1, 8)),
    "the sparse tensor 's'\n  expected: dense tensors": sparse,
    "opset 99 of ai.onnx": lambda: with_opset(99),
    "dilations [2, 2]": lambda: one("AveragePool", opset=19, kernel_shape=[2, 2], dilations=[2, 2]),
    "data [1, 2, 2, 2, 2, 2]": lambda: one("MaxPool", shape=(1, 2, 2, 2, 2, 2), kernel_shape=[2, 2, 2, 2]),
    "mode cubic of uint8": lambda: resized_integers(8, mode="cubic"),
    "auto_pad SAME_UPPER with dilations [2, 2]": lambda: one(
        "MaxPool", kernel_shape=[2, 2], dilations=[2, 2], auto_pad="SAME_UPPER"
    ),
    "scale inf": lambda: one("QuantizeLinear", np.float32(np.inf), np.int8(0)),
    "ArgMax with select_last_index=1": lambda: one("ArgMax", select_last_index=1),
    "GatherND with batch_dims": lambda: one("GatherND", np.zeros((1, 1), np.int64), batch_dims=1),
    "activations Softsign": lambda: rnn(activations=["Softsign"]),
    "sequence_lens that are shorter than the sequence": lambda: rnn("", np.asarray([1], np.int32)),
    "clip or input_forget": lambda: rnn(clip=1.0),
    "an index outside of 2 elements": lambda: one("Gather", np.asarray([2], np.int64), axis=1),
    "mode linear with antialias of uint8": lambda: resized_integers(2, mode="linear", antialias=1),
    "mode nearest with antialias": lambda: one(
        "Resize", "", np.asarray([1, 1, 0.5, 0.5], np.float32), opset=18, mode="nearest", antialias=1
    ),
    "scale 0": lambda: one("QuantizeLinear", np.float32(0), np.int8(0)),
    "alpha=0": lambda: one("Celu", alpha=0.0),
    "blocksize 2, data [1, 2, 4, 4]": lambda: one("DepthToSpace", blocksize=2),
    "blocksize 3, data [1, 2, 4, 4]": lambda: one("SpaceToDepth", blocksize=3),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_reasons(reason):
    text = refused(REFUSED[reason]())
    assert reason in text and "damaged" not in text and text.count("error: ") == 1, text


def recurrent(kind, gates, hidden=4, **shapes):
    """Return a layer [steps 2, batch 3, width 5], in which some parameters have other shapes."""
    right = {
        "W": (1, gates * hidden, 5), "R": (1, gates * hidden, hidden), "B": (1, 2 * gates * hidden),
        "initial": (1, 3, hidden),
    }  # fmt: skip
    if kind == "LSTM":
        right |= {"cell": (1, 3, hidden), "P": (1, 3 * hidden)}
    found = [zeros(*shapes.get(name, shape)) for name, shape in right.items()]
    found.insert(3, "")
    return one(kind, *found, shape=(2, 3, 5), results=2, hidden_size=hidden)


def grouped(count, opset):
    return one("GroupNormalization", zeros(count), zeros(count), opset=opset, shape=(1, 4, 2, 2), num_groups=2)


def normalised_layer(*parameters):
    """Return two operators of which the first has a second reader, so that they stay two."""
    made = Made(13)
    y = made.add("Conv", made.input(1, 2, 4, 4), zeros(2, 2, 1, 1))
    return made.output(made.add("BatchNormalization", y, *parameters), made.add("Relu", y)).model()


FOUND = {
    "LSTM weights": (lambda: recurrent("LSTM", 4, W=(1, 16, 6)), "'c0' with the shape [1, 16, 6]", "[1, 16, 5]"),
    "LSTM directions": (lambda: recurrent("LSTM", 4, R=(2, 16, 4)), "with the shape [2, 16, 4]", "[1, 16, 4]"),
    "LSTM bias": (lambda: recurrent("LSTM", 4, B=(32,)), "with the shape [32]", "[1, 32]"),
    "LSTM peepholes": (lambda: recurrent("LSTM", 4, P=(1, 11)), "with the shape [1, 11]", "[1, 12]"),
    "LSTM cell": (lambda: recurrent("LSTM", 4, cell=(1, 2, 4)), "with the shape [1, 2, 4]", "[1, 3, 4]"),
    "GRU": (lambda: recurrent("GRU", 3, R=(1, 12, 5)), "with the shape [1, 12, 5]", "[1, 12, 4]"),
    "RNN": (lambda: recurrent("RNN", 1, W=(4, 5)), "with the shape [4, 5]", "[1, 4, 5]"),
    "batch normalisation": (
        lambda: one("BatchNormalization", zeros(2), zeros(2), zeros(3), zeros(2), opset=13),
        "input 3 'c2' with the shape [3]", "[2]",
    ),
    "batch normalisation after a layer": (
        lambda: normalised_layer(zeros(2), zeros(2), zeros(2, 1), zeros(2)), "with the shape [2, 1]", "[2]",
    ),
    "instance normalisation": (lambda: one("InstanceNormalization", zeros(3), zeros(2)), "the shape [3]", "[2]"),
    "group normalisation 18": (lambda: grouped(4, opset=18), "with the shape [4]", "[2]"),
    "group normalisation 21": (lambda: grouped(2, opset=21), "with the shape [2]", "[4]"),
    "layer normalisation": (lambda: one("LayerNormalization", zeros(3)), "'c0' with the shape [3]", "[4]"),
    "convolution": (lambda: one("Conv", zeros(3, 2, 1, 1), zeros(2)), "input 2 'c1' with the shape [2]", "[3]"),
    "transposed convolution": (
        lambda: one("ConvTranspose", zeros(2, 3, 1, 1), zeros(3), group=2), "with the shape [3]", "[6]"
    ),
    "quantised convolution": (
        lambda: one("ConvInteger", integers(3, 2, 1, 1), np.uint8(0), integers(2), data="uint8"),
        "with the shape [2]", "[] or [1] or [3]",
    ),
    "quantised product": (
        lambda: one("MatMulInteger", integers(4, 3), np.uint8(0), integers(4), data="uint8"),
        "with the shape [4]", "[] or [1] or [3]",
    ),
    "quantised product of several matrices": (
        lambda: one("MatMulInteger", integers(1, 2, 4, 3), data="uint8"),
        "with the shape [1, 2, 4, 3]", "[depth, results] or [depth]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_shapes_of_parameters(name):
    make, found, expected = FOUND[name]
    text = refused(make())
    assert f"{found}\n  expected: {expected}\n" in f"{text}\n" and "error: operator " in text, text
    assert text.count("error: ") == 1


def damaged(how):
    if how == "mismatched":
        return one("Conv", zeros(3, 5, 1, 1))
    if how == "exploding":
        return one("Add", lambda made: made.add("ConstantOfShape", np.asarray([1 << 20] * 2, np.int64)), shape=(1, 1))
    model = one("Add", zeros(1, 2, 4, 4))
    node, constant = model.graph.node[0], model.graph.initializer[0]
    if how == "cyclic":
        node.input[0] = "t0_0"
    elif how == "twice":
        model.graph.node.append(node)
    elif how == "short":
        constant.raw_data = b"1234"
    else:
        constant.dims[0] = 1 << 40
    return model


@pytest.mark.parametrize("how", ["cyclic", "twice", "short", "mismatched", "huge", "exploding"])
def test_damaged(how):
    text = refused(damaged(how))
    assert "m.onnx: error: " in text, text


def test_unknown_batch_is_one():
    [graph] = read_model(dynamic_shape("batch", 2, 4, 4).SerializeToString(), "m.onnx")
    assert graph.inputs[0].shape == (1, 2, 4, 4)
    assert graph.remarks == ("input 'x0' of shape [batch, 2, 4, 4] is imported as [1, 2, 4, 4]",)


def test_other_content():
    assert "not a TFLite, PyTorch or ONNX model" in refused(b"GIF89a not a model")
    assert "no archive (File is not a zip file)" in refused(b"PK\x03\x04 not a model")
    assert "no graph" in refused(ModelProto(ir_version=8).SerializeToString())
    assert "no graph" in refused(helper.make_model(helper.make_graph([], "g", [], [])).SerializeToString())


def test_attributes_of_other_opsets():
    old = refused(one("Add", np.ones(2, np.float32), opset=6, axis=1, broadcast=1))
    assert "axis=1 of opset 6" in old, old
    model = one("QuantizeLinear", np.float32(0.5), np.int8(0), opset=23, precision=TensorProto.FLOAT16)
    assert "precision=10 of opset 23" in refused(model)
    assert refused(one("QuantizeLinear", np.float32(0.5), np.int8(0), opset=23)) == ""


def test_training_mode():
    """The default of the attribute `is_test`, before opset 7, is training."""
    numbers = [np.ones(2, np.float32)] * 4
    for kind, inputs in (("BatchNormalization", numbers), ("Dropout", [])):
        assert f"{kind} in training mode" in refused(one(kind, *inputs, opset=6))
        assert refused(one(kind, *inputs, opset=6, is_test=1)) == ""
    training = one("BatchNormalization", *numbers, results=3, training_mode=1)
    assert "BatchNormalization in training mode" in refused(training)

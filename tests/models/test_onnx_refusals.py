# SPDX-License-Identifier: Apache-2.0
"""ONNX files that cannot be imported: every reason with what was found, and damaged files."""

import numpy as np
import pytest
from requirements_support import need

need("onnx", "onnxruntime")

import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from models.onnx_support import Made, floats  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from opwest.diagnostics import Diagnostics, OpwestError  # noqa: E402
from opwest.importers.models.graph.check import check_graph  # noqa: E402
from opwest.importers.models.lower.lower import lower_graph  # noqa: E402
from opwest.importers.models.read import read_model  # noqa: E402


def refused(model):
    """Return the messages for a model."""
    content = model if isinstance(model, bytes) else model.SerializeToString()
    faults = Diagnostics()
    try:
        for graph in read_model(content, "m.onnx"):
            check_graph(graph, "m.onnx", faults)
    except OpwestError as error:
        return "\n".join(map(str, error.diagnostics))
    return "\n".join(map(str, faults))


def one(kind, *inputs, opset=17, shape=(1, 2, 4, 4), data="float32", **options):
    made = Made(opset)
    made.output(made.add(kind, made.input(*shape, dtype=data), *inputs, **options))
    return made.model()


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
        onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    text = refused(model)
    if dtype == "int64" and kind == "Div":
        assert "operator 0 (Div)" in text and "unsupported dtypes int64, int64" in text
        return
    faults = Diagnostics()
    with pytest.raises(OpwestError):
        lower_graph(read_model(content, "m.onnx")[0], "m.onnx", faults)
    text = "\n".join(map(str, faults))
    assert f"operator 0 ({kind})" in text and "contains 0" in text


def runtime_weights():
    made = Made(17)
    x = made.input(1, 2, 4, 4)
    made.output(made.add("Conv", x, made.add("Relu", made.input(3, 2, 1, 1))))
    return made.model()


def dynamic_shape(*shape):
    model = one("Relu")
    del model.graph.input[0].type.tensor_type.shape.dim[:]
    for n in shape:
        dim = model.graph.input[0].type.tensor_type.shape.dim.add()
        if isinstance(n, str):
            dim.dim_param = n
        else:
            dim.dim_value = n
    return model


def external():
    model = one("Add", np.ones((1, 2, 4, 4), np.float32))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return model


def computed_shape():
    made = Made(17)
    x = made.input(1, 8)
    made.output(made.add("Reshape", x, made.input(2, dtype="int64")))
    return made.model()


def resized_integers(size, **options):
    made = Made(18)
    y = made.add("QuantizeLinear", made.input(1, 2, 4, 4), np.float32(0.1), np.uint8(3))
    made.output(made.add("Resize", y, "", "", np.asarray([1, 2, size, size], np.int64), **options))
    return made.model()


REFUSED = {
    "the weights 't0_0' are computed when the model runs": runtime_weights,
    "the input 'x0' has the shape [1, 2, height, 4]": lambda: dynamic_shape(1, 2, "height", 4),
    "the tensor 'c0' is in another file": external,
    "the shape of 't0_0' is unknown": computed_shape,
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
    "clip or input_forget": lambda: rnn(clip=1.0),
    "an index outside of 2 elements": lambda: one("Gather", np.asarray([2], np.int64), axis=1),
    "mode linear with antialias of uint8": lambda: resized_integers(2, mode="linear", antialias=1),
    "mode nearest with antialias": lambda: one(
        "Resize", "", np.asarray([1, 1, 0.5, 0.5], np.float32), opset=18, mode="nearest", antialias=1
    ),
    "scale 0": lambda: one("QuantizeLinear", np.float32(0), np.int8(0)),
}


def with_opset(version):
    model = one("Relu")
    model.opset_import[0].version = version
    return model


def rnn(**options):
    made = Made(13)
    random = np.random.default_rng(0)
    x = made.input(2, 1, 3)
    weights = floats(random, 1, 4, 3), floats(random, 1, 4, 4)
    made.output(made.add("RNN", x, *weights, results=2, hidden_size=4, **options)[0])
    return made.model()


@pytest.mark.parametrize("reason", REFUSED)
def test_reasons(reason):
    text = refused(REFUSED[reason]())
    assert reason in text and "damaged" not in text, text


def cyclic():
    model = one("Relu")
    model.graph.node[0].input[0] = "t0_0"
    return model


def twice():
    model = one("Relu")
    model.graph.node.append(model.graph.node[0])
    return model


def short():
    model = one("Add", np.ones((1, 2, 4, 4), np.float32))
    model.graph.initializer[0].raw_data = b"1234"
    return model


def mismatched():
    return one("Conv", np.ones((3, 5, 1, 1), np.float32))


def huge():
    model = one("Add", np.ones((1, 2, 4, 4), np.float32))
    model.graph.initializer[0].dims[0] = 1 << 40
    return model


def exploding():
    made = Made(17)
    x = made.input(1, 1)
    made.output(made.add("Add", x, made.add("ConstantOfShape", np.asarray([1 << 20, 1 << 20], np.int64))))
    return made.model()


@pytest.mark.parametrize("make", [cyclic, twice, short, mismatched, huge, exploding])
def test_damaged(make):
    text = refused(make())
    assert "m.onnx: error: " in text, text


def test_unknown_batch_is_one():
    [graph] = read_model(dynamic_shape("batch", 2, 4, 4).SerializeToString(), "m.onnx")
    assert graph.inputs[0].shape == (1, 2, 4, 4)
    assert graph.remarks == ("input 'x0' of shape [batch, 2, 4, 4] is imported as [1, 2, 4, 4]",)


def test_other_content():
    assert "not a TFLite or ONNX model" in refused(b"PK\x03\x04 not a model")
    assert "no graph" in refused(onnx.ModelProto(ir_version=8).SerializeToString())
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
    made = Made(17)
    first, *_ = made.add("BatchNormalization", made.input(1, 2, 4, 4), *numbers, results=3, training_mode=1)
    made.output(first)
    assert "BatchNormalization in training mode" in refused(made.model())

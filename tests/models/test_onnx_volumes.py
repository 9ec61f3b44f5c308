# SPDX-License-Identifier: Apache-2.0
"""Windows of three dimensions, dilated pools, groups and output padding of transposed convolutions."""

import numpy as np
import pytest
from requirements_support import need

need("cc", "onnx", "onnxruntime")

from models.bounds import onnx_bound  # noqa: E402
from models.onnx_quantised import dynamic, quantised, scale_of  # noqa: E402
from models.onnx_support import CONFIGURATIONS, Made, check, floats, kinds_of  # noqa: E402
from models.test_onnx_refusals import refused  # noqa: E402


def opset_of(random, least=11):
    return int(random.integers(least, 22))


def volume(random, least=11):
    """Return a convolution over a volume in which one dimension has windows of one element, or of all elements."""
    made = Made(opset_of(random, least))
    groups, inner = int(random.choice([1, 2])), int(random.integers(1, 3))
    axis, covers = int(random.integers(0, 3)), random.random() < 0.5
    shape = random.integers(4, 8, 3)
    kernel = random.integers(1, 4, 3)
    kernel[axis] = shape[axis] if covers else 1
    free = [one for one in range(3) if one != axis]
    options = {"strides": np.ones(3, int), "dilations": np.ones(3, int), "pads": np.zeros(6, int)}
    for one in free:
        options["strides"][one] = random.integers(1, 3)
        options["dilations"][one] = random.integers(1, 3) if kernel[one] < 3 else 1
        options["pads"][[one, one + 3]] = random.integers(0, 2, 2)
    options = {name: [int(n) for n in values] for name, values in options.items()}
    x = made.input(int(random.integers(1, 3)), groups * inner, *shape)
    results = groups * int(random.integers(1, 4))
    y = made.add("Conv", x, floats(random, results, inner, *kernel), floats(random, results), group=groups, **options)
    made.output(made.add("Relu", y) if random.random() < 0.5 else y)
    return made


def test_volumes(tmp_path):
    random = np.random.default_rng(70)
    models = [volume(random) for _ in range(2 * CONFIGURATIONS)]
    for graph in check(models, tmp_path / "float", random, onnx_bound("Conv")):
        assert {"CONV_2D", "DEPTHWISE_CONV_2D"} & set(kinds_of(graph)) and "RELU" not in kinds_of(graph)


def test_quantised_volumes(tmp_path):
    random = np.random.default_rng(71)
    models = [volume(random, 13).model() for _ in range(CONFIGURATIONS)]  # scales by channel
    contents = [
        quantised(one, tmp_path, random, "QDQ", "int8", per_channel=bool(n % 2)) for n, one in enumerate(models)
    ]
    check(contents, tmp_path / "exact", random, 1e-6, exact=True)
    graphs = check(contents, tmp_path / "fixed", random, 1e-6, 1.001, scales=[scale_of(one) for one in contents])
    for graph in graphs:
        layer = next(node for node in graph.nodes if node.kind in ("CONV_2D", "DEPTHWISE_CONV_2D"))
        assert layer.output.dtype == "int8"
    check([dynamic(one, tmp_path) for one in models], tmp_path / "dynamic", random, onnx_bound("ConvInteger"))


def test_refused_volume():
    made = Made(17)
    made.output(made.add("Conv", made.input(1, 2, 4, 4, 4), np.ones((3, 2, 2, 2, 2), np.float32)))
    text = refused(made.model())
    assert "a convolution over the volume 'x0' [1, 2, 4, 4, 4] with windows [2, 2, 2]" in text and "(Conv)" in text


def pool(random, kind):
    spatial = 3 if kind == "AveragePool" else int(random.integers(1, 4))
    made = Made(opset_of(random, 19 if kind == "AveragePool" else 11))
    kernel = [int(n) for n in random.integers(2, 4, spatial)]
    options = {"kernel_shape": kernel, "strides": [int(n) for n in random.integers(1, 3, spatial)]}
    if kind == "MaxPool":
        options["dilations"] = [int(n) for n in random.integers(1, 4, spatial)]
    if random.random() < 0.3:
        options["auto_pad"] = str(random.choice(["SAME_UPPER", "SAME_LOWER"]))
        options.pop("dilations", None)  # refused: onnxruntime does not follow the specification
    else:
        options["pads"] = [int(n) for n in random.integers(0, 2, 2 * spatial)]
        options["ceil_mode"] = int(random.integers(0, 2))
    if kind == "AveragePool":
        options["count_include_pad"] = int(random.integers(0, 2))
    x = made.input(int(random.integers(1, 3)), int(random.integers(1, 4)), *random.integers(7, 10, spatial))
    made.output(made.add(kind, x, **options))
    return made


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_pools(kind, tmp_path):
    random = np.random.default_rng([ord(c) for c in kind])
    check([pool(random, kind) for _ in range(2 * CONFIGURATIONS)], tmp_path, random, onnx_bound(kind))


@pytest.mark.parametrize("opset", [11, 19, 22])
def test_no_window_starts_after_the_data(opset, tmp_path):
    """With ceil_mode, in every opset."""
    cases = [
        ("MaxPool", (1, 3, 9, 8), {"kernel_shape": [2, 2], "pads": [1, 0, 1, 1], "strides": [1, 2]}),
        ("AveragePool", (2, 4, 9), {"count_include_pad": 1, "kernel_shape": [2], "pads": [1, 1], "strides": [2]}),
        ("MaxPool", (1, 1, 5), {"kernel_shape": [1], "strides": [3]}),
    ]
    made = [Made(opset) for _ in cases]
    for one, (kind, shape, options) in zip(made, cases, strict=True):
        one.output(one.add(kind, one.input(*shape), ceil_mode=1, **options))
    check(made, tmp_path, np.random.default_rng(74), onnx_bound("AveragePool"))


def test_quantised_dilated_pools(tmp_path):
    random = np.random.default_rng(72)
    contents = [quantised(pool(random, "MaxPool").model(), tmp_path, random) for _ in range(CONFIGURATIONS)]
    check(contents, tmp_path / "c", random, 1e-6, exact=True)


def transposed(random):
    """Return a transposed convolution with groups, dilations, and padding after the last window."""
    made = Made(opset_of(random, 13))
    groups, results = int(random.integers(1, 4)), int(random.integers(1, 3))
    stride = int(random.integers(2, 4))
    x = made.input(1, groups * 2, 4, 5)
    bias = [floats(random, results * groups)] if random.random() < 0.5 else []
    options = {"group": groups, "strides": [stride, stride], "dilations": [1, int(random.integers(1, 3))]}
    added = [int(n) for n in random.integers(0, stride, 2)]
    y = made.add("ConvTranspose", x, floats(random, groups * 2, results, 2, 3), *bias, output_padding=added, **options)
    made.output(made.add("Relu", y) if random.random() < 0.5 else y)
    return made


def test_transposed_convolutions(tmp_path):
    random = np.random.default_rng(73)
    models = [transposed(random).model() for _ in range(CONFIGURATIONS)]
    check([one.SerializeToString() for one in models], tmp_path / "float", random, onnx_bound("ConvTranspose"))
    forms = [("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")]
    # With several groups the tool mistakes scales by channel for scales by input.
    contents = []
    for number, one in enumerate(models):
        [groups] = [attribute.i for attribute in one.graph.node[0].attribute if attribute.name == "group"]
        by_channel = groups == 1 and number % 2 == 0
        contents.append(quantised(one, tmp_path, random, "QDQ", *forms[number % 3], per_channel=by_channel))
    check(contents, tmp_path / "exact", random, 1e-6, exact=True)
    scales = [scale_of(content) for content in contents]
    for graph in check(contents, tmp_path / "fixed", random, 1e-6, 1.001, scales=scales):
        layers = [node for node in graph.nodes if node.kind == "TRANSPOSE_CONV"]
        assert layers and all(node.output.dtype == "int8" for node in layers)

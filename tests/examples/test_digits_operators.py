# SPDX-License-Identifier: Apache-2.0
"""The C operators of examples/digits against their numpy reference, on the host."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from examples.example_files import held_out_of, reference_of
from requirements_support import need

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wsign-conversion"]
MARGIN = 64
reference = reference_of("digits")
PARAMETERS = reference.load_parameters()


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    need("cc")
    library = tmp_path_factory.mktemp("digits") / "operators.so"
    sources = sorted(str(path) for path in (DIGITS / "operators").glob("*.c"))
    command = ["cc", "-std=c11", "-O2", "-shared", "-fPIC", *STRICT, *sources, "-o", str(library)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def held_out():
    return held_out_of("digits")


def call(function, inputs, dtype, shape):
    """Call an operator for one image. It must return 0, write its complete output, and write nowhere else."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    inputs = [np.ascontiguousarray(values) for values in inputs]
    before = [values.copy() for values in inputs]
    results = []
    for filler in (0x5A, 0xA5):
        memory = np.full(size + 2 * MARGIN, filler, dtype=np.uint8)
        pointers = [ctypes.c_void_p(values.ctypes.data) for values in inputs]
        function.restype = ctypes.c_int32
        assert function(*pointers, ctypes.c_void_p(memory.ctypes.data + MARGIN)) == 0
        assert (memory[:MARGIN] == filler).all() and (memory[MARGIN + size :] == filler).all()
        results.append(memory[MARGIN : MARGIN + size].view(dtype).reshape(shape))
    np.testing.assert_array_equal(results[0], results[1])
    for values, copy in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(values, copy)
    return results[0]


def check(operators, name, dtype, data, *parameters):
    """Compare an operator with its reference on each image; return the results."""
    expected = getattr(reference, name)(data, *parameters)
    assert expected.dtype == dtype
    for one, wanted in zip(data, expected, strict=True):
        result = call(getattr(operators, name), [one, *parameters], dtype, wanted.shape or (1,))
        np.testing.assert_array_equal(result, wanted.reshape(result.shape))
    return expected


def check_network(operators, images):
    features = check(operators, "conv2d_relu", np.int8, images, PARAMETERS["conv_weight"], PARAMETERS["conv_bias"])
    pooled = check(operators, "max_pool", np.int8, features)
    scores = check(operators, "dense", np.int32, pooled, PARAMETERS["dense_weight"], PARAMETERS["dense_bias"])
    labels = check(operators, "arg_max", np.int32, scores)
    np.testing.assert_array_equal(labels, reference.predict(images, PARAMETERS))
    return labels


def int8_samples(shape, seed):
    """All -128, all 127, all 0, a random mix of the extremes, and random values."""
    random = np.random.default_rng(seed)
    same = [np.full(shape, value, dtype=np.int8) for value in (-128, 127, 0)]
    mixed = random.choice(np.array([-128, 127], dtype=np.int8), shape)
    return [*same, mixed, random.integers(-128, 128, shape, dtype=np.int8)]


def int32_samples(shape, seed):
    """The documented limits of a bias, 0, and random values of a usual size."""
    same = [np.full(shape, value, dtype=np.int32) for value in (-(2**30), 2**30, 0)]
    return [*same, np.random.default_rng(seed).integers(-5000, 5000, shape, dtype=np.int32)]


def test_network(operators, held_out):
    """On the held-out images, random ones and extremes."""
    images, _, predictions = held_out
    np.testing.assert_array_equal(check_network(operators, images), predictions)
    check_network(operators, np.random.default_rng(1).integers(-128, 128, (200, 8, 8, 1), dtype=np.int8))
    check_network(operators, np.stack(int8_samples((8, 8, 1), seed=2)))


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "weight"),
    [("conv2d_relu", np.int8, (8, 8, 1), (8, 3, 3, 1)), ("dense", np.int32, (4, 4, 8), (10, 128))],
)
def test_extremes(operators, name, dtype, shape, weight):
    data = np.stack(int8_samples(shape, seed=3))
    for values in int8_samples(weight, seed=4):
        for bias in int32_samples(weight[:1], seed=5):
            check(operators, name, dtype, data, values, bias)


def test_max_pool_extremes(operators):
    check(operators, "max_pool", np.int8, np.stack(int8_samples((8, 8, 8), seed=6)))


def test_held_out_header_agrees_with_the_reference(held_out):
    images, labels, predictions = held_out
    assert len(images) >= 360
    assert (predictions == labels).mean() >= 0.96


def test_golden_vectors_are_held_out_images(held_out):
    with np.load(DIGITS / "vectors.npz") as file:
        images, labels = file["image"], file["label"]
    assert len(images) == 20
    np.testing.assert_array_equal(images, held_out[0][:20])
    np.testing.assert_array_equal(labels, held_out[2][:20])


@pytest.mark.parametrize(
    ("total", "expected"),
    [(-(2**30), 0), (-1, 0), (0, 0), (15, 0), (16, 1), (47, 1), (48, 2), (4079, 127), (4080, 127), (2**30, 127)],
)
def test_conv2d_relu_rounding(operators, total, expected):
    images = np.zeros((1, 8, 8, 1), dtype=np.int8)
    weight = np.zeros((8, 3, 3, 1), dtype=np.int8)
    features = check(operators, "conv2d_relu", np.int8, images, weight, np.full(8, total, dtype=np.int32))
    assert (features == expected).all()


def test_arg_max_extremes(operators):
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    scores = [np.full(10, low), np.full(10, high), np.zeros(10), np.arange(10), -np.arange(10)]
    scores += [np.where(np.arange(10) == i, high, low) for i in range(10)]
    scores += list(np.random.default_rng(10).choice([low, -1, 0, high], (100, 10)))
    labels = check(operators, "arg_max", np.int32, np.stack(scores).astype(np.int32))
    assert labels[:5].tolist() == [0, 0, 0, 9, 0]
    assert labels[5:15].tolist() == list(range(10))


def test_parameters_fit_the_manifest():
    manifest = yaml.safe_load((DIGITS / "manifest.yaml").read_text(encoding="utf-8"))
    assert {key: value["key"] for key, value in manifest["constants"].items()} == {k: k for k in PARAMETERS}
    for step in manifest["run"]["steps"]:
        declared = manifest["operators"][step["call"]]["args"]
        for name, argument in zip(step["args"], declared, strict=True):
            if name in PARAMETERS:
                array = PARAMETERS[name]
                assert (array.dtype, list(array.shape)) == (argument["dtype"], argument["shape"])
                assert array.flags.c_contiguous

# SPDX-License-Identifier: Apache-2.0
"""Operators of TFLite that TVM's importer rejects or misinterprets, against LiteRT."""

import numpy as np
import pytest
from importers.importers_support import Built, need_tvm

need_tvm("tflite", "ai_edge_litert")

from importers.tflite_made import convolution, float_operators, int8_operators, rows_of_dense  # noqa: E402
from opwest.importers.tvm import Options, import_model  # noqa: E402
from opwest.importers.tvm.read import read_model  # noqa: E402
from opwest.importers.tvm.vectors import run_litert  # noqa: E402


def imported(content, folder):
    """Return the file, the messages of the import, and the program."""
    file = folder / "m.tflite"
    file.write_bytes(content)
    done = import_model(file, folder / "model", Options(vectors=0))
    return file, done, Built(folder / "model", folder)


def int8_cases(shape, count=30):
    random = np.random.default_rng(1)
    cases = [[random.integers(-128, 128, shape).astype(np.int8)] for _ in range(count)]
    return [[np.full(shape, v, np.int8)] for v in (-128, 0, 127)] + cases


def test_int8_operators_that_move_count_and_average(tmp_path):
    file, done, program = imported(int8_operators(), tmp_path)
    assert done.remarks == ()  # nothing is emulated in float
    text = (tmp_path / "model" / "operators.c").read_text()
    assert "float" not in text
    assert "math.h" not in text  # it would require a full C library in Zephyr
    cases = int8_cases((1, 7, 7, 3))
    _, expected = run_litert(read_model(file), cases)
    for number, (one, other) in enumerate(zip(program.run(cases), expected, strict=True)):
        for name, a, b in zip(("padded", "mean", "largest", "flat"), one, other, strict=True):
            assert np.array_equal(a, b), f"case {number}: {name}"


@pytest.mark.parametrize("bias", [True, False])
def test_int8_dense_of_rows(bias, tmp_path):
    file, done, program = imported(rows_of_dense(bias), tmp_path)
    assert done.remarks == ()
    cases = int8_cases((1, 5, 4))
    _, expected = run_litert(read_model(file), cases)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(program.run(cases), expected, strict=True))


CONVOLUTIONS = {
    "same": (3, 8, 0),
    "valid": (4, 6, 1),
    "odd channels": (2, 5, 0, 2),
    "one channel": (1, 1, 0),
    "nine channels, stride": (3, 9, 1, 2),
    "dilated": (2, 4, 0, 1, 2),
    "dilated, valid": (2, 4, 1, 1, 2),
    "depthwise": (8, 8, 0, 1, 1, 1),
    "depthwise, stride": (7, 7, 0, 2, 1, 1),
    "depthwise, valid": (4, 4, 1, 1, 1, 1),
    "depthwise, two each": (3, 6, 0, 1, 1, 2),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_int8_convolutions(case, tmp_path):
    channels, *others = CONVOLUTIONS[case]
    file, done, program = imported(convolution(channels, *others), tmp_path)
    assert done.remarks == ()
    assert "float" not in (tmp_path / "model" / "operators.c").read_text()
    cases = int8_cases((1, 9, 6, channels))
    _, expected = run_litert(read_model(file), cases)
    found = program.run(cases)
    assert len({int(v) for [y] in found for v in y.flat}) > 20
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(found, expected, strict=True))


def test_padding_condition_is_evaluated_once_for_all_channels(tmp_path):
    """Conditions on rows are before the loop over columns, on columns before that over channels."""
    imported(convolution(3, 8, 0), tmp_path)
    text = (tmp_path / "model" / "operators.c").read_text()
    inner = text[text.index("total_ptr[0] = (total_ptr[0]") :]
    assert inner.index("total_ptr[3]") < inner.index("}") and text.count("if (") <= 2 * 2 and "condval" not in text


def test_sums_beyond_int32_are_not_computed_in_it(tmp_path):
    content = rows_of_dense(True, 2_147_480_000)
    _, done, _ = imported(content, tmp_path)
    assert len(done.remarks) == 1 and "emulated in float" in done.remarks[0]


def test_float_operators(tmp_path):
    file, _, program = imported(float_operators(), tmp_path)
    assert "#include <math.h>" in (tmp_path / "model" / "operators.c").read_text()
    random = np.random.default_rng(2)
    cases = [[random.standard_normal((1, 5, 5, 3)).astype(np.float32)] for _ in range(10)]
    _, expected = run_litert(read_model(file), cases)
    for [one], [other] in zip(program.run(cases), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)

# SPDX-License-Identifier: Apache-2.0
"""Average pooling of int8 rounds to the nearest, halves away from zero: TVM's own importer truncates."""

import importlib.util

import numpy as np
import pytest
from importers.importers_support import Built, need_tvm

need_tvm("tflite")

from importers.tflite_made import average_pool  # noqa: E402
from opwest.importers.tvm import import_model  # noqa: E402
from opwest.importers.tvm.read import read_model  # noqa: E402
from opwest.importers.tvm.vectors import run_litert  # noqa: E402


def expected(data, padding, stride, size):
    """Return the mean of each window like TFLite's reference kernel."""
    edge = data.shape[1]
    out = (edge - size) // stride + 1 if padding else -(-edge // stride)
    before = 0 if padding else max((out - 1) * stride + size - edge, 0) // 2
    result = np.zeros((1, out, out, data.shape[3]), np.int8)
    for y in range(out):
        for x in range(out):
            rows = slice(max(y * stride - before, 0), min(y * stride - before + size, edge))
            columns = slice(max(x * stride - before, 0), min(x * stride - before + size, edge))
            for c in range(data.shape[3]):
                window = data[0, rows, columns, c].astype(int)
                total, count = int(window.sum()), window.size
                result[0, y, x, c] = (abs(total) + count // 2) // count * (1 if total >= 0 else -1)
    return result


@pytest.mark.parametrize(("padding", "stride", "size"), [(1, 2, 2), (0, 2, 3), (0, 1, 2), (1, 1, 5)])
def test_means_are_rounded(padding, stride, size, tmp_path):
    file = tmp_path / "pool.tflite"
    file.write_bytes(average_pool(padding, stride, size))
    import_model(file, tmp_path / "model")
    random = np.random.default_rng(1)
    cases = [[random.integers(-128, 128, (1, 6, 6, 3)).astype(np.int8)] for _ in range(20)]
    cases += [[random.integers(-2, 3, (1, 6, 6, 3)).astype(np.int8)] for _ in range(20)]  # many halves
    found = Built(tmp_path / "model", tmp_path).run(cases)
    for case, result in zip(cases, found, strict=True):
        assert np.array_equal(result[0], expected(case[0], padding, stride, size))
    if importlib.util.find_spec("ai_edge_litert") is not None:
        _, reference = run_litert(read_model(file), cases)
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(found, reference, strict=True))

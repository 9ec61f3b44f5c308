# SPDX-License-Identifier: Apache-2.0
"""Operators of TFLite that TVM's importer rejects or misinterprets, against LiteRT."""

import numpy as np
from importers.importers_support import Built, need_tvm

need_tvm("tflite", "ai_edge_litert")

from importers.tflite_made import float_operators  # noqa: E402
from opwest.importers.runtimes import Call, run  # noqa: E402
from opwest.importers.tvm import Options, import_model  # noqa: E402


def imported(content, folder):
    """Return the file, the messages of the import, and the program."""
    file = folder / "m.tflite"
    file.write_bytes(content)
    done = import_model(file, folder / "model", Options(vectors=0))
    return file, done, Built(folder / "model", folder)


def test_float_operators(tmp_path):
    file, _, program = imported(float_operators(), tmp_path)
    assert "#include <math.h>" in (tmp_path / "model" / "operators.c").read_text()
    random = np.random.default_rng(2)
    cases = [[random.standard_normal((1, 5, 5, 3)).astype(np.float32)] for _ in range(10)]
    expected = run(Call("tflite"), file.read_bytes(), cases).outputs
    for [one], [other] in zip(program.run(cases), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)

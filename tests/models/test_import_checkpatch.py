# SPDX-License-Identifier: Apache-2.0
"""Zephyr's checkpatch has no error and no warning for the C of an import, except those listed."""

import numpy as np
import pytest
from checkpatch import remarks, unexpected, zephyr_with_checkpatch
from in_process import succeed
from models.layers import convolution


@pytest.mark.slow
def test_an_imported_convolution(tmp_path):
    """With its variants."""
    zephyr = zephyr_with_checkpatch()
    convolution(np.random.default_rng(1), "int8").save(tmp_path / "conv.tflite")
    succeed("import", tmp_path / "conv.tflite", "-o", tmp_path / "conv", "--vectors", "2")
    app = tmp_path / "app"
    succeed("generate", tmp_path / "conv" / "manifest.yaml", "-o", app, "--runtime", "module")
    files = {f"import/{path.relative_to(app)}": path.read_text() for path in sorted(app.rglob("*.[ch]"))}
    assert any(name.endswith("/operators.c") for name in files)
    assert unexpected(remarks(zephyr, files, tmp_path / "checked")) == []

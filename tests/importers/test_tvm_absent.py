# SPDX-License-Identifier: Apache-2.0
"""Without TVM, the error of an import contains the package to install; other commands do not need TVM."""

import importlib.util

import pytest
from opwest.base.diagnostics import OpwestError
from opwest.frontends.tvm import import_module


def test_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OpwestError) as caught:
        import_module(None, tmp_path / "out")
    assert "imports through TVM require apache-tvm, which is not installed" in str(caught.value)
    assert 'pip install "opwest[tvm]"' in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_only_importers_import_tvm():
    import subprocess
    import sys

    code = "import sys, opwest.cli.main, opwest.frontends.tvm; sys.exit(any(m in sys.modules for m in ('tvm', 'onnx')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

# SPDX-License-Identifier: Apache-2.0
"""No test of this directory imports PyTorch or opens a pickle."""

import pickle
import sys

import pytest


@pytest.fixture(autouse=True)
def without_torch_and_pickle(monkeypatch):
    """PyTorch cannot be imported here, also where it is installed; whoever opens a pickle fails the test."""

    def refuse(*args, **options):
        raise AssertionError("a pickle was opened")

    assert "torch" not in sys.modules
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("load", "loads", "Unpickler", "_load", "_loads", "_Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)

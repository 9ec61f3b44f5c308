# SPDX-License-Identifier: Apache-2.0
"""All tests load one plugin into QEMU, which is compiled once in a session."""

import pytest
from opwest.tuning import measure
from session_support import made_once


@pytest.fixture(autouse=True)
def one_plugin(monkeypatch):
    build = measure.built_plugin
    monkeypatch.setattr(measure, "built_plugin", lambda work: made_once("plugin", build) / "count.so")

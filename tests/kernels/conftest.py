# SPDX-License-Identifier: Apache-2.0
"""All tests load one plugin into QEMU, which is compiled once in a session."""

import pytest
from opwest.tuning import emulator
from session_support import made_once


@pytest.fixture(autouse=True)
def one_plugin(monkeypatch):
    build = emulator.built_plugin
    monkeypatch.setattr(emulator, "built_plugin", lambda work: made_once("plugin", build) / "count.so")

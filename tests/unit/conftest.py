# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers of other directories of tests."""

import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / folder) for folder in ("compile", "golden", "unit/objects", "unit/plan", "unit/write")]


@pytest.fixture
def app(tmp_path):
    return tmp_path / "app"

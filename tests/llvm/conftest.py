# SPDX-License-Identifier: Apache-2.0
"""Lets these tests import the helpers of tests/, tests/compile and tests/golden."""

import sys
from pathlib import Path

import pytest
from session_support import made_once

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS, _TESTS / "compile", _TESTS / "golden"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

# test_llvmlite_absent.py tests the behaviour without it.
_NEED_LLVMLITE = ("test_backends_agree", "test_ir_errors", "test_metadata_objects")


def pytest_collection_modifyitems(items):
    """Mark the tests that need llvmlite."""
    for item in items:
        if item.path.stem in _NEED_LLVMLITE:
            item.add_marker(pytest.mark.needs("llvmlite"))


@pytest.fixture(scope="session")
def apps():
    from backends_support import BACK_ENDS, applications

    shared = made_once("backends", applications)
    return {metadata: shared / metadata for metadata in BACK_ENDS}

# SPDX-License-Identifier: Apache-2.0
"""Lets these tests import the golden projects' helper."""

import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS, _TESTS / "golden"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

from requirements_support import need  # noqa: E402


@pytest.fixture(scope="module", params=["c", "llvm"])
def metadata(request: pytest.FixtureRequest) -> str:
    """The back end: `make test` uses that of C, `make test-rest` LLVM too."""
    if request.param == "llvm":
        need("llvmlite")
    return request.param

# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers of tests/compile and tests/golden; the back ends."""

import sys
from pathlib import Path

import pytest
from requirements_support import need

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS, _TESTS / "compile", _TESTS / "golden"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))


@pytest.fixture(scope="module", params=["c", "llvm"])
def metadata(request: pytest.FixtureRequest) -> str:
    """The back end. With the scope of a session, pytest would create the fixtures of each module once for each."""
    if request.param == "llvm":
        need("llvmlite")
    return request.param

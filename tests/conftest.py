# SPDX-License-Identifier: Apache-2.0
import importlib.util

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected outputs instead of comparing with them")


@pytest.fixture(scope="session", params=["c", "llvm"])
def metadata(request: pytest.FixtureRequest) -> str:
    """The back end: tests that run generated models ask for it, and run with each."""
    if request.param == "llvm" and importlib.util.find_spec("llvmlite") is None:
        pytest.skip("llvmlite is not installed")
    return request.param

# SPDX-License-Identifier: Apache-2.0
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected outputs instead of comparing with them")

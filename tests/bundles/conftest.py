# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers of tests/compile and tests/golden."""

import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / folder) for folder in ("bundles", "compile", "golden")]


@pytest.fixture
def make_board(tmp_path):
    """A function that returns managers of slots, which end with the test."""
    from core_board import Board

    boards = []

    def make(**options):
        boards.append(Board(tmp_path, **options))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


@pytest.fixture(scope="session")
def digits_objects():
    """Compile the operators of the digits example for all targets whose compiler is installed: bundle_images.DIGITS."""
    from bundle_images import make_digits
    from requirements_support import need

    need("cc")
    make_digits()

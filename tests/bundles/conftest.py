# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers of tests/compile and tests/golden."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from core_board import Board

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS, _TESTS / "bundles", _TESTS / "compile", _TESTS / "golden"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))


@pytest.fixture
def make_board(tmp_path: Path) -> Iterator[Callable[..., Board]]:
    """A function that returns managers of slots, which end with the test."""
    from core_board import Board

    boards: list[Board] = []

    def make(**options: object) -> Board:
        boards.append(Board(tmp_path, **options))  # type: ignore[arg-type]
        return boards[-1]

    yield make
    for board in boards:
        board.close()


@pytest.fixture(scope="session")
def digits_objects() -> None:
    """Compile the operators of the digits example for all targets whose compiler is installed: bundle_images.DIGITS."""
    from bundle_images import make_digits
    from requirements_support import need

    need("cc")
    make_digits()

# SPDX-License-Identifier: Apache-2.0
"""Fixtures: each golden project is generated once per session."""

import functools
from collections.abc import Callable

import pytest
from golden_trees import TREES, Emission, emit


@pytest.fixture(scope="session")
def emission(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Emission]:
    """Return a function that generates a golden tree at its first call."""
    return functools.cache(lambda name: emit(name, tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="session", params=TREES)
def tree(request: pytest.FixtureRequest, emission: Callable[[str], Emission]) -> tuple[str, Emission]:
    """Return the name of a golden tree, and its emission."""
    return request.param, emission(request.param)

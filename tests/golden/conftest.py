# SPDX-License-Identifier: Apache-2.0
"""Fixtures: each golden project is generated once per session."""

import functools
from collections.abc import Callable, Mapping

import pytest
from golden_trees import TREES, Emission, emit
from opwest.drafting.new_driver import DriverNames, driver_files


@pytest.fixture(scope="session")
def emission(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Emission]:
    """Return a function that generates a golden tree at its first call."""
    return functools.cache(lambda name: emit(name, tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="session", params=TREES)
def tree(request: pytest.FixtureRequest, emission: Callable[[str], Emission]) -> tuple[str, Emission]:
    """Return the name of a golden tree, and its emission."""
    return request.param, emission(request.param)


@pytest.fixture(scope="session")
def sources(emission: Callable[[str], Emission]) -> Mapping[str, str]:
    """Return the generated C files of the golden projects and of a new driver, by name."""
    files = {f"{name}/{path}": text for name in TREES for path, text in emission(name).generated_c().items()}
    assert len(files) > 100
    driver = driver_files(DriverNames("my_npu", "acme,my-npu"))
    return files | {f"driver/{path}": text.decode() for path, text in driver.items() if path.endswith((".c", ".h"))}

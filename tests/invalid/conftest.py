# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest
from reached_errors import Reached
from workshop import Workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The directory in which all cases run, with the files they name."""
    return Workshop(tmp_path_factory.mktemp("invalid") / "project")


@pytest.fixture(scope="module")
def reached() -> Iterator[Reached]:
    """The calls that created errors while cases ran."""
    reached = Reached()
    with reached.recording():
        yield reached

# SPDX-License-Identifier: Apache-2.0
import pytest
from workshop import Workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The directory in which all cases run, with the files they name."""
    return Workshop(tmp_path_factory.mktemp("invalid") / "project")

# SPDX-License-Identifier: Apache-2.0
import pytest


@pytest.fixture
def app(tmp_path):
    return tmp_path / "app"

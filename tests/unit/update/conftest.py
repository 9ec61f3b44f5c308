# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[2]
for _folder in (_TESTS / "golden", _TESTS / "unit" / "write"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

import pytest  # noqa: E402


@pytest.fixture
def app(tmp_path):
    return tmp_path / "app"

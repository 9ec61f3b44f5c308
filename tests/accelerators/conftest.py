# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers of tests/compile and tests/golden."""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS, _TESTS / "compile", _TESTS / "golden"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

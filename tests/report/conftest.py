# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the golden projects and hand-made images."""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
for _folder in (_TESTS / "golden", _TESTS / "unit" / "objects"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

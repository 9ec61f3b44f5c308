# SPDX-License-Identifier: Apache-2.0
"""Import path of pytest and `python tests/fuzz` for the helpers of other test directories."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for _folder in (
    TESTS,
    TESTS / "bundles",
    TESTS / "compile",
    TESTS / "golden",
    TESTS / "report",
    TESTS / "importers",
    *(TESTS / "unit" / name for name in ("board", "manifest", "objects", "write")),
):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

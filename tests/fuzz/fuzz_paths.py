# SPDX-License-Identifier: Apache-2.0
"""Import path of pytest and `python tests/fuzz` for the helpers of other test directories."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
_FOLDERS = ". bundles compile golden importers report".split()
_FOLDERS += [f"unit/{name}" for name in ("board", "llvm", "manifest", "objects", "write")]
for _folder in (str(TESTS / name) for name in _FOLDERS):
    if _folder not in sys.path:
        sys.path.insert(0, _folder)

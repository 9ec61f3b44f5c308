# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers of tests/compile."""

import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "compile"
if str(_FOLDER) not in sys.path:
    sys.path.insert(0, str(_FOLDER))

# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers that all test directories share (`tests/objects_factory.py`)."""

import sys
from pathlib import Path

_SHARED = str(Path(__file__).parents[2])
if _SHARED not in sys.path:
    sys.path.insert(0, _SHARED)

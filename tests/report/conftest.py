# SPDX-License-Identifier: Apache-2.0
"""The golden projects are subjects here too."""

import sys
from pathlib import Path

_GOLDEN = Path(__file__).resolve().parents[1] / "golden"
if str(_GOLDEN) not in sys.path:
    sys.path.insert(0, str(_GOLDEN))

# SPDX-License-Identifier: Apache-2.0
"""Import path for the helpers of tests/compile and tests/golden."""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / folder) for folder in ("compile", "golden")]

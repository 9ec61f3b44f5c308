# SPDX-License-Identifier: Apache-2.0
"""The table of operators in docs/importing-models.md."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_table_is_up_to_date():
    script = ROOT / "scripts" / "model_operators.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run python scripts/model_operators.py --write\n{done.stderr}"

# SPDX-License-Identifier: Apache-2.0
"""Short runs of the libFuzzer targets, and every stored failing input."""

import subprocess
from pathlib import Path

import pytest
from fuzz_device import TARGETS, AbsentError, Target, run
from fuzz_engine import stored
from requirements_support import need, skip_here


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_short_fuzzing_run(target: Target, tmp_path: Path) -> None:
    need("clang", "clang runtime")
    try:
        program = target.build(tmp_path)
    except AbsentError as reason:
        skip_here(str(reason))
    for name, content in stored().items():
        if not name.startswith(f"device/{target.name}_"):
            continue
        path = tmp_path / "stored"
        path.write_bytes(content)
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    row = run(target, tmp_path, 3_000)
    assert not row["defects"], row["defects"]
    assert row["inputs"] >= 3_000 and row["edges"] > target.edges

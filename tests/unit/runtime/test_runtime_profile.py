# SPDX-License-Identifier: Apache-2.0
"""Measurements of points, in C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_support import RUNTIME, SANITIZED, run
from requirements_support import need_compiler


@pytest.mark.parametrize("flags", [(), ("-m32",)])
def test_counts_and_events(flags: tuple[str, ...], tmp_path: Path) -> None:
    need_compiler("gcc", ("-fsanitize=address,undefined", *flags), link=True)
    sources = [Path(__file__).parent / "programs" / "profile.c", RUNTIME / "src" / "profile.c"]
    options = [*SANITIZED, *flags, "-DCONFIG_OPWEST_PROFILE", f"-I{RUNTIME / 'include'}"]
    run(["gcc", *options, *sources, "-o", "profile"], tmp_path)
    done = subprocess.run([tmp_path / "profile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

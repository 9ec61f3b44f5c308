# SPDX-License-Identifier: Apache-2.0
"""Zephyr's toolchain variant llvm: emitted sources and the runtime, compiled by clang."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from requirements_support import need
from zephyr_support import Workspace

pytestmark = pytest.mark.zephyr
LLVM = Path("/usr/lib/llvm-19")
"""Debian's directory of clang-19 and llvm-19; Zephyr 4.2 requires clang's option --config=FILE, which 14 lacks."""


def test_digits_on_native_sim(workspace: Workspace, digits: Path) -> None:
    need("clang-19", "llvm-objcopy-19")
    options = ("-DZEPHYR_TOOLCHAIN_VARIANT=llvm", f"-DLLVM_TOOLCHAIN_PATH={LLVM}")
    built = workspace.build(digits, "native_sim/native/64", *options)
    assert "Found toolchain: llvm" in built.log
    assert re.search(rf"^CMAKE_C_COMPILER:\w+={LLVM}/bin/clang$", (built.folder / "CMakeCache.txt").read_text(), re.M)
    console = built.run(r"^accuracy: .*$")
    assert "predictions: 360 of 360 equal the reference" in console

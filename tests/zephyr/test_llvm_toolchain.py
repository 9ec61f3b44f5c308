# SPDX-License-Identifier: Apache-2.0
"""Zephyr's toolchain variant llvm: emitted sources and the runtime, compiled by clang, for the host and for Arm."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from cover import configured
from digits_support import PREDICTIONS, of_sources, predictions
from requirements_support import need

pytestmark = pytest.mark.zephyr
LLVM = Path("/usr/lib/llvm-19")
"""Debian's directory of clang-19 and llvm-19; Zephyr 4.2 requires clang's option --config=FILE, which 14 lacks."""
OPTIONS = ("-DZEPHYR_TOOLCHAIN_VARIANT=llvm", f"-DLLVM_TOOLCHAIN_PATH={LLVM}")
GNU_BINUTILS = Path("/usr/lib/arm-none-eabi/bin")
"""GNU ld for Arm, with the name that clang searches for in PATH: ld.bfd."""


def check_compiler(built):
    assert "Found toolchain: llvm" in built.log
    assert re.search(rf"^CMAKE_C_COMPILER:\w+={LLVM}/bin/clang$", (built.folder / "CMakeCache.txt").read_text(), re.M)


def libraries():
    """Return the option that links GCC's libgcc, and newlib for the functions of Arm's EABI only that clang calls."""
    names = ("-print-libgcc-file-name", "-print-file-name=libc.a")
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"]
    files = [subprocess.run([*command, name], capture_output=True, text=True, check=True).stdout for name in names]
    # GNU ld searches archives once, in this order: functions of libc.a can call functions of libgcc.a.
    return f"-DEXTRA_LDFLAGS={' '.join(file.strip() for file in reversed(files))}"


@configured(board="native_sim/native/64")
def test_digits_on_native_sim(workspace, digits):
    need("clang-19", "llvm-objcopy-19")
    built = workspace.build(digits, "native_sim/native/64", *OPTIONS)
    check_compiler(built)
    assert predictions(built) == PREDICTIONS


@configured(
    "version, board, linker",
    [
        (version, board, linker)
        for version, board in (("4.1", "mps2/an385"), ("4.2", "mps2/an385"), ("4.2", "qemu_cortex_m3"))
        for linker in ("ld", "lld")
    ],
)
def test_digits_on_arm(workspaces, opwest, tmp_path, monkeypatch, version, board, linker):
    """clang compiles the operators, too."""
    need("clang-19", "llvm-objcopy-19", "arm-none-eabi-gcc", "qemu-system-arm")
    if linker == "lld":
        need("ld.lld-19")
    options = [*OPTIONS, f"-DCONFIG_LLVM_USE_{linker.upper()}=y", libraries()]
    if linker == "ld":
        monkeypatch.setenv("PATH", str(GNU_BINUTILS), prepend=os.pathsep)
        # Zephyr keeps the results of its checks of compilers, also those with another PATH.
        options.append(f"-DUSER_CACHE_DIR={tmp_path / 'cache'}")
        (tmp_path / "cache").mkdir()
    other = workspaces(version)
    opwest("generate", of_sources(tmp_path / "example"), "-o", tmp_path / "app", "--zephyr-base", other.base)
    built = other.build(tmp_path / "app", board, *options)
    check_compiler(built)
    assert predictions(built) == PREDICTIONS

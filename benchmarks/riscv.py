# SPDX-License-Identifier: Apache-2.0
"""Build Zephyr for qemu_riscv32 with a distribution's riscv64-unknown-elf-gcc, and CMSIS-NN's C code for it."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import which

from common import SkippedError

PREFIX = "riscv64-unknown-elf-"
_WRAPPER = """#!/bin/sh
# The compiler finds its libraries by the value of -march, and they have no _zicsr_zifencei, with which Zephyr compiles.
for word in "$@"; do
	case $word in -c | -S | -E) exec {compiler} "$@" ;; esac
done
for word in "$@"; do
	shift
	case $word in -march=*) word=${{word%%_*}} ;; esac
	set -- "$@" "$word"
done
exec {compiler} "$@"
"""
_KCONFIG = """# Zephyr's option depends on CPU_CORTEX_M: a second definition makes it available elsewhere.
config CMSIS_NN
	bool "CMSIS-NN as portable C"
"""


def toolchain(folder: Path) -> dict[str, str]:
    """Write a toolchain of links and a wrapper of the compiler; return its environment. Raises SkippedError."""
    compiler = which(f"{PREFIX}gcc")
    if compiler is None:
        raise SkippedError(f"{PREFIX}gcc not found")
    folder.mkdir(parents=True)
    for tool in Path(compiler).parent.glob(f"{PREFIX}*"):
        (folder / tool.name).symlink_to(tool)
    for name in ("gcc", "g++"):
        real = which(f"{PREFIX}{name}")
        if real is not None:
            wrapper = folder / f"{PREFIX}{name}"
            wrapper.unlink(missing_ok=True)
            wrapper.write_text(_WRAPPER.format(compiler=real))
            wrapper.chmod(0o755)
    return {"ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile", "CROSS_COMPILE": f"{folder}{os.sep}{PREFIX}"}


def cmsis_nn(folder: Path) -> list[str]:
    """Write a Zephyr module that makes CONFIG_CMSIS_NN available; return the option of the build."""
    (folder / "zephyr").mkdir(parents=True)
    (folder / "zephyr" / "module.yml").write_text("name: cmsis_nn_portable\nbuild:\n  kconfig: Kconfig\n")
    (folder / "Kconfig").write_text(_KCONFIG)
    return [f"-DEXTRA_ZEPHYR_MODULES={folder}"]

# SPDX-License-Identifier: Apache-2.0
"""CMSIS-NN's C code for qemu_riscv32, as a module of Zephyr."""

from __future__ import annotations

from pathlib import Path

_KCONFIG = """# Zephyr's option depends on CPU_CORTEX_M: a second definition makes it available elsewhere.
config CMSIS_NN
	bool "CMSIS-NN as portable C"
"""


def cmsis_nn(folder: Path) -> list[str]:
    """Write a Zephyr module that makes CONFIG_CMSIS_NN available; return the option of the build."""
    (folder / "zephyr").mkdir(parents=True)
    (folder / "zephyr" / "module.yml").write_text("name: cmsis_nn_portable\nbuild:\n  kconfig: Kconfig\n")
    (folder / "Kconfig").write_text(_KCONFIG)
    return [f"-DEXTRA_ZEPHYR_MODULES={folder}"]

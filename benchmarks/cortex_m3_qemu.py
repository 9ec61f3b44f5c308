# SPDX-License-Identifier: Apache-2.0
"""Count the instructions of images for QEMU's mps2-an385."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from common import ProcessError, SkippedError, execute, host_compiler

HERE = Path(__file__).resolve().parent / "cortex_m3"
EMULATOR = "qemu-system-arm"


def symbols(image: Path) -> dict[str, int]:
    """Return the addresses of an image's symbols."""
    rows = [line.split() for line in execute(["arm-none-eabi-nm", image]).splitlines()]
    return {row[-1]: int(row[0], 16) for row in rows if len(row) == 3}


def build_plugin(work: Path, version: int) -> Path:
    """Compile the plugin for one version of QEMU's plugin interface."""
    plugin = work / f"insn_count_{version}.so"
    options = ["-O2", "-shared", "-fPIC", f"-DPLUGIN_VERSION={version}"]
    execute([*host_compiler(), *options, HERE / "insn_count.c", "-o", plugin])
    return plugin


def supported_plugin(work: Path, count: Callable[[Path], object]) -> Path:
    """Return the plugin for the version that this QEMU supports; `count` tests one."""
    faults = []
    for version in range(1, 6):
        plugin = build_plugin(work, version)
        try:
            count(plugin)
        except ProcessError as fault:
            faults.append(str(fault))
            continue
        return plugin
    raise SkippedError(f"{EMULATOR} rejects the plugin:\n{faults[0]}")

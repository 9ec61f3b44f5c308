# SPDX-License-Identifier: Apache-2.0
"""User threads on mps2/an385 in QEMU: a model without devices, a model with devices through a runner, the class.

Boards of native_sim have no userspace. Zephyr 3.4 has other names for the verification of system calls, and other paths
of the generated headers.
"""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import streams
import yaml
from cover import MAIN, configured
from zephyr_support import OTHER_VERSIONS, ROOT, Workspace

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

PROGRAMS = ROOT / "tests" / "zephyr" / "programs" / "userspace"
BOARD = "mps2/an385"
END = r"done: -?\d+ failed"
KERNEL_OOPS = "3"
"""K_ERR_KERNEL_OOPS: the end of a thread with an invalid argument of a system call."""
EXAMPLE = ROOT / "examples" / "two_npus"
KCONFIG = {
    "CONFIG_USERSPACE": "y",
    "CONFIG_OPWEST_RUNNER": "y",
    "CONFIG_LOG": "y",
    "CONFIG_LOG_PRINTK": "n",
    "CONFIG_MAIN_THREAD_PRIORITY": 7,
    "CONFIG_SYS_CLOCK_TICKS_PER_SEC": 1000,
}


def application(opwest: Opwest, tmp_path: Path) -> Path:
    """Generate an application with a model on the processor, one on accelerators, and the programs of this test."""
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", "objects")
    shutil.copytree(streams.PROJECT, source / "streams", ignore=ignored)
    shutil.copytree(EXAMPLE, source / "two_npus", ignore=ignored)
    names = sorted(file.name for file in PROGRAMS.iterdir())
    for name in names:
        shutil.copy(PROGRAMS / name, source / "two_npus" / name)
    manifest = source / "two_npus" / "manifest.yaml"
    content = yaml.safe_load(manifest.read_text())
    content["boards"] = ["mps2/an385"]
    content["application"] = {
        "sources": [*names, "application/held_out.h"],
        "overlays": {"mps2/an385": "overlays/npus.overlay"},
        "kconfig": KCONFIG,
    }
    manifest.write_text(yaml.safe_dump(content))
    app = tmp_path / "app"
    opwest("generate", manifest, source / "streams" / "manifest.yaml", "-o", app)
    return app


def check_console(console: str, version: str) -> None:
    """Check that every thread had the expected end and results; the log can interrupt lines of the console."""
    checks = re.findall(r"ok: (.*) \(-?\d+\)$", console, re.MULTILINE)
    faults = re.findall(r"fault: reason (\d+)$", console, re.MULTILINE)
    print(f"mps2/an385 in QEMU, Zephyr {version}: {len(checks)} checks, {len(faults)} threads ended by the kernel")
    assert "done: 0 failed" in console, console
    assert "FAILED" not in console, console
    assert KERNEL_OOPS in faults, console


@configured("version", [MAIN, *OTHER_VERSIONS], board=BOARD, cost=9)
def test_user_threads(workspaces: Callable[[str], Workspace], opwest: Opwest, tmp_path: Path, version: str) -> None:
    zephyr = workspaces(version)
    built = zephyr.build(application(opwest, tmp_path), zephyr.board(BOARD))
    check_console(built.run(END), version)

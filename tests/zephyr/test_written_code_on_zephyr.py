# SPDX-License-Identifier: Apache-2.0
"""Code that a processor writes and executes: the storage of bundles on RISC-V, with one hart and with several."""

import subprocess

import pytest
from cover import configured
from zephyr_support import ROOT, Workspace

pytestmark = [pytest.mark.zephyr, pytest.mark.needs("riscv64-unknown-elf-gcc", "qemu-system-riscv32")]
PROGRAM = ROOT / "tests" / "zephyr" / "programs" / "instructions"
BOARDS = {
    "qemu_riscv32": ("7 1234", True),
    # -ENOTSUP: Zephyr 4.2 has no work items for other processors.
    "qemu_riscv32/qemu_virt_riscv32/smp": ("-134 -134", False),
}


@configured("board", BOARDS, cost=9)
def test_written_code(workspace: Workspace, board: str) -> None:
    output, has_fence = BOARDS[board]
    built = workspace.build(PROGRAM, board)
    assert output in built.run("END").splitlines()
    command = ["riscv64-unknown-elf-objdump", "-d", str(built.folder / "zephyr" / "zephyr.elf")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ("fence.i" in text) == has_fence

# SPDX-License-Identifier: Apache-2.0
"""The commands of the generated README that build and run an application, for each kind of board."""

import re
from pathlib import Path

import pytest
from opwest.zephyr.emulators import QEMU_MACHINES, run_command
from requirements_support import skip_here


@pytest.mark.parametrize(
    ("board", "run"),
    [
        ("native_sim/native/64", " -t run"),
        ("qemu_riscv32", " -t run"),
        ("mps2/an385", " -t run"),
        ("mps2_an385", " -t run"),
        ("mps3/corstone300/an547", " -t run"),
        ("mps2/an386", " && qemu-system-arm -M mps2-an386 -nographic -kernel build/zephyr/zephyr.elf"),
        ("nucleo_l4r5zi", " && west flash"),
        ("mps3/corstone310/fvp", " && west flash"),
    ],
)
def test_command_of_a_board(board, run):
    assert run_command(board, "app") == f"west build -p -b {board} app{run}"


def test_targets_of_the_tree():
    """The tree starts QEMU for a board of the MPS2 exactly if the command has the target."""
    file = Path.home() / "zephyrproject" / "zephyr" / "boards" / "arm" / "mps2" / "board.cmake"
    if not file.is_file():
        skip_here(f"no {file}")
    rows = re.findall(r"if\((.*)\)\n  set\(SUPPORTED_EMU_PLATFORMS (.*)\)", file.read_text(encoding="utf-8"))
    found = {
        name.lower(): platforms.split() for names, platforms in rows for name in re.findall(r"MPS2_(AN\d+)", names)
    }
    assert {"an385", "an386", "an500", "an521"} <= set(found)
    for name, platforms in found.items():
        board = f"mps2/{name}/cpu0" if name == "an521" else f"mps2/{name}"
        assert run_command(board, "app").endswith(" -t run") == ("qemu" in platforms), board
    assert not any("qemu" in found[board.removeprefix("mps2/")] for board in QEMU_MACHINES)

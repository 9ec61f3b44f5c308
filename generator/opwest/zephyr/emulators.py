# SPDX-License-Identifier: Apache-2.0
"""How an image is run: by Zephyr's target `run`, by QEMU for boards that Zephyr does not start in it, on the board."""

from __future__ import annotations

QEMU_MACHINES = {"mps2/an386": "mps2-an386", "mps2/an500": "mps2-an500"}
"""Machines of qemu-system-arm for boards that Zephyr starts only in Arm's simulator."""
_SIMULATED = ("native_", "qemu_")
_STARTED = frozenset(
    "mps2/an385 mps2_an385 mps2/an521/cpu0 mps2/an521/cpu0/ns mps2_an521 mps2_an521_ns "
    "mps3/corstone300/an547 mps3/corstone300/an547/ns mps3_an547 mps3_an547_ns".split()
)
"""Boards of Arm whose board.cmake has QEMU in SUPPORTED_EMU_PLATFORMS, in Zephyr 3.4, 4.1 and 4.2."""


def run_command(board: str, application: str) -> str:
    """Return the command that builds an application and runs it: on this machine, in QEMU, or on the board."""
    build = f"west build -p -b {board} {application}"
    if board.startswith(_SIMULATED) or board in _STARTED:
        return f"{build} -t run"
    if board in QEMU_MACHINES:
        machine = QEMU_MACHINES[board]
        return f"{build} && qemu-system-arm -M {machine} -nographic -kernel build/zephyr/zephyr.elf"
    return f"{build} && west flash"

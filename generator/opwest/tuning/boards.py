# SPDX-License-Identifier: Apache-2.0
"""The core whose measurements apply to a board."""

from __future__ import annotations

from opwest.compiler.processors import CORES
from opwest.zephyr.processors import processor_symbols
from opwest.zephyr.workspace import Workspace

_OF_SYMBOL = {
    "CPU_CORTEX_M0": "cortex-m0plus",
    "CPU_CORTEX_M0PLUS": "cortex-m0plus",
    "CPU_CORTEX_M3": "cortex-m3",
    "CPU_CORTEX_M4": "cortex-m4",
    "CPU_CORTEX_M7": "cortex-m7",
    "CPU_CORTEX_M33": "cortex-m33",
    "CPU_CORTEX_M55": "cortex-m55",
    "RISCV": "rv32",
}
"""By Kconfig symbol: the core in QEMU. Armv6-M cores are all measured as a Cortex-M0+."""


def core_of_board(board: str, workspace: Workspace | None) -> str | None:
    """Return the core of a board; None if it is unknown, or if QEMU has no machine for it."""
    symbols = processor_symbols(board, workspace) or frozenset()
    if "64BIT" in symbols:
        return None
    found = [core for symbol, core in _OF_SYMBOL.items() if symbol in symbols]
    assert set(found) <= set(CORES)
    return found[0] if len(found) == 1 else None

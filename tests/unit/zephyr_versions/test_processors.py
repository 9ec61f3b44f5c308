# SPDX-License-Identifier: Apache-2.0
"""The targets of boards: of simulated boards without Zephyr's tree, of others from the Kconfig files of their SoC."""

from __future__ import annotations

from pathlib import Path

import pytest
from opwest.targets import named_targets
from opwest.zephyr.processors import processor_symbols, selected_targets
from opwest.zephyr.workspace import Workspace
from small_tree import FILES, OLD_FILES, tree

M4 = ["cortex-m4", "cortex-m4f", "cortex-m4f-softfp"]
M33 = ["cortex-m33", "cortex-m33f", "cortex-m33f-softfp"]
M55 = ["cortex-m55", "cortex-m55f", "cortex-m55f-mvei", "cortex-m55f-mve"]
WITHOUT_A_TREE = {
    "native_sim": ["i386"],
    "native_sim/native": ["i386"],
    "native_sim/native/64": ["x86-64", "aarch64-host"],
    "native_posix": ["i386"],
    "native_posix_64": ["x86-64", "aarch64-host"],
    "qemu_cortex_m0": ["cortex-m0"],
    "qemu_cortex_m3": ["cortex-m3"],
    "qemu_cortex_a53": ["cortex-a53"],
    "qemu_riscv32": ["rv32imac", "rv32imafc"],
    "qemu_riscv32e": [],  # 16 registers
    "qemu_riscv64": ["rv64imac", "rv64gc"],
    "mps2/an383": ["cortex-m0plus"],
    "mps2/an385": ["cortex-m3"],
    "mps2@1.0.0/an385": ["cortex-m3"],
    "mps2/an386": M4,
    "mps2/an500": ["cortex-m7", "cortex-m7f", "cortex-m7f-double"],
    "mps2/an521/cpu0": M33,
    "mps3/corstone300/an547": M55,
    "mps2_an385": ["cortex-m3"],
    "native": [],
    "native_simulator": [],
    "nucleo": [],
}


@pytest.mark.parametrize("board", WITHOUT_A_TREE)
def test_simulated_boards(board: str) -> None:
    assert selected_targets(board, None) == WITHOUT_A_TREE[board]


@pytest.mark.parametrize(
    ("board", "targets"),
    [
        ("nucleo", M4),
        ("nucleo/stm32l4r5xx", M4),
        ("dk/nrf5340/cpuapp", M33),
        ("dk/nrf5340/cpuapp/ns", M33),
        ("dk/nrf5340/cpunet", []),  # a Cortex-M23, without a named target
        ("dk/nrf5340", []),  # either processor
        ("c3/c6soc", ["rv32imac", "rv32imafc"]),
        ("c3/d1soc", ["rv32imac", "rv32gc"]),
        ("c3/esoc", []),  # 16 registers
        ("c3/c3soc", []),  # no atomic instructions
        ("c3/tiny", []),
        ("c3", []),  # several SoCs
        ("absent", []),
        ("mps2/an385", ["cortex-m3"]),
    ],
)
def test_processors_of_the_tree(tmp_path: Path, board: str, targets: list[str]) -> None:
    assert selected_targets(board, tree(tmp_path, FILES)) == targets


def test_symbols_of_the_processor(tmp_path: Path) -> None:
    found = processor_symbols("dk/nrf5340/cpunet", tree(tmp_path, FILES))
    assert found is not None and "CPU_CORTEX_M23" in found and "CPU_CORTEX_M33" not in found


def test_boards_before_zephyr_3_7(tmp_path: Path) -> None:
    workspace = tree(tmp_path, OLD_FILES)
    assert selected_targets("frdm", workspace) == M4
    assert selected_targets("other", workspace) == []


def test_damaged_trees(tmp_path: Path) -> None:
    assert selected_targets("nucleo", Workspace(tmp_path)) == []
    damaged = {name: text if name == "VERSION" else "\0[{:" for name, text in FILES.items()}
    assert selected_targets("nucleo", tree(tmp_path, damaged)) == []


def test_each_named_target_belongs_to_a_simulated_board() -> None:
    found = {target for targets in WITHOUT_A_TREE.values() for target in targets} | {"rv32gc"}  # no such board in QEMU
    assert found == set(named_targets())

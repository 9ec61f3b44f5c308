# SPDX-License-Identifier: Apache-2.0
"""The targets of boards: of simulated boards without Zephyr's tree, of others from the Kconfig files of their SoC."""

from __future__ import annotations

from pathlib import Path

import pytest
from opwest.targets import named_targets
from opwest.zephyr.processors import processor_symbols, selected_targets
from opwest.zephyr.workspace import Workspace

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
FILES = {
    "VERSION": "VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\n",
    "boards/st/nucleo/board.yml": "board:\n  name: nucleo\n  socs:\n    - name: stm32l4r5xx\n",
    "boards/st/nucleo/Kconfig.nucleo": "config BOARD_NUCLEO\n\tselect SOC_STM32L4R5XX\n",
    "soc/st/l4/soc.yml": "family:\n  - name: st\n    socs:\n      - name: stm32l4r5xx\n",
    "soc/st/l4/Kconfig": "config SOC_SERIES_STM32L4X\n\tselect CPU_CORTEX_M4 # the core\n\tselect CPU_HAS_FPU\n",
    "soc/st/l4/Kconfig.soc": "config SOC_SERIES_STM32L4X\n\tbool\n\nconfig SOC_STM32L4R5XX\n\tbool\n"
    "\tselect SOC_SERIES_STM32L4X\n",
    "boards/nordic/dk/board.yml": "board:\n  name: dk\n  socs:\n    - name: nrf5340\n      variants:\n"
    "        - {name: ns, cpucluster: cpuapp}\n",
    "boards/nordic/dk/Kconfig.dk": "config BOARD_DK\n\tselect SOC_NRF5340_CPUAPP if BOARD_DK_NRF5340_CPUAPP || \\\n"
    "\t\tBOARD_DK_NRF5340_CPUAPP_NS\n\tselect SOC_NRF5340_CPUNET if BOARD_DK_NRF5340_CPUNET\n",
    "soc/nordic/soc.yml": "family:\n  - name: nrf\n    series:\n      - name: nrf53\n        socs:\n"
    "          - name: nrf5340\n            cpuclusters: [{name: cpuapp}, {name: cpunet}]\n",
    "soc/nordic/Kconfig": 'rsource "*/Kconfig"\n',
    "soc/nordic/nrf53/Kconfig": "config SOC_NRF5340_CPUAPP\n\tselect CPU_CORTEX_M33\n"
    "config SOC_NRF5340_CPUNET\n\tselect CPU_CORTEX_M23\n",
    "boards/v/c3/board.yml": "board:\n  name: c3\n  socs:\n    - name: c3soc\n    - name: c6soc\n    - name: d1soc\n"
    "    - name: esoc\n    - name: tiny\n",
    "boards/v/c3/Kconfig.c3": "config BOARD_C3\n\tselect SOC_C3SOC if BOARD_C3_C3SOC\n"
    "\tselect SOC_C6SOC if BOARD_C3_C6SOC\n\tselect SOC_D1SOC if BOARD_C3_D1SOC\n"
    "\tselect SOC_ESOC if BOARD_C3_ESOC\n\tselect SOC_TINY if BOARD_C3_TINY\n",
    "soc/v/soc.yml": "socs:\n  - name: c3soc\n  - name: c6soc\n  - name: d1soc\n  - name: esoc\n  - name: tiny\n",
    "soc/v/Kconfig": "config SOC_C3SOC\n\tselect RISCV\n\tselect RISCV_ISA_EXT_M\n\tselect RISCV_ISA_EXT_C\n"
    "config SOC_C6SOC\n\tselect RISCV\n\tselect RISCV_ISA_EXT_M\n\tselect RISCV_ISA_EXT_A\n\tselect RISCV_ISA_EXT_C\n"
    "config SOC_D1SOC\n\tselect SOC_C6SOC\n\tselect CPU_HAS_FPU_DOUBLE_PRECISION\n"
    "config SOC_ESOC\n\tselect SOC_C6SOC\n\tselect RISCV_ISA_RV32E\n"
    "config SOC_TINY\n\tselect XTENSA\n",
}
OLD_FILES = {
    "VERSION": "VERSION_MAJOR = 3\nVERSION_MINOR = 4\nPATCHLEVEL = 0\n",
    "boards/arm/frdm/frdm_defconfig": "CONFIG_SOC_MK64F12=y\nCONFIG_SOC_SERIES_K6X=y\n",
    "soc/Kconfig": 'choice\n\tprompt "SoC"\n'
    'osource "soc/$(ARCH)/*/Kconfig.soc"\nendchoice\nosource "soc/$(ARCH)/*/Kconfig"\n',
    "soc/arm/k6x/Kconfig.soc": 'source "soc/arm/k6x/Kconfig.series"\n',
    "soc/arm/k6x/Kconfig.series": 'config SOC_SERIES_K6X\n\tbool "K6x"\n\tselect CPU_CORTEX_M4\n',
}


def tree(folder: Path, files: dict[str, str]) -> Workspace:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Workspace(folder)


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

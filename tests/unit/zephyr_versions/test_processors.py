# SPDX-License-Identifier: Apache-2.0
"""The targets of boards: of simulated boards without Zephyr's tree, of others from the Kconfig files of their SoC."""

from pathlib import Path

import pytest
from opwest.targets import named_targets
from opwest.zephyr.processors import processor_symbols, selected_targets
from opwest.zephyr.workspace import Workspace
from small_tree import FILES, OLD_FILES, tree

M4 = ["cortex-m4", "cortex-m4f", "cortex-m4f-softfp"]
M33 = ["cortex-m33", "cortex-m33f", "cortex-m33f-softfp"]
M85 = ["cortex-m85", "cortex-m85f", "cortex-m85f-mvei", "cortex-m85f-mve"]
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
        ("c3/c3soc", ["rv32imc"]),  # no atomic instructions
        ("c3/ra8", M85),
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


ISA_FILES = {
    "VERSION": "VERSION_MAJOR = 4\nVERSION_MINOR = 4\nPATCHLEVEL = 0\n",
    "arch/riscv/Kconfig": 'rsource "Kconfig.isa"\n',
    "arch/riscv/Kconfig.isa": "RISCV_ISA_BASE_PROP := riscv,isa-base\n"
    "config RISCV_ISA_RV64I\n\tbool\n"
    "\tdefault y if $(dt_compat_all_has_prop,riscv,$(RISCV_ISA_BASE_PROP),rv64i)\n\tselect 64BIT\n"
    "config RISCV_ISA_EXT_F\n\tbool\n\tselect CPU_HAS_FPU\n"
    "config RISCV_ISA_EXT_D\n\tbool\n\tselect CPU_HAS_FPU_DOUBLE_PRECISION\n",
    "boards/v/r/board.yml": "board:\n  name: r\n  socs:\n    - name: rsoc\n    - name: qsoc\n",
    "boards/v/r/Kconfig.r": "config BOARD_R\n\tselect SOC_R\n",
    "boards/v/r/r_rsoc.dts": "/dts-v1/;\n#include <v/r.dtsi>\n",
    "boards/v/r/r_qsoc.dts": '/dts-v1/;\n#include "q.dtsi"\n',
    "boards/v/r/q.dtsi": '#include "q.dtsi"\ncpu@0 { riscv,isa-base = "rv64i";\n'
    '\triscv,isa-extensions = "i", "m", "a", "f", /* "v", */\n\t\t"d", "c"; };\n',
    "dts/riscv/v/r.dtsi": 'cpu@0 { riscv,isa-base = "rv32i"; riscv,isa-extensions = "i", "m", "a", "c"; };\n'
    'cpu@1 { riscv,isa-base = "rv32i"; riscv,isa-extensions = "i", "m", "a", "f", "c"; };\n',
    "soc/v/soc.yml": "socs:\n  - name: rsoc\n  - name: qsoc\n",
    "soc/v/Kconfig": "config SOC_R\n\tselect RISCV\n",
}


@pytest.mark.parametrize(
    ("board", "targets"), [("r/rsoc", ["rv32imac", "rv32imafc"]), ("r/qsoc", ["rv64imac", "rv64gc"])]
)
def test_instruction_set_in_the_devicetree(tmp_path: Path, board: str, targets: list[str]) -> None:
    """Since Zephyr 4.4 the devicetree declares it, not the SoC's Kconfig files."""
    workspace = tree(tmp_path, ISA_FILES)
    assert selected_targets(board, workspace) == targets
    symbols = processor_symbols(board, workspace)
    assert symbols is not None
    assert ("CPU_HAS_FPU" in symbols) == (board == "r/qsoc"), "an extension of each core"
    assert "RISCV_ISA_EXT_V" not in symbols, "in a comment"


def test_instruction_set_without_sources(tmp_path: Path) -> None:
    without = {name: text for name, text in ISA_FILES.items() if not name.endswith(".dts")}
    assert selected_targets("r/rsoc", tree(tmp_path, without)) == []


def test_devicetree_does_not_count_where_kconfig_declares_the_instruction_set(tmp_path: Path) -> None:
    older = ISA_FILES | {"arch/riscv/Kconfig.isa": "config RISCV_ISA_EXT_M\n\tbool\n"}
    assert selected_targets("r/rsoc", tree(tmp_path, older)) == []


def test_damaged_trees(tmp_path: Path) -> None:
    assert selected_targets("nucleo", Workspace(tmp_path)) == []
    damaged = {name: text if name == "VERSION" else "\0[{:" for name, text in FILES.items()}
    assert selected_targets("nucleo", tree(tmp_path, damaged)) == []


def test_each_named_target_belongs_to_a_simulated_board() -> None:
    found = {target for targets in WITHOUT_A_TREE.values() for target in targets} | {
        "rv32gc",
        "rv32imc",
        *M85,
    }  # no such board in QEMU
    assert found == set(named_targets())

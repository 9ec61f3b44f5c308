# SPDX-License-Identifier: Apache-2.0
"""A sample of the sweep over all boards; `make board-sweep` takes all boards.

The sample has boards of each architecture, and those whose Kconfig files need a rule of their own.
"""

import os
import sys
from pathlib import Path

import pytest
from campaign import sized
from opwest.zephyr.workspace import Workspace
from requirements_support import need, skip_here

sys.path.insert(0, str(Path(__file__).parent))

BASE = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
SAMPLE = {
    "adafruit_qt_py_esp32s3/esp32s3/procpu": "C sources",  # selections depend on the revision
    "ek_ra8m1/r7fa8m1ahecbd": "cortex-m85f",
    "esp32c3_devkitm/esp32c3": "rv32imc",
    "fvp_baser_aemv8r/fvp_aemv8r_aarch32/smp": "C sources",  # SMP excludes the FPU
    "it8xxx2_evb/it81302bx": "C sources",  # selections depend on the toolchain
    "mps3/corstone300": None,  # a SoC without a processor
    "mps3/corstone300/an547": "cortex-m55f-mve",
    "myra_sip_baseboard/myra": "cortex-m4f",  # its SoC selects that of another vendor
    "native_sim/native": "i386",
    "nrf5340dk/nrf5340/cpuapp/ns": "cortex-m33f",
    "nrf5340dk/nrf5340/cpunet": "cortex-m33",
    "nucleo_h743zi/stm32h743xx": "cortex-m7f-double",
    "qemu_leon3/leon3": None,  # big-endian
    "qemu_riscv32/qemu_virt_riscv32": "rv32imafc",
    "qemu_riscv32e/qemu_virt_riscv32e": "C sources",
    "qemu_x86/atom": "C sources",
    "rpi_pico/rp2040": "cortex-m0plus",
}


@pytest.mark.slow
def test_targets_of_boards_are_those_of_kconfig(tmp_path):
    if not (BASE / "scripts" / "list_boards.py").is_file():
        skip_here("no Zephyr workspace")
    version = Workspace(BASE).version
    if version is None or version.pair != (4, 2):
        skip_here(f"the boards are those of Zephyr 4.2; {BASE} is {version}")
    need("pykwalify")
    from kconfig_truth import Tree
    from sweep import sweep

    tree = Tree(BASE, tmp_path / "kconfig")
    assert tree.boards > 700 and len(tree.targets) > 1000
    targets = [target for target in tree.targets if sized(target.full in SAMPLE, True)]
    rows = list(sweep(tree, targets, tmp_path))
    assert [row for row in rows if not row.agrees] == []
    picked = {row.board: (row.choice and row.choice.target) or (row.sources and row.sources.target) for row in rows}
    assert {board: picked[board] for board in SAMPLE} == SAMPLE

# SPDX-License-Identifier: Apache-2.0
"""Small trees like Zephyr's, with the Kconfig files of four boards."""

from pathlib import Path

from opwest.zephyr.workspace import Workspace

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
    "    - name: esoc\n    - name: tiny\n    - name: ra8\n",
    "boards/v/c3/Kconfig.c3": "config BOARD_C3\n\tselect SOC_C3SOC if BOARD_C3_C3SOC\n"
    "\tselect SOC_C6SOC if BOARD_C3_C6SOC\n\tselect SOC_D1SOC if BOARD_C3_D1SOC\n"
    "\tselect SOC_ESOC if BOARD_C3_ESOC\n\tselect SOC_TINY if BOARD_C3_TINY\n"
    "\tselect SOC_RA8 if BOARD_C3_RA8\n",
    "soc/v/soc.yml": "socs:\n  - name: c3soc\n  - name: c6soc\n  - name: d1soc\n  - name: esoc\n  - name: tiny\n"
    "  - name: ra8\n",
    "soc/v/Kconfig": "config SOC_C3SOC\n\tselect RISCV\n\tselect RISCV_ISA_EXT_M\n\tselect RISCV_ISA_EXT_C\n"
    "config SOC_C6SOC\n\tselect RISCV\n\tselect RISCV_ISA_EXT_M\n\tselect RISCV_ISA_EXT_A\n\tselect RISCV_ISA_EXT_C\n"
    "config SOC_D1SOC\n\tselect SOC_C6SOC\n\tselect CPU_HAS_FPU_DOUBLE_PRECISION\n"
    "config SOC_ESOC\n\tselect SOC_C6SOC\n\tselect RISCV_ISA_RV32E\n"
    "config SOC_TINY\n\tselect XTENSA\n"
    "config SOC_RA8\n\tselect CPU_CORTEX_M85\n\tselect CPU_HAS_FPU\n\tselect ARMV8_M_DSP\n\tselect FPU\n",
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

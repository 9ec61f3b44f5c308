# SPDX-License-Identifier: Apache-2.0
"""The module's CMake functions with the variables of several versions of Zephyr."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from requirements_support import need

CMAKE = Path(__file__).resolve().parents[3] / "zephyr_module" / "cmake" / "opwest.cmake"
TARGETS = """set(one_NAME cortex-m4)
set(one_KCONFIG CONFIG_CPU_CORTEX_M4=y)
set(two_NAME cortex-m4f)
set(two_KCONFIG CONFIG_CPU_CORTEX_M4=y)
"""


def run_script(folder: Path, board: str, qualifiers: str, calls: str) -> str:
    """Run calls of the functions in CMake's script mode; return what CMake printed."""
    need("cmake")
    script = folder / "script.cmake"
    variables = f'set(BOARD "{board}")\nset(BOARD_QUALIFIERS "{qualifiers}")\n'
    script.write_text(f'{variables}include("{CMAKE}")\n{TARGETS}{calls}')
    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=False)
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("board", "qualifiers", "expected"),
    [
        ("qemu_cortex_m3", "", "qemu_cortex_m3"),  # 3.4 to 3.6
        ("nucleo_l4r5zi", "/stm32l4r5xx", "nucleo_l4r5zi/stm32l4r5xx"),  # 3.7 to 4.3
        ("nucleo_l4r5zi", "stm32l4r5xx", "nucleo_l4r5zi/stm32l4r5xx"),  # from 4.4 on
        ("nrf5340dk", "/nrf5340/cpuapp/ns", "nrf5340dk/nrf5340/cpuapp/ns"),
        ("nrf5340dk", "nrf5340/cpuapp/ns", "nrf5340dk/nrf5340/cpuapp/ns"),
    ],
)
def test_messages_name_the_board(tmp_path: Path, board: str, qualifiers: str, expected: str) -> None:
    none = run_script(tmp_path, board, qualifiers, "opwest_select_target(found digits one)\n")
    assert f"opwest: model digits has objects for no target that this build ({expected}) matches." in none
    assert "cortex-m4: CONFIG_CPU_CORTEX_M4=n (needs y)" in none
    both = run_script(
        tmp_path, board, qualifiers, "set(CONFIG_CPU_CORTEX_M4 y)\nopwest_select_target(found digits one two)\n"
    )
    assert f"objects for 2 targets that this build ({expected}) matches: cortex-m4 and cortex-m4f." in both
    variants = "set(CONFIG_CPU_CORTEX_M4 y)\nset(digits_VARIANTS a b)\nset(digits_VARIANT_a one)\n"
    variants += "set(digits_VARIANT_b two)\nopwest_select_variant(found digits)\n"
    twice = run_script(tmp_path, board, qualifiers, variants)
    assert f"2 variants with targets that this build ({expected}) matches: a and b." in twice

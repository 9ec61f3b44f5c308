# SPDX-License-Identifier: Apache-2.0
"""The flash of SoCs and of options."""

import os
import re
from pathlib import Path

import pytest
from in_process import opwest
from opwest.objects.flash import NONE, UNKNOWN, Flash, fault_of, flash_of_text, known_flash
from opwest.zephyr.processors import flash_of_board
from opwest.zephyr.workspace import find_workspace
from requirements_support import skip_here

HOME = Path.home()
TREES = [Path(os.environ.get("ZEPHYR_BASE") or HOME / "zephyrproject/zephyr"), HOME / "zephyrproject-3.4/zephyr"]
BOARDS = {
    "nucleo_l4r5zi": (5, 8, 1024),
    "nucleo_l476rg": (4, 8, 1024),
    "nucleo_f411re": (5, 16, 1024),
    "nucleo_h743zi": (4, 32, 16384),
    "nrf52840dk/nrf52840": (3, 16, 2048),
    "nrf5340dk/nrf5340/cpunet": (3, 16, 2048),
    "nrf5340dk/nrf5340/cpuapp": (6, 16, 4096),
    "rpi_pico2/rp2350a/m33": (55, 8, 8192),
    "mps2/an386": None,
}


def tree(base):
    workspace = find_workspace(base) if (base / "VERSION").is_file() else None
    if workspace is None:
        skip_here(f"no Zephyr tree {base}")
    return workspace


def test_symbols_are_those_of_zephyr():
    names = set()
    for base in TREES:
        files = tree(base).base.glob("soc/**/Kconfig*")
        names |= {name for file in files for name in re.findall(r"config (SOC_\w+)", file.read_text(encoding="utf-8"))}
    assert known_flash().keys() <= names


@pytest.mark.parametrize("board", BOARDS)
def test_boards(board):
    flash = flash_of_board(board, tree(TREES[0]))
    assert (flash and (flash.wait_states, flash.line, flash.cache)) == BOARDS[board]


def test_known_flash_is_valid():
    for flash in (NONE, UNKNOWN, *known_flash().values()):
        assert fault_of(flash) is None
        assert flash_of_text(flash.text) == flash
    page = (Path(__file__).parents[3] / "docs/contributing/flash.md").read_text(encoding="utf-8")
    for symbol, flash in known_flash().items():
        cells = (flash.wait_states, flash.line, flash.cache, flash.data_cache, "yes" if flash.prefetch else "no")
        assert f"| `{symbol}` | {' | '.join(map(str, cells))} |" in page


def test_loops_and_stalls():
    assert [flash.loop_bytes for flash in (UNKNOWN, NONE, Flash(5, 16, 0), Flash(5, 16, 8192))] == [960, *3 * [None]]
    # Twice the wait states, half of the bytes of a line: four times the stalls.
    assert (Flash(10, 8, 1024).stalls_beside(UNKNOWN), NONE.stalls_beside(UNKNOWN)) == (4, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown key ''; expected wait_states=N,line=BYTES"),
        ("wait_states=5,line=16", "missing cache=NUMBER; expected wait_states=N,line=BYTES"),
        ("wait_states=5,wait_states=5", "repeated key 'wait_states'; expected wait_states=N"),
        ("wait_states=-1", "invalid 'wait_states=-1'; expected wait_states=NUMBER"),
        ("prefetch=on", "invalid 'prefetch=on'; expected prefetch=yes or no"),
        ("wait_states=1001,line=16,cache=0", "invalid wait_states=1001; expected a number from 0 to 1000"),
        ("wait_states=5,line=12,cache=0", "invalid line=12; expected 4, 8, 16, 32 or 64: the bytes of a read"),
        ("wait_states=5,line=16,cache=8", "invalid cache=8; expected a multiple of the line: 16 bytes"),
    ],
)
def test_invalid_options(text, message):
    for words in (["tune", "model"], ["import", "tflite", "m.tflite", "-o", "model"]):
        done = opwest(*words, "--flash", text)
        assert done.returncode == 2 and f"error: argument --flash: {message}" in done.stderr

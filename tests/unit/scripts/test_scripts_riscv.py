# SPDX-License-Identifier: Apache-2.0
"""The toolchain that the benchmarks use for qemu_riscv32, with a made-up compiler, and sizes of its images."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
SECTIONS = """
  [Nr] Name              Type            Addr     Off    Size   ES Flg Lk Inf Al
  [ 0]                   NULL            00000000 000000 000000 00      0   0  0
  [ 4] text              PROGBITS        80000150 0001f0 002000 00  AX  0   0  4
  [11] rodata            PROGBITS        80004678 004718 000400 00   A  0   0  8
  [12] rom_mpu_padding   NOBITS          80046ca4 046d44 00035c 00  WA  0   0  1
  [13] bss               NOBITS          80047000 046d44 000030 00  WA  0   0  8
  [15] datas             PROGBITS        80048bf0 046d44 000004 00  WA  0   0  4
  [18] .last_ram_section PROGBITS        80048c40 048614 000000 00   W  0   0  1
  [21] .debug_info       PROGBITS        00000000 048e90 010e9a 00      0   0  1
"""


@pytest.fixture
def riscv(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import riscv

    return riscv


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_wrapper_shortens_march_except_in_compilations(
    riscv: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / f"{riscv.PREFIX}gcc", 'for word in "$@"; do echo "[$word]"; done')
    script(tools / f"{riscv.PREFIX}nm", "echo nm")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    prefix = riscv.toolchain(tmp_path / "toolchain")["CROSS_COMPILE"]

    def output(tool: str, *words: str) -> list[str]:
        done = subprocess.run([prefix + tool, *words], capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[:-1]

    march = "-march=rv32imac_zicsr_zifencei"
    assert output("gcc", march, "-o", "a b") == ["[-march=rv32imac]", "[-o]", "[a b]"]
    assert output("gcc", "-print-libgcc-file-name", march) == ["[-print-libgcc-file-name]", "[-march=rv32imac]"]
    for word in ("-c", "-S", "-E"):
        assert output("gcc", march, word, "a.c") == [f"[{march}]", f"[{word}]", "[a.c]"]
    assert output("nm") == ["nm"]


def test_no_compiler_is_a_reason_to_skip(riscv: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(riscv.SkippedError, match=r"^riscv64-unknown-elf-gcc not found$"):
        riscv.toolchain(tmp_path / "toolchain")


def test_sizes_of_an_image_in_one_memory(riscv: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import zephyr_images

    script(tmp_path / "made-readelf", f"cat <<'END'\n{SECTIONS}\nEND")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    flash, ram = zephyr_images.sizes_of(tmp_path / "image.elf", "made-")
    assert (flash, ram) == (0x2000 + 0x400 + 4, 0x30 + 4)

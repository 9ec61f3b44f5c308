# SPDX-License-Identifier: Apache-2.0
"""The toolchain of a distribution for Zephyr's RISC-V boards, with a made-up compiler, and sizes of its images."""

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
Capture = pytest.CaptureFixture[str]
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
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import riscv_toolchain

    return riscv_toolchain


@pytest.fixture
def tools(riscv: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only directory of PATH with tools for RISC-V; they print their words."""
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / f"{riscv.PREFIX}gcc", 'for word in "$@"; do echo "[$word]"; done')
    script(tools / f"{riscv.PREFIX}nm", "echo nm")
    monkeypatch.setenv("PATH", f"{tools}:{tmp_path}/bin")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    return tools


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def made(riscv: ModuleType, folder: Path) -> str:
    """Write the toolchain; return the prefix of its tools."""
    riscv.toolchain(folder)
    return riscv.variables(folder)["CROSS_COMPILE"]


def test_tools_of_all_directories_of_path(
    riscv: ModuleType, tools: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A directory before the others, with links to ccache, has the compilers only."""
    (tmp_path / "links").mkdir()
    script(tmp_path / "links" / f"{riscv.PREFIX}gcc", "echo ccache")
    monkeypatch.setenv("PATH", f"{tmp_path / 'links'}:{tools}:{tmp_path / 'bin'}")
    prefix = made(riscv, tmp_path / "toolchain")
    assert output(f"{prefix}nm") == ["nm"]
    assert output(f"{prefix}gcc", "-c") == ["ccache"]


def output(*words: str) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_the_wrapper_shortens_march_except_in_compilations(riscv: ModuleType, tools: Path, tmp_path: Path) -> None:
    prefix = made(riscv, tmp_path / "toolchain")
    gcc, march = f"{prefix}gcc", "-march=rv32imac_zicsr_zifencei"
    assert output(gcc, march, "-o", "a b") == ["[-march=rv32imac]", "[-o]", "[a b]"]
    assert output(gcc, "-print-libgcc-file-name", march) == ["[-print-libgcc-file-name]", "[-march=rv32imac]"]
    for word in ("-c", "-S", "-E"):
        assert output(gcc, march, word, "a.c") == [f"[{march}]", f"[{word}]", "[a.c]"]
    assert output(f"{prefix}nm") == ["nm"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("rv64imafdc", "rv64imafdc"),
        ("rv32imac_zifencei", "rv32imac"),
        ("rv32imac_zba_zicsr_zbb_zifencei_zbs", "rv32imac_zba_zbb_zbs"),
        ("rv32imac_zifencei_zicsr", "rv32imac"),
    ],
)
def test_other_extensions_remain(riscv: ModuleType, tools: Path, tmp_path: Path, given: str, expected: str) -> None:
    prefix = made(riscv, tmp_path / "toolchain")
    assert output(f"{prefix}gcc", f"-march={given}") == [f"[-march={expected}]"]


def test_the_wrapper_in_path_does_not_run_itself(
    riscv: ModuleType, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "toolchain"
    gcc = made(riscv, folder) + "gcc"
    monkeypatch.setenv("PATH", f"{folder}:{tmp_path}/bin")
    done = subprocess.run([gcc], capture_output=True, text=True, check=False)
    assert done.returncode == 126
    assert done.stderr == f"{gcc}: found itself as {riscv.PREFIX}gcc; remove its directory from PATH\n"
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    done = subprocess.run([gcc], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == (
        f"{gcc}: {riscv.PREFIX}gcc not found in PATH (Debian: apt-get install gcc-riscv64-unknown-elf)\n"
    )


def test_main_prints_the_variables(riscv: ModuleType, tools: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "tool chain"
    assert riscv.main([str(folder)]) == 0
    assert riscv.main([str(folder)]) == 0, "the directory exists"
    lines = capsys.readouterr().out.splitlines()[:3]
    assert lines == [
        "export ZEPHYR_TOOLCHAIN_VARIANT=cross-compile",
        f"export CROSS_COMPILE='{folder}/{riscv.PREFIX}'",
        "export CCACHE_COMPILERCHECK='%compiler% --version'",
    ]
    assert riscv.main([]) == 2
    assert capsys.readouterr().err == "usage: riscv_toolchain.py DIRECTORY\n"


def test_no_compiler(riscv: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert riscv.main([str(tmp_path / "toolchain")]) == 1
    assert capsys.readouterr().err == (
        "error: riscv64-unknown-elf-gcc not found in PATH (Debian: apt-get install gcc-riscv64-unknown-elf)\n"
    )
    assert not (tmp_path / "toolchain").exists()


def test_sizes_of_an_image_in_one_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import zephyr_images

    script(tmp_path / "made-readelf", f"cat <<'END'\n{SECTIONS}\nEND")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    flash, ram = zephyr_images.sizes_of(tmp_path / "image.elf", "made-")
    assert (flash, ram) == (0x2000 + 0x400 + 4, 0x30 + 4)

# SPDX-License-Identifier: Apache-2.0
"""The target of a model on a board, and the messages of `--board` if there is none."""

import subprocess
from pathlib import Path

import pytest
from opwest.cli.main import main
from requirements_support import need
from small_tree import FILES, tree

ARCH = {
    "arch/Kconfig": 'config CPU_HAS_FPU\n\tbool\n\nconfig FPU\n\tbool "FPU"\n\tdepends on CPU_HAS_FPU\n'
    '\thelp\n\t  select XTENSA is only text here.\n\nchoice\n\tprompt "ABI"\n\tdefault FP_HARDABI\n\tdepends on FPU\n'
    'config FP_HARDABI\n\tbool "hard"\nconfig FP_SOFTABI\n\tbool "soft"\nendchoice\n',
    "boards/v/odd/board.yml": "board:\n  name: odd\n  socs:\n    - name: tiny\n",
    "boards/v/big/board.yml": "board:\n  name: big\n  socs:\n    - name: tiny\n",
    "boards/v/big/Kconfig.big": "config BOARD_BIG\n\tselect SPARC\n\tselect BIG_ENDIAN\n",
}
MANIFEST = """version: 1
model: m
objects: [{files: [op.c]}]
operators:
  op: {args: [{name: x, dtype: float32, shape: [1]}, {name: y, dtype: float32, shape: [1], direction: out}]}
run:
  inputs: {x: {dtype: float32, shape: [1]}}
  outputs: {y: {dtype: float32, shape: [1]}}
  steps: [{call: op, args: [x, y]}]
"""
SOURCE = "#include <stdint.h>\nint32_t op(const float *x, float *y)\n{\n\ty[0] = x[0];\n\treturn 0;\n}\n"
IR = "define i32 @op(ptr %x, ptr %y) {\n  ret i32 0\n}\n"


def checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], board: str, targets: str = "", kconfig: str = ""
) -> str:
    base = tree(tmp_path / "zephyr", FILES | ARCH).base
    (tmp_path / "op.c").write_text(SOURCE)
    (tmp_path / "op.ll").write_text(IR)
    file = tmp_path / "manifest.yaml"
    file.write_text(MANIFEST)
    if targets:
        text = MANIFEST.replace("{files: [op.c]}", f"{{files: [op.ll], targets: [{targets}]}}")
        file.write_text(text + (f"application: {{kconfig: {{{kconfig}}}}}\n" if kconfig else ""))
    assert main(["check", str(file), "--zephyr-base", str(base), "--board", board]) == 0
    return "\n".join(capsys.readouterr().err.splitlines())


def warning(text: str) -> str:
    """Return the message about the target, with its expectation and hint; empty if there is none."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if "has no target on board" in line or "unknown processor of board" in line:
            rest = [more.strip() for more in lines[at + 1 : at + 3] if more.startswith("  ")]
            return "\n".join([line.split("warning: ")[1], *rest])
    return ""


@pytest.mark.parametrize("board", ["nucleo", "dk/nrf5340/cpuapp", "c3/tiny", "c3/c3soc"])
def test_c_sources_need_no_target(tmp_path: Path, capsys: pytest.CaptureFixture[str], board: str) -> None:
    assert warning(checked(tmp_path, capsys, board)) == ""


@pytest.mark.parametrize(("board", "target"), [("nucleo", "cortex-m4f-softfp"), ("c3/c6soc", "rv32imac")])
def test_objects_of_the_board(tmp_path: Path, capsys: pytest.CaptureFixture[str], board: str, target: str) -> None:
    softfp = "CONFIG_FP_SOFTABI: y" if "softfp" in target else ""
    assert warning(checked(tmp_path, capsys, board, target, softfp)) == ""


@pytest.mark.parametrize(
    ("board", "message"),
    [
        (
            "c3/tiny",
            "model 'm' has no target on board 'c3/tiny': Xtensa, without a named target\n"
            "expected: C sources only, or a target under `targets:` in the manifest\n"
            "hint: found objects for: cortex-m3",
        ),
        (
            "dk/nrf5340/cpunet",
            "model 'm' has no target on board 'dk/nrf5340/cpunet': Cortex-M23, without a named target\n"
            "expected: C sources only, or a target under `targets:` in the manifest\n"
            "hint: found objects for: cortex-m3",
        ),
        (
            "c3/c3soc",
            "model 'm' has no target on board 'c3/c3soc': RISC-V rv32imc\n"
            "expected: objects for rv32imc\nhint: found: cortex-m3",
        ),
        (
            "nucleo",
            "model 'm' has no target on board 'nucleo': Cortex-M4\n"
            "expected: objects for cortex-m4, cortex-m4f, cortex-m4f-softfp\n"
            "hint: found: cortex-m3",
        ),
        (
            "big",
            "model 'm' has no target on board 'big': SPARC with big-endian data\nexpected: a little-endian processor",
        ),
        (
            "odd",
            "unknown processor of board 'odd': its Kconfig files select none\n"
            "expected: a board target with an SoC\n"
            "hint: targets of the board: odd/tiny",
        ),
    ],
)
def test_boards_without_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str], board: str, message: str) -> None:
    assert warning(checked(tmp_path, capsys, board, "cortex-m3")) == message


def test_options_of_the_application(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = checked(tmp_path, capsys, "nucleo", "cortex-m4", "CONFIG_FPU: y")
    assert warning(text) == (
        "model 'm' has no target on board 'nucleo': its configuration has CONFIG_FPU=y\n"
        "expected: CONFIG_FPU=n, for the objects of cortex-m4\n"
        "hint: set options under `application: kconfig:` in the manifest, or add objects for the target of the board"
    )


@pytest.mark.parametrize(
    ("board", "targets"),
    [
        ("qemu_riscv32", "rv32imac, rv32imafc"),
        pytest.param("qemu_riscv64", "rv64gc", marks=pytest.mark.slow),
        ("mps2/an386", "cortex-m4, cortex-m4f"),
        pytest.param("mps3/corstone300/an547", "cortex-m55f-mve", marks=pytest.mark.slow),
        ("qemu_cortex_a53", "cortex-a53"),
    ],
)
def test_simulated_boards_without_a_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, board: str, targets: str
) -> None:
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "op.ll").write_text(IR)
    text = MANIFEST.replace("{files: [op.c]}", f"{{files: [op.ll], targets: [{targets}]}}")
    (tmp_path / "manifest.yaml").write_text(text)
    assert main(["check", "manifest.yaml", "--board", board]) == 0
    assert warning(capsys.readouterr().err) == ""
    (tmp_path / "manifest.yaml").write_text(text.replace(targets, "cortex-m0"))
    assert main(["check", "manifest.yaml", "--board", board]) == 0
    assert f"'m' has no target on board '{board}'" in warning(capsys.readouterr().err)


CORES = {
    "boards/v/cores/board.yml": "board:\n  name: cores\n  socs:\n    - name: plain33\n    - name: dsp33\n",
    "boards/v/cores/Kconfig.cores": "config BOARD_CORES\n\tselect SOC_PLAIN33 if BOARD_CORES_PLAIN33\n"
    "\tselect SOC_DSP33 if BOARD_CORES_DSP33\n",
    "soc/w/soc.yml": "socs:\n  - name: plain33\n  - name: dsp33\n",
    "soc/w/Kconfig": "config SOC_PLAIN33\n\tselect CPU_CORTEX_M33\n"
    "config SOC_DSP33\n\tselect CPU_CORTEX_M33\n\tselect ARMV8_M_DSP\n",
}


@pytest.mark.parametrize(
    ("board", "cpu", "warned"),
    [
        ("cores/plain33", "cortex-m33", True),
        ("cores/plain33", "cortex-m33+nodsp", False),
        ("cores/dsp33", "cortex-m33", False),
    ],
)
def test_dsp_instructions_on_a_core_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], board: str, cpu: str, warned: bool
) -> None:
    need("arm-none-eabi-gcc")
    base = tree(tmp_path / "zephyr", FILES | ARCH | CORES).base
    (tmp_path / "op.c").write_text(SOURCE.replace("#include <stdint.h>\nint32_t", "int"))
    command = ["arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb", "-O1", "-g", "-c", "op.c", "-o", "op.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    file = tmp_path / "manifest.yaml"
    file.write_text(MANIFEST.replace("{files: [op.c]}", "{files: [op.o], target: cortex-m33}"))
    assert main(["check", str(file), "--zephyr-base", str(base), "--board", board]) == 0
    text = (
        "manifest.yaml:2:8: warning: objects of model 'm' for target 'cortex-m33' use DSP instructions, which the "
        "configuration of board 'cores/plain33' does not select: op.o\n"
        "  expected: CONFIG_ARMV8_M_DSP=y, or objects without DSP instructions\n"
        "  hint: if the processor lacks the extension, as the nRF5340's network core does, compile with +nodsp "
        "appended to -mcpu; otherwise ignore this warning\n"
    )
    printed = capsys.readouterr().err
    assert (text in printed) == warned
    assert ("DSP" in printed) == warned

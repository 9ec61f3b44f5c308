# SPDX-License-Identifier: Apache-2.0
"""The targets of boards: of simulated boards, of others from Zephyr's tree; the target of a model on a board."""

import subprocess

import pytest
from opwest.cli.main import main
from opwest.objects.targets import named_targets
from opwest.zephyr.processors import processor_symbols, selected_targets
from opwest.zephyr.workspace import Workspace
from requirements_support import need
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
def test_simulated_boards(board):
    assert selected_targets(board, None) == WITHOUT_A_TREE[board]


@pytest.mark.parametrize(
    ("board", "targets"),
    [
        ("nucleo", M4),
        ("nucleo/stm32l4r5xx", M4),
        ("dk/nrf5340/cpuapp", M33),
        ("dk/nrf5340/cpuapp/ns", M33),
        ("dk/nrf5340/cpunet", ["cortex-m23"]),
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
def test_processors_of_the_tree(tmp_path, board, targets):
    assert selected_targets(board, tree(tmp_path, FILES)) == targets


def test_symbols_of_the_processor(tmp_path):
    found = processor_symbols("dk/nrf5340/cpunet", tree(tmp_path, FILES))
    assert found is not None and "CPU_CORTEX_M23" in found and "CPU_CORTEX_M33" not in found


def test_boards_before_zephyr_3_7(tmp_path):
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
def test_instruction_set_in_the_devicetree(tmp_path, board, targets):
    """Since Zephyr 4.4 the devicetree declares it, not the SoC's Kconfig files."""
    workspace = tree(tmp_path, ISA_FILES)
    assert selected_targets(board, workspace) == targets
    symbols = processor_symbols(board, workspace)
    assert symbols is not None
    assert ("CPU_HAS_FPU" in symbols) == (board == "r/qsoc"), "an extension of each core"
    assert "RISCV_ISA_EXT_V" not in symbols, "in a comment"


WITHOUT_SOURCES = {name: text for name, text in ISA_FILES.items() if not name.endswith(".dts")}
DECLARED_BY_KCONFIG = ISA_FILES | {"arch/riscv/Kconfig.isa": "config RISCV_ISA_EXT_M\n\tbool\n"}


@pytest.mark.parametrize("files", [WITHOUT_SOURCES, DECLARED_BY_KCONFIG], ids=["no sources", "declared by Kconfig"])
def test_devicetree_does_not_count(tmp_path, files):
    assert selected_targets("r/rsoc", tree(tmp_path, files)) == []


def test_damaged_trees(tmp_path):
    assert selected_targets("nucleo", Workspace(tmp_path)) == []
    damaged = {name: text if name == "VERSION" else "\0[{:" for name, text in FILES.items()}
    assert selected_targets("nucleo", tree(tmp_path, damaged)) == []


def test_each_named_target_belongs_to_a_simulated_board():
    found = {target for targets in WITHOUT_A_TREE.values() for target in targets} | {
        *("rv32gc", "rv32imc", "cortex-m23", *M85, *(name.replace("m85", "m52") for name in M85)),
    }  # no such board in QEMU
    assert found == set(named_targets())


# --- The target of a model on a board, and the messages of `--board` if there is none

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


def checked(tmp_path, capsys, board, targets="", kconfig=""):
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


def warning(text):
    """Return the message about the target, with its expectation and hint; empty if there is none."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if "has no target on board" in line or "unknown processor of board" in line:
            rest = [more.strip() for more in lines[at + 1 : at + 3] if more.startswith("  ")]
            return "\n".join([line.split("warning: ")[1], *rest])
    return ""


@pytest.mark.parametrize(
    ("board", "target", "kconfig"),
    [
        *[(board, "", "") for board in ("nucleo", "dk/nrf5340/cpuapp", "c3/tiny", "c3/c3soc")],  # C sources only
        ("nucleo", "cortex-m4f-softfp", "CONFIG_FP_SOFTABI: y"),
        ("c3/c6soc", "rv32imac", ""),
    ],
)
def test_boards_with_a_target(tmp_path, capsys, board, target, kconfig):
    assert warning(checked(tmp_path, capsys, board, target, kconfig)) == ""


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
            "model 'm' has no target on board 'dk/nrf5340/cpunet': Cortex-M23\n"
            "expected: objects for cortex-m23\nhint: found: cortex-m3",
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
def test_boards_without_a_target(tmp_path, capsys, board, message):
    assert warning(checked(tmp_path, capsys, board, "cortex-m3")) == message


def test_options_of_the_application(tmp_path, capsys):
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
def test_simulated_boards_without_a_tree(tmp_path, capsys, monkeypatch, board, targets):
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
def test_dsp_instructions_on_a_core_without_them(tmp_path, capsys, board, cpu, warned):
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

# SPDX-License-Identifier: Apache-2.0
"""RISC-V in QEMU: digits from objects and from IR, imported int8 models, twister, and `opwest run --board`."""

import subprocess

import numpy as np
import pytest
from cover import configured
from digits_support import PREDICTIONS, copied, predictions, with_objects
from examples.example_files import held_out_of
from requirements_support import need
from test_project_tests_on_zephyr import check_passed, twister

pytestmark = [
    pytest.mark.zephyr,
    pytest.mark.needs("riscv64-unknown-elf-gcc", "qemu-system-riscv32", "qemu-system-riscv64"),
]
TARGETS = {
    "rv32imac": ("qemu_riscv32", "n", "-march=rv32imac -mabi=ilp32"),
    "rv32imafc": ("qemu_riscv32", "y", "-march=rv32imafc -mabi=ilp32f"),
    "rv64imac": ("qemu_riscv64", "n", "-march=rv64imac -mabi=lp64 -mcmodel=medany"),
    "rv64gc": ("qemu_riscv64", "y", "-march=rv64gc -mabi=lp64d -mcmodel=medany"),
}
"""Board, CONFIG_FPU, and the options of the compiler."""


def example(folder, back_end):
    """Copy digits for RISC-V: objects of the compiler for the C back end, IR for that of LLVM; return the manifest."""
    copied(folder)
    if back_end == "llvm":
        return folder / "manifest_ir.yaml"
    entries = []
    for target, (_, _, flags) in TARGETS.items():
        (folder / "objects" / target).mkdir(parents=True)
        files = []
        for source in sorted((folder / "operators").glob("*.c")):
            files.append(f"objects/{target}/{source.stem}.o")
            command = ["riscv64-unknown-elf-gcc", *flags.split(), "-Os", "-ffreestanding", "-fno-common", "-c"]
            subprocess.run([*command, str(source), "-o", str(folder / files[-1])], check=True)
        entries.append(f"{{target: {target}, files: [{', '.join(files)}]}}")
    return with_objects(folder, entries)


@configured(
    "target, board, back_end", [(name, TARGETS[name][0], back_end) for name in TARGETS for back_end in ("c", "llvm")]
)
def test_digits(workspace, opwest, tmp_path, target, board, back_end):
    if back_end == "llvm":
        need("llvmlite")
    fpu = TARGETS[target][1]
    manifest = example(tmp_path / "example", back_end)
    given = ["--board", board, "--zephyr-base", workspace.base, f"--metadata={back_end}"]
    opwest("generate", manifest, "-o", tmp_path / "app", *given)
    built = workspace.build(tmp_path / "app", board, f"-DCONFIG_FPU={fpu}")
    assert f"objects for {target}\n" in built.log
    assert predictions(built) == PREDICTIONS


@configured("board", ["qemu_riscv32", "qemu_riscv64"])
def test_imported_int8_models_equal_litert(workspace, opwest, tmp_path, board):
    need("tflite", "ai_edge_litert")
    from sequence_support import application
    from test_model_operators_on_zephyr import MODELS, check_trained, trained

    subjects = [trained(name) for name in MODELS if name.endswith("_int8")]
    app = application(opwest, tmp_path, subjects)
    console = workspace.build(app, board).run("^finished: ")
    check_trained(subjects, console)


@configured("board", ["qemu_riscv32", "qemu_riscv64"])
def test_opwest_runs_on_the_board(workspace, opwest, on_board, tmp_path, board):
    opwest("generate", example(tmp_path / "example", "c"), "-o", tmp_path / "app", "--board", board)
    images, _, labels = held_out_of("digits")
    np.save(tmp_path / "image.npy", images[:1])
    np.save(tmp_path / "label.npy", labels[:1])
    given = ["--input", f"image={tmp_path / 'image.npy'}", "--reference", f"label={tmp_path / 'label.npy'}"]
    on_board(tmp_path / "app", board, "--json", "--zephyr-base", workspace.base, *given)


@configured("board", ["qemu_riscv32", "qemu_riscv64"])
def test_twister(workspace, opwest, tmp_path, board):
    """twister accepts the toolchain without --force-toolchain; its --fatal-warnings meets a warning of Debian's ld."""
    opwest("generate", example(tmp_path / "example", "c"), "-o", tmp_path / "app", "--board", board)
    options = ("-p", board, "-x=CONFIG_MINIMAL_LIBC=y", "--disable-warnings-as-errors")
    report = twister(workspace, tmp_path / "app" / "tests", tmp_path / "twister", *options, toolchain_of=board)
    (suite,) = report["testsuites"]
    check_passed(report, {suite["platform"]}, "opwest.digits.tests")
    assert suite["platform"].startswith(f"{board}/")

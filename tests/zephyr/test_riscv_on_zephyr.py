# SPDX-License-Identifier: Apache-2.0
"""RISC-V in QEMU: digits from objects and from IR, imported int8 models, twister, and `opwest run --board`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cover import configured
from digits_support import copied, with_objects
from requirements_support import need
from test_digits_on_zephyr import END, predictions
from test_project_tests_on_zephyr import check_passed, twister
from zephyr_support import Workspace

pytestmark = [
    pytest.mark.zephyr,
    pytest.mark.needs("riscv64-unknown-elf-gcc", "qemu-system-riscv32", "qemu-system-riscv64"),
]
Opwest = Callable[..., subprocess.CompletedProcess[str]]
TARGETS = {
    "rv32imac": ("qemu_riscv32", "n", "-march=rv32imac -mabi=ilp32"),
    "rv32imafc": ("qemu_riscv32", "y", "-march=rv32imafc -mabi=ilp32f"),
    "rv64imac": ("qemu_riscv64", "n", "-march=rv64imac -mabi=lp64 -mcmodel=medany"),
    "rv64gc": ("qemu_riscv64", "y", "-march=rv64gc -mabi=lp64d -mcmodel=medany"),
}
"""Board, CONFIG_FPU, and the options of the compiler."""


def example(folder: Path, back_end: str) -> Path:
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
def test_digits(
    workspace: Workspace, opwest: Opwest, digits: Path, tmp_path: Path, target: str, board: str, back_end: str
) -> None:
    if back_end == "llvm":
        need("llvmlite")
    fpu = TARGETS[target][1]
    manifest = example(tmp_path / "example", back_end)
    given = ["--board", board, "--zephyr-base", workspace.base, f"--metadata={back_end}"]
    opwest("generate", manifest, "-o", tmp_path / "app", *given)
    built = workspace.build(tmp_path / "app", board, f"-DCONFIG_FPU={fpu}")
    assert f"objects for {target}\n" in built.log
    console = built.run(END)
    command = [sys.executable, "-m", "opwest", "run", digits, "--host"]
    host = subprocess.run(command, capture_output=True, text=True, check=True)
    assert predictions(console) == predictions(host.stdout)
    assert "predictions: 360 of 360 equal the reference" in console


@configured("board", ["qemu_riscv32", "qemu_riscv64"])
def test_imported_int8_models_equal_litert(workspace: Workspace, opwest: Opwest, tmp_path: Path, board: str) -> None:
    need("tflite", "ai_edge_litert")
    from sequence_support import application
    from test_model_operators_on_zephyr import MODELS, check_trained, trained

    subjects = [trained(name) for name in MODELS if name.endswith("_int8")]
    app = application(opwest, tmp_path, subjects)
    console = workspace.build(app, board).run("^finished: ")
    check_trained(subjects, console)


@configured("board", ["qemu_riscv32", "qemu_riscv64"])
def test_opwest_runs_on_the_board(workspace: Workspace, opwest: Opwest, tmp_path: Path, board: str) -> None:
    need("smpclient")
    example_folder = tmp_path / "example"
    opwest("generate", example(example_folder, "c"), "-o", tmp_path / "app", "--board", board)
    with np.load(example_folder / "vectors.npz") as vectors:
        image, label = vectors["image"][:1], vectors["label"][:1]
    np.save(tmp_path / "image.npy", image.reshape(1, 8, 8, 1))
    np.save(tmp_path / "label.npy", label.astype(np.int32))
    command = [sys.executable, "-m", "opwest", "run", tmp_path / "app", "--board", board, "--json"]
    command += ["--input", f"image={tmp_path / 'image.npy'}", "--reference", f"label={tmp_path / 'label.npy'}"]
    command += ["--zephyr-base", workspace.base]
    env = workspace.opwest_environment(board)
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@configured("board", ["qemu_riscv32", "qemu_riscv64"])
def test_twister(workspace: Workspace, opwest: Opwest, tmp_path: Path, board: str) -> None:
    """twister accepts the toolchain without --force-toolchain; its --fatal-warnings meets a warning of Debian's ld."""
    opwest("generate", example(tmp_path / "example", "c"), "-o", tmp_path / "app", "--board", board)
    options = ("-p", board, "-x=CONFIG_MINIMAL_LIBC=y", "--disable-warnings-as-errors")
    report = twister(workspace, tmp_path / "app" / "tests", tmp_path / "twister", *options, toolchain_of=board)
    (suite,) = report["testsuites"]
    check_passed(report, {suite["platform"]}, "opwest.digits.tests")
    assert suite["platform"].startswith(f"{board}/")

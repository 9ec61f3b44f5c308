# SPDX-License-Identifier: Apache-2.0
"""The matrix of docs/supported-hosts.md: each cell is a model that ran in an image, with the results of numpy.

An image belongs to a version of Zephyr, a board and a back end, and holds a model for each calling convention. Each
model is verified and recorded for itself, in build/matrix/; scripts/host_matrix.py prints the table of these records.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matrix_project
import pytest
from cover import MAIN, configured
from gallery import Program, output
from requirements_support import need
from zephyr_support import BACK_ENDS, ROOT, Workspace, is_riscv

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]
Workspaces = Callable[[str], Workspace]
RECORDS = ROOT / "build" / "matrix"
VERSIONS = ("3.4", "4.1", "4.2")
SOFT, HARD = ("-DCONFIG_FPU=n",), ("-DCONFIG_FPU=y",)
BOARDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("native_sim/native/64", ()),
    ("native_sim", ()),
    ("qemu_cortex_m3", ()),
    ("mps2/an385", ()),
    ("mps2/an386", HARD),
    ("mps3/corstone300/an547", HARD),
    ("qemu_riscv32", SOFT),
    ("qemu_riscv32", HARD),
    ("qemu_riscv64", SOFT),
    ("qemu_riscv64", HARD),
)
"""The boards by their names in Zephyr 4.2, each with the options of the build."""
ABSENT = {
    ("3.4", "mps2/an386", HARD): "Zephyr 3.4 has no such board",
}
CELLS = [
    (version, board, options, back_end)
    for version in VERSIONS
    for board, options in BOARDS
    for back_end in ("c", "llvm")
    if (version, board, options) not in ABSENT
]
PROGRAM = Program("matrix", matrix_project.write, BACK_ENDS)


@pytest.fixture(scope="module", autouse=True)
def absent() -> None:
    """Write the records of images that no version of Zephyr can have."""
    for (version, board, options), reason in ABSENT.items():
        for back_end in ("c", "llvm"):
            write_record(record_of(version, board, options, back_end) | {"skipped": reason})


@configured("version, board, options, back_end", CELLS, cost=1, convention=matrix_project.CONVENTIONS)
def test_cells(
    workspace: Workspace,
    workspaces: Workspaces,
    opwest: Opwest,
    tmp_path: Path,
    version: str,
    board: str,
    options: tuple[str, ...],
    back_end: str,
) -> None:
    record = record_of(version, board, options, back_end)
    try:
        cells = cells_of(workspaces(version), opwest, tmp_path, board, options, back_end)
    except pytest.skip.Exception as skipped:
        write_record({**record, "skipped": str(skipped)})
        raise
    except BaseException as fault:
        write_record({**record, "failed": type(fault).__name__})
        raise
    write_record({**record, "cells": cells})
    assert cells == dict.fromkeys(matrix_project.CONVENTIONS, "ok")


def cells_of(
    zephyr: Workspace, opwest: Opwest, folder: Path, board: str, options: tuple[str, ...], back_end: str
) -> dict[str, str]:
    """Return the verdict of each convention on a board."""
    if is_riscv(board):
        need("riscv64-unknown-elf-gcc", f"qemu-system-{board.removeprefix('qemu_')}")
    elif not board.startswith("native_"):
        need("arm-none-eabi-gcc", "qemu-system-arm")
    if back_end == "llvm":
        need("llvmlite")
    if zephyr.version == MAIN and (board, back_end) in BACK_ENDS:
        return matrix_project.verdicts(output(zephyr, opwest, board, back_end, PROGRAM))
    name = zephyr.board(board)
    app = matrix_project.application(opwest, folder, name, zephyr.base, back_end)
    return matrix_project.verdicts(zephyr.build(app, name, *options).run(matrix_project.END))


def record_of(version: str, board: str, options: tuple[str, ...], back_end: str) -> dict[str, object]:
    """Return the record of an image without its result."""
    return {"version": version, "board": board, "options": " ".join(options), "back_end": back_end}


def write_record(record: dict[str, object]) -> None:
    """Write the record of one image; other images have other files."""
    words = (record["version"], record["board"], record["options"], record["back_end"])
    RECORDS.mkdir(parents=True, exist_ok=True)
    name = "_".join(str(word).replace("/", "_") for word in words)
    (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def test_host_computes_the_same(opwest: Opwest, workspace: Workspace, tmp_path: Path) -> None:
    app = matrix_project.application(opwest, tmp_path, "native_sim/native/64", workspace.base, "c")
    command = [sys.executable, "-m", "opwest", "run", app, "--host"]
    host = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(matrix_project.verdicts(host.stdout).values()) == {"ok"}

# SPDX-License-Identifier: Apache-2.0
"""The matrix of docs/contributing/host-matrix.md: each cell is a model that ran in an image, with the results of numpy.

An image belongs to a version of Zephyr, a board and a back end, and holds a model for each calling convention. Each
model is verified and recorded for itself, in build/matrix/; scripts/host_matrix.py prints the table of these records.

All models compute the same from integers, floats and scalars of both, in two steps. The values are exact in float32, so
that the results do not depend on fused multiplications.
"""

import json
import re
import shutil

import numpy as np
import pytest
from cover import CONVENTIONS, MAIN, configured
from gallery import Program, output
from in_process import succeed
from requirements_support import need
from sequence_support import Subject, main_of
from zephyr_support import BACK_ENDS, ROOT, is_riscv

pytestmark = pytest.mark.zephyr
RECORDS = ROOT / "build" / "matrix"
VERSIONS = ("3.4", "4.1", "4.2")
SOFT, HARD = ("-DCONFIG_FPU=n",), ("-DCONFIG_FPU=y",)
BOARDS = (
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
ABSENT = {("3.4", "mps2/an386", HARD): "Zephyr 3.4 has no such board"}
CELLS = [
    (version, board, options, back_end)
    for version in VERSIONS
    for board, options in BOARDS
    for back_end in ("c", "llvm")
    if (version, board, options) not in ABSENT
]
SOURCES = ROOT / "tests" / "zephyr" / "programs" / "matrix"
CASES = 3
_MANIFEST = """\
version: 1
model: cell_{word}
convention: {name}
objects: [{{files: [{name}.c]}}]
operators:
  mixed:
    symbol: {symbol}
{more}    args:
      - {{name: x, dtype: int32, shape: [2, 3]{inputs}}}
      - {{name: w, dtype: float32, shape: [2, 3]{inputs}}}
      - {{name: by, dtype: int32, scalar: true}}
      - {{name: gain, dtype: float32, scalar: true}}
      - {{name: y, dtype: int32, shape: [2, 3], direction: out{outputs}}}
      - {{name: z, dtype: float32, shape: [2, 3], direction: out{outputs}}}
run:
  inputs: {{x: {{dtype: int32, shape: [2, 3]}}, w: {{dtype: float32, shape: [2, 3]}}}}
  outputs: {{y: {{dtype: int32, shape: [2, 3]}}, z: {{dtype: float32, shape: [2, 3]}}}}
  steps:
    - {{call: mixed, args: [x, w, -3, 0.5, a, b]}}
    - {{call: mixed, args: [a, b, 5, -1.5, y, z]}}
"""
_MORE = {
    "packed": "    workspace: 64\n",
    "ffi": "    workspace: 64\n",
    "halide": "    workspace: 128\n",
    "memref": "    returns: status\n",
}


def word_of(name):
    """Return the name of a convention in C identifiers."""
    return name.replace("-", "_")


def subjects():
    """Return the model of each convention, with the results of numpy."""
    inputs, outputs = [], []
    for which in range(CASES):
        x = which * 1000 - np.arange(6, dtype=np.int32) * 37
        w = (which * 16 - np.arange(6)).astype(np.float32) * np.float32(0.125)
        inputs.append([x, w])
        for by, gain in ((-3, 0.5), (5, -1.5)):
            x, w = x * np.int32(by) + np.int32(7), w * np.float32(gain) + np.float32(0.25)
        outputs.append([x, w])
    return [Subject(f"cell_{word_of(name)}", None, inputs, outputs, align=64) for name in CONVENTIONS]


def write(folder):
    """Write a manifest for each convention, and main(); return the manifests."""
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    for name in CONVENTIONS:
        word = word_of(name)
        symbol = f"_mlir_ciface_{name}_mixed" if name == "memref" else f"{word}_mixed"
        tables = {key: f", table: {key}" if name == "pointer-tables" else "" for key in ("inputs", "outputs")}
        text = _MANIFEST.format(name=name, word=word, symbol=symbol, more=_MORE.get(name, ""), **tables)
        (folder / f"{name}.yaml").write_text(text)
    (folder / "main.c").write_text(main_of(subjects()))
    return [folder / f"{name}.yaml" for name in CONVENTIONS]


PROGRAM = Program("matrix", write, BACK_ENDS)


def application(opwest, folder, board, base, back_end):
    """Generate the application of all models for a board of a Zephyr tree, and its main()."""
    manifests = write(folder / "models")
    for manifest in manifests:
        with manifest.open("a") as file:
            file.write(f"boards: [{board}]\n")
    opwest("generate", *manifests, "-o", folder / "app", "--zephyr-base", base, f"--metadata={back_end}")
    shutil.copy(folder / "models" / "main.c", folder / "app" / "src")
    return folder / "app"


def verdicts(console):
    """Return the verdict of each convention: `ok`, or what differs."""
    found = {}
    for name, one in zip(CONVENTIONS, subjects(), strict=True):
        shown = re.findall(rf"^{one.name} (\d) (\d) ([0-9a-f]+)$", console, re.MULTILINE)
        equal = sum(
            [text for run, _, text in shown if run == str(case)] == [array.tobytes().hex() for array in arrays]
            for case, arrays in enumerate(one.outputs)
        )
        found[name] = "ok" if equal == CASES else f"{equal} of {CASES} cases equal"
    return found


@pytest.fixture(scope="module", autouse=True)
def absent():
    """Write the records of images that no version of Zephyr can have."""
    for (version, board, options), reason in ABSENT.items():
        for back_end in ("c", "llvm"):
            write_record(version, board, options, back_end, skipped=reason)


@configured("version, board, options, back_end", CELLS, cost=1, convention=CONVENTIONS)
def test_cells(workspace, workspaces, opwest, tmp_path, version, board, options, back_end):
    cell = (version, board, options, back_end)
    try:
        cells = cells_of(workspaces(version), opwest, tmp_path, board, options, back_end)
    except pytest.skip.Exception as skipped:
        write_record(*cell, skipped=str(skipped))
        raise
    except BaseException as fault:
        write_record(*cell, failed=type(fault).__name__)
        raise
    write_record(*cell, cells=cells)
    assert cells == dict.fromkeys(CONVENTIONS, "ok")


def cells_of(zephyr, opwest, folder, board, options, back_end):
    """Return the verdict of each convention on a board."""
    if is_riscv(board):
        need("riscv64-unknown-elf-gcc", f"qemu-system-{board.removeprefix('qemu_')}")
    elif not board.startswith("native_"):
        need("arm-none-eabi-gcc", "qemu-system-arm")
    if back_end == "llvm":
        need("llvmlite")
    if zephyr.version == MAIN and (board, back_end) in BACK_ENDS:
        return verdicts(output(zephyr, opwest, board, back_end, PROGRAM))
    name = zephyr.board(board)
    app = application(opwest, folder, name, zephyr.base, back_end)
    return verdicts(zephyr.build(app, name, *options).run("^finished: "))


def write_record(version, board, options, back_end, **result):
    """Write the record of one image; other images have other files."""
    words = {"version": version, "board": board, "options": " ".join(options), "back_end": back_end}
    RECORDS.mkdir(parents=True, exist_ok=True)
    name = "_".join(word.replace("/", "_") for word in words.values())
    (RECORDS / f"{name}.json").write_text(json.dumps(words | result, indent=1) + "\n")


def test_host_computes_the_same(opwest, workspace, tmp_path):
    app = application(opwest, tmp_path, "native_sim/native/64", workspace.base, "c")
    assert set(verdicts(succeed("run", app, "--host").stdout).values()) == {"ok"}

# SPDX-License-Identifier: Apache-2.0
"""From a model file to a running image, for examples/keyword_spotting and examples/anomaly_detection."""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from demo_steps import ROOT, build_and_run, find_workspace, last_match, step

VERDICT = re.compile(r"^cases: (\d+) of (\d+) agree with the reference$", re.MULTILINE)
CASES = 8
_C_TYPES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "float32": "float"}


@dataclass(frozen=True)
class Demonstration:
    """An example: its name, and the sizes of its model's input and output."""

    name: str
    """Name of the directory in examples/, of the directory in build/ and of the model."""
    about: str
    inputs: int
    """Number of elements of the input."""
    outputs: int
    arm_options: Sequence[str]
    """Options of builds for Arm boards."""
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    change: Callable[[argparse.Namespace, Path], None] = lambda *_: None
    """Changes the imported model, a directory; its vectors become the cases of the application."""


def main(example: Demonstration) -> int:
    """Run the example; the last line is the verdict."""
    given = _arguments(example)
    work = Path("build", example.name)
    model, application = work / "model", work / "app"
    opwest = [sys.executable, "-m", "opwest"]
    for folder in (model, application):
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    words = ["import", "tflite", str(given.model.resolve()), "-o", str(model), "--model", example.name]
    step("importing the model", [*opwest, *words, "--vectors", str(CASES)], show=True)
    _check(ROOT / model, example)
    example.change(given, ROOT / model)
    cases = add_application(ROOT / model, ROOT / "examples" / example.name / "application")
    step("generating the application", [*opwest, "generate", str(model / "manifest.yaml"), "-o", str(application)])
    console = step("running it on this machine", [*opwest, "run", str(application), "--host"], show=True)
    verdicts = [last_match(VERDICT, console, "verdict")]
    workspace = find_workspace()
    for board in given.board or ([workspace.simulator] if workspace else []):
        if workspace is None:
            raise SystemExit(f"error: {board} requires a Zephyr workspace")
        options = () if board.startswith("native_") else example.arm_options
        folder = work / re.sub(r"\W", "_", board)
        console = build_and_run(workspace, board, application, folder, VERDICT, options)
        verdicts.append(last_match(VERDICT, console, "verdict"))
        print(f"   {verdicts[-1]}")
    print(verdicts[-1])
    return int(any(verdict != f"cases: {cases} of {cases} agree with the reference" for verdict in verdicts))


def _arguments(example: Demonstration) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=example.about)
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file, .tflite")
    parser.add_argument(
        "--board",
        action="append",
        default=[],
        help="build and run for this board too, repeatable: native_sim/native/64 (default with Zephyr), mps2/an385",
    )
    example.add_options(parser)
    given = parser.parse_args()
    if not given.model.is_file():
        parser.error(f"'{given.model}' not found; see README.md for its origin")
    return given


def _check(model: Path, example: Demonstration) -> None:
    """Raise SystemExit for a model with other inputs and outputs."""
    run = yaml.safe_load((model / "manifest.yaml").read_text(encoding="utf-8"))["run"]
    for role in ("inputs", "outputs"):
        if len(run[role]) != 1:
            raise SystemExit(f"error: the model has {len(run[role])} {role}, {example.name} has one")
    sizes = tuple(math.prod(_only(run[role])[1]["shape"]) for role in ("inputs", "outputs"))
    if sizes != (example.inputs, example.outputs):
        raise SystemExit(
            f"error: the model has {sizes[0]} input and {sizes[1]} output values, "
            f"expected {example.inputs} and {example.outputs}: this is another model"
        )


def add_application(model: Path, application: Path) -> int:
    """Write the cases as a header, and set the application's main.c in the manifest. Return the number of cases."""
    path = model / "manifest.yaml"
    run = yaml.safe_load(path.read_text(encoding="utf-8"))["run"]
    ports = [_only(run[role]) for role in ("inputs", "outputs")]
    with np.load(model / "vectors.npz") as vectors:
        arrays = [vectors[name].reshape(len(vectors[name]), -1) for name, _ in ports]
    cases = len(arrays[0])
    (model / "cases.h").write_text(_header(ports, arrays), encoding="utf-8")
    shutil.copy(application / "main.c", model / "main.c")
    text = f'\napplication:\n  sources: [main.c, cases.h]\n  console: ["cases: {cases} of {cases} agree"]\n'
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
    return cases


def _only(ports: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return next(iter(ports.items()))


def _header(ports: Sequence[tuple[str, dict[str, Any]]], arrays: Sequence[Any]) -> str:
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Inputs, and the outputs of the reference for them. */",
    ]
    lines += ["#include <stdint.h>", "", f"enum {{\n\tCASES = {len(arrays[0])}\n}};"]
    for role, (_, port), array in zip(("input", "output"), ports, arrays, strict=True):
        quantization = port.get("quantization", {"scale": 1.0, "zero_point": 0})
        upper = role.upper()
        lines += [
            "",
            f"typedef {_C_TYPES[port['dtype']]} {role}_t;",
            f"#define {upper}_ELEMENTS   {array.shape[1]}",
            f"#define {upper}_SCALE      {float(quantization['scale'])!r}f",
            f"#define {upper}_ZERO_POINT ({quantization['zero_point']})",
            "/* clang-format off */",
            f"static const {role}_t case_{role}[CASES][{upper}_ELEMENTS] = {{",
            *(_row(row) for row in array),
            "};",
            "/* clang-format on */",
        ]
    return "".join(f"{line}\n" for line in lines)


def _row(values: Any) -> str:
    """Return the initialiser of a case, in lines of at most 100 columns."""
    lines = textwrap.wrap(", ".join(map(_literal, values)), 80, break_on_hyphens=False)
    return "\n".join(["\t{", *(f"\t\t{line}" for line in lines), "\t},"])


def _literal(value: Any) -> str:
    return f"{float(value).hex()}f" if isinstance(value, np.floating) else str(int(value))

# SPDX-License-Identifier: Apache-2.0
"""Generate an MLPerf Tiny device under test: python examples/mlperf_tiny/run.py kws kws_int8.tflite [--board BOARD]."""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "scripts")]
from demo_steps import ROOT, find_workspace, step  # noqa: E402


@dataclass(frozen=True)
class Task:
    """A task of the benchmark: the name of its model, its sizes, and the format of the runner's input bytes."""

    model: str
    inputs: int
    outputs: int
    flip: int
    """The bits to invert in each input byte: 128 for uint8, 0 for int8."""
    floats: bool = False
    """The runner sends float32, and the result is the mean of the squared differences of output and input."""


TASKS = {
    "kws": Task("kws01", 490, 12, 0),
    "ic": Task("ic01", 32 * 32 * 3, 10, 128),
    "vww": Task("vww01", 96 * 96 * 3, 2, 128),
    "ad": Task("ad01", 640, 640, 0, floats=True),
}


def main() -> int:
    """Import the model, generate the application, build it for the boards."""
    parser = argparse.ArgumentParser(description="MLPerf Tiny: a device under test with the runner's protocol.")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file, .tflite")
    parser.add_argument("--board", action="append", default=[], help="build for this board, repeatable")
    given = parser.parse_args()
    if not given.model.is_file():
        parser.error(f"'{given.model}' not found; see README.md for its origin")
    work = Path("build", "mlperf_tiny", given.task)
    model, application = work / "model", work / "app"
    for folder in (model, application):
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    opwest = [sys.executable, "-m", "opwest"]
    words = ["import", "tflite", str(given.model.resolve()), "-o", str(model), "--model", "mlperf_tiny"]
    step("importing the model", [*opwest, *words])
    add_application(ROOT / model, TASKS[given.task])
    step("generating the application", [*opwest, "generate", str(model / "manifest.yaml"), "-o", str(application)])
    workspace = find_workspace() if given.board else None
    if given.board and workspace is None:
        raise SystemExit("error: --board requires a Zephyr workspace")
    for board in given.board if workspace else []:
        folder = work / re.sub(r"\W", "_", board)
        west = [workspace.west, "build", "-p", "auto", "-b", board, "-d", str(folder), str(application)]
        if not board.startswith("native_"):
            west += ["--", "-DCONFIG_MINIMAL_LIBC=y"]  # no mathematics is needed
        step(f"building for {board}", west, show=True, env=workspace.environment(board))
    return 0


def add_application(model: Path, task: Task) -> None:
    """Write benchmark.h, and add the application to the manifest. Raise SystemExit for another model."""
    path = model / "manifest.yaml"
    run = yaml.safe_load(path.read_text(encoding="utf-8"))["run"]
    ports = [next(iter(run[role].values())) for role in ("inputs", "outputs")]
    sizes = tuple(math.prod(port["shape"]) for port in ports)
    if sizes != (task.inputs, task.outputs) or any(port["dtype"] != "int8" for port in ports):
        raise SystemExit(
            f"error: the model has {sizes[0]} input and {sizes[1]} output values, "
            f"expected {task.inputs} and {task.outputs} of int8: this is another model"
        )
    (model / "benchmark.h").write_text(_header(task, *ports), encoding="utf-8")
    names = sorted(file.name for file in (HERE / "application").iterdir())
    for name in names:
        shutil.copy(HERE / "application" / name, model / name)
    application = {
        "sources": [*names, "benchmark.h"],
        "kconfig": {"CONFIG_BOOT_BANNER": "n", "CONFIG_SERIAL": "y"},
        "console": ["m-ready"],
    }
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + yaml.safe_dump({"application": application}, sort_keys=False))


def _header(task: Task, source: dict[str, Any], result: dict[str, Any]) -> str:
    numbers = {
        "BENCHMARK_MODEL": f'"{task.model}"',
        "INPUT_ELEMENTS": task.inputs,
        "INPUT_BYTES": task.inputs * (4 if task.floats else 1),
        "INPUT_IS_FLOAT": int(task.floats),
        "INPUT_FLIP": task.flip,
        "OUTPUT_ELEMENTS": task.outputs,
    }
    for role, port in (("INPUT", source), ("OUTPUT", result)):
        numbers[f"{role}_SCALE"] = f"{float(port['quantization']['scale'])!r}f"
        numbers[f"{role}_ZERO_POINT"] = f"({port['quantization']['zero_point']})"
    width = max(map(len, numbers))
    lines = [f"#define {name:{width}} {value}\n" for name, value in numbers.items()]
    return "".join(["/* SPDX-License-Identifier: Apache-2.0 */\n", *lines])


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""One application with operators of all tools of docs/compilers: its sources, commands and manifests.

Each page, or a section of it, is a tool. Its commands are run where the tool is installed, its manifests are joined,
and its outputs have the tool's own answers, or those of numpy, for CASES inputs. A page without a manifest has a draft
without marks. generated_code.zip has the files that the commands of some pages write, for hosts without their tools:

    python tests/foreign_project.py     store the files of the tools that are here
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from opwest.base.diagnostics import Diagnostics
from opwest.drafting.draft import draft_manifest
from requirements_support import is_present, program
from session_support import made_once

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "docs"))

from pages import Block, blocks  # noqa: E402

PAGES = ROOT / "docs" / "compilers"
STORED = Path(__file__).with_name("generated_code.zip")
CASES = 150
"""The flowers of the data set iris."""
Arrays = dict[str, np.ndarray]
_X = np.random.default_rng(2).integers(-128, 128, (CASES, 8)).astype(np.int8)
_IMAGE = np.random.default_rng(1).integers(-1000, 1000, (CASES, 4, 5)).astype(np.int16)  # as Halide's on the page
_SIGNAL = np.random.default_rng(3).integers(-32768, 32768, (CASES, 16)).astype(np.int16)
_TAPS = np.random.default_rng(4).integers(-32768, 32768, (CASES, 3)).astype(np.int16)
_MATRIX = np.random.default_rng(5).standard_normal((CASES, 3, 3)).astype(np.float32)


@dataclass(frozen=True)
class Tool:
    needs: tuple[str, ...]
    outputs: dict[str, Callable[[Arrays], np.ndarray] | None]
    """The answer by output; None if a file that the page's commands write contains it."""
    inputs: dict[str, np.ndarray]
    """Inputs that no such file contains."""
    made: tuple[str, ...] = ()
    """The files in the archive, which the page's commands write."""
    maker: str = ""
    """The Python package or program of these commands."""


def _clip(values: np.ndarray, bits: int) -> np.ndarray:
    return np.clip(values, -(1 << bits - 1), (1 << bits - 1) - 1)


def _convolved(arrays: Arrays) -> np.ndarray:
    pairs = zip(arrays["signal"].astype(np.int64), arrays["taps"].astype(np.int64), strict=True)
    return _clip(np.stack([np.convolve(signal, taps) for signal, taps in pairs]) >> 15, 16).astype(np.int16)


def _half(arrays: Arrays) -> np.ndarray:
    return (arrays["image"] - np.int16(7)).transpose(0, 2, 1)


def _scale(by: float) -> Callable[[Arrays], np.ndarray]:
    return lambda arrays: np.trunc(_clip(arrays["x"] * np.float32(by), 8)).astype(np.int8)


def _wide(arrays: Arrays) -> np.ndarray:
    return arrays["x"].astype(np.int16) * np.int16(3)


def _flip(mask: int) -> Callable[[Arrays], np.ndarray]:
    return lambda arrays: arrays["x"] ^ np.int8(mask)


def _pendulum(arrays: Arrays) -> Arrays:
    (x, y), u = arrays["state"].T, arrays["control"][:, 0]
    jacobian = [-2 * u * x * y - 1, np.ones(CASES), u * (1 - x * x)]
    return {"rate": np.stack([y, u * (1 - x * x) * y - x], 1), "jacobian": np.stack(jacobian, 1)}


def _echo(arrays: Arrays) -> np.ndarray:
    """Return the output of one stream: the state lasts from case to case."""
    echo, last = np.empty(CASES * 16), 0.0
    for at, value in enumerate(arrays["sound"].ravel()):
        echo[at] = last = 0.5 * float(value) + 0.25 * last
    return echo.reshape(CASES, 16)


def _layer(arrays: Arrays) -> np.ndarray:
    product = arrays["data1_32"].reshape(CASES, 4, 8) @ arrays["data2_24"].reshape(CASES, 8, 3)
    return np.maximum(product, 0)


def _normal(seed: int, *shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((CASES, *shape)).astype(dtype)


_C = ("gcc", "arm-none-eabi-gcc", "clang-19")
_ARM = ("gcc", "g++", "arm-none-eabi-gcc", "arm-none-eabi-g++", "riscv64-unknown-elf-gcc")
_SKLEARN = ("sklearn", "cc")
_BYTES = {"x": _X}
TOOLS = {
    "c": Tool(_C, {"magnitudes": lambda arrays: np.abs(arrays["x"].astype(np.int16)).astype(np.uint8)}, _BYTES),
    "emlearn": Tool((*_SKLEARN, "emlearn"), {"trees_class": None, "mlp_class": None}, {}),
    "m2cgen": Tool((*_SKLEARN, "m2cgen"), {"scores": None}, {}),
    "zig": Tool(("ziglang",), {"zig_result": _scale(3)}, _BYTES),
    "rust": Tool(("rustc",), {"rust_result": _scale(1.5), "rust_half_result": _scale(0.5)}, _BYTES),
    "halide": Tool(("halide",), {"blurred": None}, {}),
    "mlir": Tool(("mlir-opt", "mlir-translate"), {"halved": _half}, {"image": _IMAGE}),
    "llvm-ir": Tool(("clang-14", "clang-19"), {"old_result": _flip(14), "new_result": _flip(19)}, _BYTES),
    "eigen": Tool(
        (*_ARM, "eigen", "arm-none-eabi libstdc++"),
        {"projected": lambda a: a["rotation"] @ np.float32([1, 2, 3])},
        {"rotation": _MATRIX},
    ),
    "casadi": Tool(
        ("cc",),
        {name: lambda a, name=name: _pendulum(a)[name] for name in ("rate", "jacobian")},
        {"state": _normal(6, 2, dtype="float64"), "control": _normal(7, 1, dtype="float64")},
        ("oscillator.c",),
        "casadi",
    ),
    "faust": Tool(("cc",), {"echo": _echo}, {"sound": _normal(8, 16)}, ("echo.c", "echo.bin"), "faust"),
    "exo": Tool(
        ("cc",),
        {"product": lambda a: (a["matrix"] @ a["vector"][..., None])[..., 0]},
        {"matrix": _normal(9, 4, 8), "vector": _normal(10, 8)},
        ("gemv.c", "gemv.h"),
        "exo",
    ),
    "tinygrad": Tool(
        ("cc",),
        {"data0_12": _layer},
        {"data1_32": _normal(11, 32), "data2_24": _normal(12, 24)},
        ("layer.c",),
        "tinygrad",
    ),
    "tl2cgen": Tool(("cc",), {"forest_y": None}, {}, ("forest/main.c", "forest/header.h", "tl2cgen.npz"), "tl2cgen"),
    "cmsis-dsp": Tool(_ARM, {"filtered": _convolved}, {"signal": _SIGNAL, "taps": _TAPS}),
    "d": Tool(("ldc2",), {"d_result": _scale(1.5)}, _BYTES),
    "nim": Tool((*_C, "nim"), {"nim_result": _scale(3)}, _BYTES),
    "emitc": Tool(("mlir-translate",), {"emitc_result": lambda a: a["image"] * np.int16(3)}, {"image": _IMAGE}),
    "numba": Tool((), {"numba_result": _scale(3)}, _BYTES, ("numba_scale.ll",), "numba"),
}
HOST_TOOLS = {
    "fortran": Tool(("gfortran",), {"fortran_result": _scale(1.5)}, _BYTES),
    "ada": Tool(("gnatmake",), {"ada_result": _scale(3)}, _BYTES),
    "tcc": Tool(("tcc",), {"tcc_result": _wide}, _BYTES),
}
"""Those of which no package compiles for Cortex-M."""
SECTIONS = {
    "c": ("c", "Objects for several processors"),
    "cmsis-dsp": ("c", "CMSIS-DSP"),
    "eigen": ("c", "C++ with Eigen"),
    "emlearn": ("scikit-learn", "emlearn"),
    "m2cgen": ("scikit-learn", "m2cgen"),
    "rust": ("rust-and-zig", "Rust"),
    "zig": ("rust-and-zig", "Zig"),
    "llvm-ir": ("llvm", "LLVM IR of any front end"),
    "halide": ("llvm", "Halide"),
    "mlir": ("llvm", "MLIR"),
}
"""Pages with several tools, and their sections; other tools have a page each."""
TOLERANCE = {"scores": 1e-12, "projected": 1e-5, "rate": 1e-12, "jacobian": 1e-12, "echo": 1e-6, "product": 1e-5}
TOLERANCE |= {"data0_12": 1e-5, "forest_y": 1e-12}
"""Of outputs in floating point; others are equal."""


@dataclass(frozen=True)
class Project:
    """A directory with the files of a manifest, and the inputs and answers of its cases."""

    folder: Path
    manifest: dict[str, Any]
    arrays: Arrays

    @property
    def outputs(self) -> dict[str, Any]:
        return self.manifest["run"]["outputs"]

    def write(self, name: str) -> Path:
        """Write the manifest into the directory."""
        path = self.folder / name
        path.write_text(yaml.safe_dump(self.manifest, sort_keys=False), encoding="utf-8")
        return path

    def write_vectors(self, name: str, cases: int) -> dict[str, Any]:
        run = self.manifest["run"]
        described = run["inputs"] | run["outputs"]
        np.savez(
            self.folder / name,
            **{
                one: self.arrays[one][:cases].reshape(cases, *entry["shape"]).astype(entry["dtype"])
                for one, entry in described.items()
            },
        )
        tolerance = {one: {"absolute": most} for one, most in TOLERANCE.items() if one in run["outputs"]}
        return {"vectors": name, "tolerance": tolerance}


def drafts(block: Block) -> bool:
    """Return whether a block has the commands that draft manifests, which need the files of the others."""
    return block.text.startswith("opwest init ")


def blocks_of(tool: str) -> list[Block]:
    """Return the blocks of the page or section of a tool."""
    page, section = SECTIONS.get(tool, (tool, None))
    return [block for block in blocks(PAGES / f"{page}.md") if section in (None, block.section)]


def link_to(tool: str) -> str:
    """Return the link to the page or section of a tool."""
    page, section = SECTIONS.get(tool, (tool, None))
    return f"{page}.md" if section is None else f"{page}.md#{section.lower().replace('+', '').replace(' ', '-')}"


def modules() -> Path:
    return Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr").parent / "modules"


def is_usable(name: str) -> bool:
    """Return whether what a page needs is here."""
    here = all(map(is_present, (TOOLS | HOST_TOOLS)[name].needs))
    return here and (name != "cmsis-dsp" or (modules() / "lib" / "cmsis-dsp" / "Source").is_dir())


def foreign_project(tools: dict[str, Tool] = TOOLS, key: str = "foreign_project") -> Project:
    """Return the project of all tools that are usable; its directory is shared by the processes of the session."""
    used = {name: tool for name, tool in tools.items() if is_usable(name)}
    folder = made_once(key, lambda path: _make(path, used))
    manifest = yaml.safe_load((folder / "joined.yaml").read_text(encoding="utf-8"))
    return Project(folder, manifest, _loaded(folder / "answers.npz"))


def rows_of_drafts(tools: dict[str, Tool], draft: Callable[..., Any]) -> list[tuple[str, str, str]]:
    """Return the pages with the marks of each draft and the lines of each manifest."""
    found = []
    for tool in filter(is_usable, tools):
        page = blocks_of(tool)
        commands = [line for block in page if drafts(block) for line in block.text.splitlines()]
        lines = [str(block.text.count("\n")) for block in page if block.language == "yaml"] or ["0"] * len(commands)
        assert len(commands) == len(lines) > 0, tool
        for command, count in zip(commands, lines, strict=True):
            done = draft(*command.split()[1:])
            marks = re.search(r"1 operator, (\d+) marks?", done.out + done.err)
            found.append((link_to(tool), marks[1] if marks else done.err, count))
    return found


def rows_of_pages(tools: dict[str, Tool]) -> list[tuple[str, ...]]:
    """Return the rows of the table of drafts for the tools that are usable: page, marks, lines."""
    text = (PAGES.parent / "contributing" / "drafts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*\(../compilers/(.*)\).* \| (\d+) \| (\d+) \| [\d-]+ \|$", text, re.MULTILINE)
    links = {link_to(tool) for tool in tools if is_usable(tool)}
    return [row for row in rows if row[0] in links]


def _make(folder: Path, used: dict[str, Tool]) -> None:
    tools = _programs(folder / "bin")
    manifest: dict[str, Any] = {"version": 1, "model": "foreign", "objects": [], "operators": {}}
    manifest["run"] = {"inputs": {}, "outputs": {}, "steps": []}
    for name in used:
        page = blocks_of(name)
        stored = used[name].made and not _has(used[name].maker)
        for block in page:
            if path := block.marked("file"):
                (folder / path).write_text(block.text, encoding="utf-8")
        for block in page:
            if block.language != "sh" or block.marked("run by") is None or drafts(block):
                continue
            if stored:
                with zipfile.ZipFile(STORED) as archive:
                    archive.extractall(folder, used[name].made)
            else:
                _run(block.text, folder, tools)
        parts = [yaml.safe_load(block.text) for block in page if block.language == "yaml"]
        for part in parts or [_draft(block.text, folder) for block in page if drafts(block)]:
            _join(manifest, part)
    arrays: Arrays = {}
    for name in used:
        arrays |= used[name].inputs
    for path in folder.glob("*.npz"):
        arrays |= _loaded(path)
    for name in used:
        arrays |= {one: answer(arrays) for one, answer in used[name].outputs.items() if answer is not None}
    np.savez(folder / "answers.npz", **arrays)
    (folder / "joined.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")


def _has(maker: str) -> bool:
    """Return whether a Python package or a program is here."""
    return importlib.util.find_spec(maker) is not None or shutil.which(maker) is not None


def _draft(command: str, folder: Path) -> dict[str, Any]:
    """Return the draft of `opwest init FILE -o NAME`, which has no marks."""
    _, _, file, _, name = command.split()
    draft = draft_manifest([folder / file], folder / name, None, [], Diagnostics())
    assert draft.marks == 0, draft.text
    return dict(yaml.safe_load(draft.text))


def store() -> None:
    """Write the files of the tools that are here into the archive; keep those of the others."""
    with zipfile.ZipFile(STORED) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with tempfile.TemporaryDirectory() as work:
        used = {name: tool for name, tool in TOOLS.items() if tool.made and _has(tool.maker)}
        _make(Path(work), used)
        files |= {file: (Path(work) / file).read_bytes() for tool in used.values() for file in tool.made}
    with zipfile.ZipFile(STORED, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            archive.writestr(zipfile.ZipInfo(file), files[file], zipfile.ZIP_DEFLATED)


def _loaded(path: Path) -> Arrays:
    with np.load(path) as file:
        return dict(file)


def _join(manifest: dict[str, Any], part: dict[str, Any]) -> None:
    """Add the keys of a page; equal inputs are one input."""
    run = part["run"]
    assert not manifest["operators"].keys() & part["operators"].keys()
    assert all(manifest["run"]["inputs"].get(name, one) == one for name, one in run["inputs"].items())
    manifest["objects"] += part["objects"]
    manifest["operators"] |= part["operators"]
    for key in ("inputs", "outputs", "state"):
        manifest["run"].setdefault(key, {}).update(run.get(key, {}))
    manifest["run"]["steps"] += run["steps"]


def _programs(folder: Path) -> dict[str, str]:
    """Return the variables of the commands, with the tools that are Python packages or outside the path."""
    folder.mkdir()
    for name, text in (("python3", '"$@"'), ("zig", '-m ziglang "$@"')):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {text}\n')
        (folder / name).chmod(0o755)
    for name in ("mlir-opt", "mlir-translate"):
        if path := program(name):
            (folder / name).symlink_to(path)
    env = {name: value for name, value in os.environ.items() if not name.startswith("HL_")}
    cache = str(folder.parent / "zig-cache")
    env |= {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache, "MODULES": str(modules())}
    return env | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def _run(text: str, folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


if __name__ == "__main__":
    store()

# SPDX-License-Identifier: Apache-2.0
"""Models with the operators of programs/adders.c on emulated devices."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelerators_support import PROGRAMS
from c_support import RUNTIME
from opwest.runs.compile import EMULATION_SOURCES

CONTEXT = [RUNTIME / "src" / name for name in ("accelerator_context.c", "port_sync_host.c")]
EMULATION = [RUNTIME / "src" / name for name in EMULATION_SOURCES]
TENSOR: dict[str, Any] = {"dtype": "int8", "shape": [16]}
ARGS = [{"name": "a", **TENSOR}, {"name": "b", **TENSOR}, {"name": "y", **TENSOR, "direction": "out"}]
OPERATORS = {"launch": {"args": ARGS, "device": {}, "async": True}, "difference": {"args": ARGS}}


def launch(device: str, *args: str | int) -> dict[str, Any]:
    return {"call": "launch", "device": device, "args": args}


def difference(*args: str | int) -> dict[str, Any]:
    return {"call": "difference", "args": args}


def write_model(folder: Path, devices, run, *, entry="files: [adders.c]", source=None, **keys) -> Path:
    """Write a model with the name of its directory; return its manifest. The programs are one.onpu and two.onpu."""
    folder.mkdir(parents=True)
    (folder / "adders.c").write_text(source or (PROGRAMS / "adders.c").read_text())
    for number, name in enumerate(("one", "two")):
        (folder / f"{name}.onpu").write_bytes(_program(number + 2))
    manifest = {
        "version": 1,
        "model": folder.name,
        "devices": {name: {"devicetree": {"nodelabel": name}, **device} for name, device in devices.items()},
        "operators": OPERATORS,
        **keys,
        "run": {"inputs": {"x": TENSOR}, "outputs": {"y": TENSOR}, **run},
    }
    return write_manifest(folder, manifest, entry)


def write_manifest(folder: Path, manifest: Mapping[str, Any], entry: str) -> Path:
    """Write a manifest with one entry of `objects`; the helper for LLVM searches for its line."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in manifest.items())
    (folder / "manifest.yaml").write_text(f"{text}\nobjects:\n  - {{{entry}}}\n")
    return folder / "manifest.yaml"


def _program(number: int) -> bytes:
    """Return a program for emulated devices: kernel 1 adds; another kernel distinguishes the two programs."""
    spec = importlib.util.spec_from_file_location("make_program", RUNTIME / "drivers" / "npu_emul" / "make_program.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_program([("add", {"id": 1}), ("relu", {"id": number})])

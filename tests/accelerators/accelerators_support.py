# SPDX-License-Identifier: Apache-2.0
"""Building models with test doubles for the driver and the port."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from c_support import RUNTIME, SANITIZED, execute, includes, read_record, run
from golden_support import generate_quickly
from opwest.host.compile import RUNTIME_SOURCES, STREAM_SOURCES
from opwest.render.model_files import metadata_object
from requirements_support import need_compiler

PROGRAMS = Path(__file__).parent / "programs"
THREADED = [
    *("-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"),
    *("-D_POSIX_C_SOURCE=200809L", "-pthread"),
]

__all__ = [
    "PROGRAMS",
    "SANITIZED",
    "THREADED",
    "build",
    "execute",
    "generate_quickly",
    "made_once",
    "need_compiler",
    "play",
]


def made_once(request: pytest.FixtureRequest, name: str, make: Callable[[Path], object]) -> Path:
    """Return a directory of the session, filled once by `make`, for all workers of pytest-xdist."""
    base = request.getfixturevalue("tmp_path_factory").getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / f"accelerators_{name}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            make(folder)
            (folder / "done").touch()
    return folder


def build(
    app: Path,
    work: Path,
    sources: Sequence[Path],
    flags: Sequence[str] = SANITIZED,
    *,
    without: Sequence[str] = (),
    extra: Sequence[Path] = (),
) -> Path:
    """Build `sources` with all models of an application and the runtime, except the parts in `without`."""
    need_compiler("gcc", flags, link=True)
    work.mkdir(parents=True, exist_ok=True)
    record = read_record(app)
    options = [*flags, *includes(app), f"-I{PROGRAMS}"]
    plain = [*sources, *(RUNTIME / "src" / name for name in RUNTIME_SOURCES if name not in without), *extra]
    if any(model.get("stream") for model in record["models"]):
        plain += [RUNTIME / "src" / name for name in STREAM_SOURCES]
    objects: list[Path] = []
    for model in record["models"]:
        folder = app / "models" / model["name"]
        if model.get("stream"):
            plain.append(folder / "src" / f"{model['name']}_stream.c")
        chosen = next(b for b in model["builds"] if b["target"] is None or ("x86_64" in b["host"] and b["bits"] == 64))
        if record["metadata"] == "llvm":
            objects.append(folder / metadata_object(model["name"], chosen["target"]))
        else:
            plain += [folder / "src" / f"{model['name']}_{part}.c" for part in ("metadata", "registry", "run")]
            if model["constants"]:
                into = work / f"{model['name']}_constants.o"
                run(["gcc", *options, f"-Wa,-I{folder / 'constants'}", "-c", folder / "constants.S", "-o", into], work)
                objects.append(into)
        if any(tensor["reached"] for tensor in model["tensors"]):
            plain.append(folder / "src" / f"{model['name']}_devices.c")
        for source in chosen["sources"]:
            into = work / f"{model['name']}_{Path(source).stem}.o"
            rename = ["-include", folder / chosen["rename"]]
            run(["gcc", *options, *rename, "-c", folder / source, "-o", into], work)
            objects.append(into)
        objects += [folder / item for item in chosen["objects"]]
    into = work / "program"
    run(["gcc", *options, *plain, *objects, "-o", into, "-pthread"], work)
    return into


def play(program: Path, text: str = "", *arguments: str, timeout: int = 120) -> str:
    """Run a program that reads a script; return its output. The program must succeed."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run(
        [str(program), *arguments], input=text, env=environment, capture_output=True, text=True, check=False,
        timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout

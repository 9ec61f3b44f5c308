# SPDX-License-Identifier: Apache-2.0
"""Building models with test doubles for the driver and the port."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import c_support
import golden_support
from c_support import RUNTIME, compile_all, includes, portable_sources, read_record, run, runtime_objects
from campaign import SANITIZED_LEVEL
from golden_support import Metadata
from opwest.render.model_files import metadata_object
from opwest.runs.compile import RUNTIME_SOURCES, STREAM_SOURCES
from requirements_support import need_compiler

PROGRAMS = Path(__file__).parent / "programs"
POSIX = ("-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE", "-pthread")
SANITIZED = [*c_support.SANITIZED, *POSIX]
THREADED = ["-std=c11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread", *POSIX]

__all__ = ["PROGRAMS", "SANITIZED", "THREADED", "build", "function", "generate_quickly", "need_compiler", "play"]


def generate_quickly(manifests: Sequence[Path], app: Path, *, metadata: Metadata = "c") -> Path:
    """Write an application; LLVM compiles for x86-64 alone, which these tests run."""
    with mock.patch.object(golden_support, "HOST_TARGETS", ("x86-64",)):
        return golden_support.generate_quickly(manifests, app, metadata=metadata)


def function(head: str, *body: str) -> list[str]:
    """Return the lines of a C function."""
    return [head, "{", *(f"\t{line}" for line in body), "}"]


def build(app: Path, work: Path, sources, flags=SANITIZED, *, without=(), extra=()) -> Path:
    """Build `sources` with all models of an application and the runtime, except the parts in `without`."""
    need_compiler("gcc", flags, link=True)
    record = read_record(app)
    options = [*includes(app), f"-I{PROGRAMS}"]
    own = [*sources, *(source for source in portable_sources(app) if source.is_relative_to(app))]
    runtime = [RUNTIME / "src" / name for name in RUNTIME_SOURCES if name not in without]
    if any(model.get("stream") for model in record["models"]):
        runtime += [RUNTIME / "src" / name for name in STREAM_SOURCES]
    objects = runtime_objects([*runtime, *extra], "gcc", flags)
    for model in record["models"]:
        name = model["name"]
        folder = app / "models" / name
        if model.get("stream"):
            own.append(folder / "src" / f"{name}_stream.c")
        chosen = next(b for b in model["builds"] if b["target"] is None or ("x86_64" in b["host"] and b["bits"] == 64))
        if record["metadata"] == "llvm":
            objects.append(folder / metadata_object(name, chosen["target"]))
        elif model["constants"]:
            assembly = [*options, f"-Wa,-I{folder / 'constants'}"]
            objects += compile_all(work / f"{name}_constants", [folder / "constants.S"], "gcc", flags, assembly)
        operators = [folder / source for source in chosen["sources"]]
        rename = [*options, "-include", str(folder / chosen["rename"])]
        objects += compile_all(work / f"{name}_operators", operators, "gcc", flags, rename)
        objects += [folder / item for item in chosen["objects"]]
    objects += compile_all(work / "own", own, "gcc", flags, options)
    run(["gcc", *flags, *objects, "-o", work / "program", "-pthread"], work)
    return work / "program"


def play(program: Path, text: str = "", *arguments: str, timeout: int = 120) -> str:
    """Run a program that reads a script; return its output. The program must succeed."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run(
        [str(program), *arguments], input=text, env=environment, capture_output=True, text=True, check=False,
        timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout

# SPDX-License-Identifier: Apache-2.0
"""Builds of the test programs of the emulated accelerator, with every sanitizer."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

from c_support import RUNTIME, SANITIZED, run
from requirements_support import need_compiler

PROGRAMS = Path(__file__).parent / "programs"
DRIVER = RUNTIME / "drivers" / "npu_emul"
THREAD_SANITIZED = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]
FLAGS = {"address": SANITIZED, "thread": THREAD_SANITIZED}
SHARED = ("accelerator.c", "accelerator_context.c", "port_sync_host.c")
IMAGE = RUNTIME / "bundle" / "image" / "drivers" / "npu_emul.c"
"""The functions in the image of a bundle, which call the driver through the device."""


def driver_sources() -> list[Path]:
    """Return the sources of a host program."""
    driver = [path for path in sorted(DRIVER.glob("*.c")) if path.name != "npu_emul_zephyr.c"]
    return [*(RUNTIME / "src" / name for name in SHARED), *driver]


def make_program() -> dict:
    """Return the definitions of make_program.py, without writing byte code to the runtime's directory."""
    return runpy.run_path(str(DRIVER / "make_program.py"))


def build_npu(work: Path, name: str, sanitizer: str) -> Path:
    """Build one of programs/."""
    flags = FLAGS[sanitizer]
    need_compiler("gcc", flags, link=True)
    work.mkdir(parents=True, exist_ok=True)
    program = work / name
    run(
        [
            "gcc",
            *flags,
            f"-I{RUNTIME / 'include'}",
            PROGRAMS / f"{name}.c",
            *driver_sources(),
            "-pthread",
            "-o",
            program,
        ],
        work,
    )
    return program


def build_image(work: Path, name: str) -> Path:
    """Build one of programs/ with the functions of images between it and the driver."""
    need_compiler("gcc", SANITIZED, link=True)
    functions = ("dense", "conv2d", "add", "relu", "finish")
    renamed = [f"-Dopwest_npu_emul_{one}=image_npu_emul_{one}" for one in functions]
    options = ["-DCONFIG_OPWEST_BUNDLE_DEVICES=1", f"-I{RUNTIME / 'include'}"]
    work.mkdir(parents=True, exist_ok=True)
    run(["gcc", *SANITIZED, *options, *renamed, "-c", PROGRAMS / f"{name}.c", "-o", "program.o"], work)
    run(["gcc", *SANITIZED, *options, *renamed, "-c", IMAGE, "-o", "image.o"], work)
    run(["gcc", *SANITIZED, *options, "program.o", "image.o", *driver_sources(), "-pthread", "-o", name], work)
    return work / name


def finish(program: Path, *arguments: object) -> bytes:
    """Run a test program with leak checks; return its output."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]!r}\n{done.stderr.decode()[-6000:]}"
    return done.stdout

# SPDX-License-Identifier: Apache-2.0
"""Builds of the test programs of the emulated accelerator, with every sanitizer."""

import runpy
import subprocess
from pathlib import Path

from c_support import RUNTIME, SANITIZED, compile_all, run, runtime_objects
from campaign import SANITIZED_LEVEL
from requirements_support import need_compiler

PROGRAMS = Path(__file__).parent / "programs"
DRIVER = RUNTIME / "drivers" / "npu_emul"
THREAD_SANITIZED = ["-std=c11", SANITIZED_LEVEL, "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]
FLAGS = {"address": SANITIZED, "thread": THREAD_SANITIZED}
INCLUDE = [f"-I{RUNTIME / 'include'}"]
SHARED = ("accelerator.c", "accelerator_context.c", "port_sync_host.c")
IMAGE = RUNTIME / "bundle" / "image" / "drivers" / "npu_emul.c"
"""The functions in the image of a bundle, which call the driver through the device."""


def driver_sources() -> list[Path]:
    """Return the sources of a host program."""
    driver = [path for path in sorted(DRIVER.glob("*.c")) if path.name != "npu_emul_zephyr.c"]
    return [*(RUNTIME / "src" / name for name in SHARED), *driver]


def driver_objects(flags: list[str]) -> list[Path]:
    """Return the driver's objects, which all programs with these flags share."""
    return runtime_objects(driver_sources(), "gcc", flags)


def make_program() -> dict:
    """Return the definitions of make_program.py, without writing byte code to the runtime's directory."""
    return runpy.run_path(str(DRIVER / "make_program.py"))


def build_npu(work: Path, name: str, sanitizer: str) -> Path:
    """Build one of programs/."""
    flags = FLAGS[sanitizer]
    need_compiler("gcc", flags, link=True)
    compile_all(work, [PROGRAMS / f"{name}.c"], "gcc", flags, INCLUDE)
    run(["gcc", *flags, f"{name}.o", *driver_objects(flags), "-pthread", "-o", name], work)
    return work / name


def build_image(work: Path, name: str) -> Path:
    """Build one of programs/ with the functions of images between it and the driver."""
    need_compiler("gcc", SANITIZED, link=True)
    functions = ("dense", "conv2d", "add", "relu", "finish")
    renamed = [f"-Dopwest_npu_emul_{one}=image_npu_emul_{one}" for one in functions]
    flags = [*SANITIZED, "-DCONFIG_OPWEST_BUNDLE_DEVICES=1"]
    compile_all(work, [PROGRAMS / f"{name}.c", IMAGE], "gcc", flags, [*renamed, *INCLUDE])
    run(["gcc", *flags, f"{name}.o", "npu_emul.o", *driver_objects(flags), "-pthread", "-o", name], work)
    return work / name


def finish(program: Path, *arguments: object) -> bytes:
    """Run a test program with leak checks; return its output."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]!r}\n{done.stderr.decode()[-6000:]}"
    return done.stdout

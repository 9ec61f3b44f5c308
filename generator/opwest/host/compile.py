# SPDX-License-Identifier: Apache-2.0
"""Compile the portable C of a generated project with the host's compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.host.runtime import installed_runtime
from opwest.render.model_files import metadata_object
from opwest.render.records.details import ANY_TARGET

EMULATION_SOURCES = (
    "accelerator_context.c",
    "port_sync_host.c",
    *(
        f"../drivers/npu_emul/npu_emul{part}.c"
        for part in ("", "_enqueue", "_faults", "_host", "_kernels", "_program", "_queue")
    ),
)
"""Sources that emulate accelerators on the host (`host` of a device), relative to the runtime's src/."""
RUNTIME_SOURCES = (
    "accelerator.c",
    "call.c",
    "device_calls.c",
    "devices.c",
    "metadata.c",
    "port_host.c",
    "port_host_cache.c",
    "port_tvm_host.c",
    "registry.c",
    "status.c",
    "tvm_backend.c",
)
PROFILE_SOURCES = ("port_profile_host.c", "profile.c")
"""Additional sources of CONFIG_OPWEST_PROFILE."""
PROFILE_FLAG = "-DCONFIG_OPWEST_PROFILE=1"
CHECK_STEPS_FLAG = "-DCONFIG_OPWEST_CHECK_STEPS=1"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")


def fail(
    message: str, where: Path | None = None, *, expected: str | None = None, hint: str | None = None
) -> OpwestError:
    """Return an OpwestError with one diagnostic."""
    location = Location(str(where)) if where is not None else None
    return OpwestError([Diagnostic("error", message, location, expected, hint)])


class HostCompiler:
    """The host's C compiler ($CC, default cc); objects go to the directory `work`."""

    def __init__(self, work: Path, bits: int | None, *, profile: bool = False, check_steps: bool = False) -> None:
        try:
            words = shlex.split(os.environ.get("CC", "cc"))
        except ValueError as error:
            raise fail(f"cannot parse $CC: {error}", expected="a compiler with its options, in shell syntax") from error
        if not words or shutil.which(words[0]) is None:
            raise fail(
                f"C compiler '{words[0] if words else '$CC'}' not found",
                hint="install gcc or clang, or set CC",
            )
        self.command = [*words, *([f"-m{bits}"] if bits else [])]
        self.work = work
        self.profile = profile or check_steps
        self.flags = [*([PROFILE_FLAG] if self.profile else []), *([CHECK_STEPS_FLAG] if check_steps else [])]
        self.objects: list[str] = []

    def pointer_bits(self) -> int:
        """Return the pointer size of the compiler's target in bits."""
        probe = self._run([*self.command, "-dM", "-E", "-x", "c", os.devnull])
        return 64 if "__SIZEOF_POINTER__ 8" in probe else 32

    def machine(self) -> str:
        """Return the processor of the compiler's target, the first part of its triple: x86_64, aarch64."""
        return self._run([*self.command, "-dumpmachine"]).strip().split("-", 1)[0]

    def compile(self, source: Path, includes: Iterable[Path], extra: Iterable[str] = ()) -> None:
        """Compile one source and add its object to the link."""
        target = self.work / f"{len(self.objects)}_{source.stem[:60]}.o"
        options = [*self.flags, *(f"-I{path}" for path in includes)]
        self._run([*self.command, *FLAGS, *options, *extra, "-c", str(source), "-o", str(target)])
        self.objects.append(str(target))

    def link(self, program: Path, extra: Iterable[str] = ()) -> None:
        """Link all compiled and added objects."""
        self._run([*self.command, "-o", str(program), *self.objects, *extra])

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise fail(
                f"the compiler failed: {shlex.join(command)}\n{_first_lines(done.stderr)}",
                hint="-m32 requires the 32-bit C library (Debian: gcc-multilib)" if "-m32" in command else None,
            )
        return done.stdout


def _first_lines(text: str, count: int = 20) -> str:
    lines = text.strip().splitlines()
    return "\n".join(lines[:count] + (["..."] if len(lines) > count else []))


def build_program(
    project: Path, record: dict[str, Any], compiler: HostCompiler, sources: list[Path], program: Path
) -> None:
    """Build `sources` with every model of `record` and the runtime into `program`."""
    runtime = installed_runtime(project)
    includes = [runtime / "include", *(project / "models" / m["name"] / "include" for m in record["models"])]
    machine, bits = compiler.machine(), compiler.pointer_bits()
    # Before the first compilation, because a missing target is the most frequent fault.
    builds = [host_build(project, model, machine, bits) for model in record["models"]]
    emulated = EMULATION_SOURCES if any(model["emulated"] for model in record["models"]) else ()
    for name in (*RUNTIME_SOURCES, *emulated, *(PROFILE_SOURCES if compiler.profile else ())):
        compiler.compile(runtime / "src" / name, includes)
    for model, build in zip(record["models"], builds, strict=True):
        folder = project / "models" / model["name"]
        headers = runtime / "include_tvm"
        _add_model(folder, model, build, compiler, includes, headers, in_c=record["metadata"] == "c")
    for source in sources:
        compiler.compile(source, includes)
    # Operators may be position dependent, as in Zephyr's native_sim.
    compiler.link(program, ["-no-pie", "-pthread", "-lm"])


def _add_model(
    folder: Path,
    model: dict[str, Any],
    build: dict[str, Any],
    compiler: HostCompiler,
    includes: list[Path],
    tvm_headers: Path,
    *,
    in_c: bool,
) -> None:
    name = model["name"]
    if in_c:
        optional = [part for part in ("bridges", "tvm_crt") if model.get(part)]
        for part in ("metadata", "registry", "run", *optional):
            named = [f'-DOPWEST_TARGET="{build["target"] or ANY_TARGET}"'] if part == "metadata" else []
            compiler.compile(folder / "src" / f"{name}_{part}.c", includes, named)
        if model["constants"]:
            compiler.compile(folder / "constants.S", includes, [f"-I{folder / 'constants'}"])
    else:
        compiler.objects.append(str(folder / metadata_object(name, build["target"])))
    if any(tensor["reached"] for tensor in model["tensors"]):
        compiler.compile(folder / "src" / f"{name}_devices.c", includes)
    for source in build["sources"]:
        extra = ["-include", str(folder / build["rename"]), "-idirafter", str(tvm_headers)]
        compiler.compile(folder / source, includes, extra)
    compiler.objects += [str(folder / item) for item in build["objects"]]


def host_build(project: Path, model: dict[str, Any], machine: str, bits: int) -> dict[str, Any]:
    """Return the build of a model for this machine. Raises OpwestError, listing the model's targets, without one."""
    for build in model["builds"]:
        if build["target"] is None or (build["bits"] == bits and machine in build["host"]):
            found: dict[str, Any] = build
            return found
    names = ", ".join(build["target"] for build in model["builds"])
    raise fail(
        f"no objects of model {model['name']!r} for this machine ({machine}, {bits} bits); found: {names}",
        project,
        expected="a target for this machine",
        hint="compile the operators for it (x86-64, i386, aarch64-host), add them to the manifest, and generate again",
    )

# SPDX-License-Identifier: Apache-2.0
"""Compile a generated project with the host's compilers, and check its operators for state and hidden effects."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from opwest.base import commands
from opwest.base.commands import C_COMPILERS, CPP_COMPILERS, compiler_words, quoted
from opwest.base.diagnostics import Diagnostic, Location, OpwestError, fail
from opwest.base.processes import first_lines, run_tool
from opwest.base.resources import resource, script
from opwest.model.types.builds import ANY_TARGET, SOURCES
from opwest.objects.facts import is_cpp
from opwest.objects.inspect import read_member
from opwest.objects.instructions import instruction_effects
from opwest.objects.library_symbols import EFFECT_EXPECTED, hidden_effects
from opwest.project import disk
from opwest.project.lock import read_lock
from opwest.render.model_files import metadata_object
from opwest.zephyr.cmsis_nn import find_cmsis_nn, required_sources, uses_cmsis_nn

Format = Literal["elf", "macho", "coff"]

_SECTION = re.compile(r'^\t\.section \.rodata\.(\S+), "a(G?)", %progbits.*$')
_DROPPED = re.compile(r"^\t\.(?:type|size) ")
_SYMBOL = re.compile(r"^(\t\.(?:global|weak) )?([A-Za-z_]\w*)(:?)$")


def format_of(macros: str) -> Format:
    """Return the format of a compiler's objects by its predefined macros (`-dM -E`)."""
    names = set(re.findall(r"^#define (\w+)", macros, re.MULTILINE))
    if "__APPLE__" in names:
        return "macho"
    return "coff" if "_WIN32" in names else "elf"


def prefix_of(macros: str) -> str:
    """Return the prefix of C symbols in assembly, which predefined macros contain."""
    match = re.search(r"^#define __USER_LABEL_PREFIX__ (\S+)$", macros, re.MULTILINE)
    return match[1] if match else ""


def translated(source: str, form: Format, prefix: str) -> str:
    """Return emitted assembly (constants.S, vectors.S) for another format.

    Programs have a section that all models of an image share: `.linkonce` in COFF, a weak definition in Mach-O.
    """
    return "\n".join(_line(line, form, prefix) for line in source.split("\n"))


def _line(line: str, form: Format, prefix: str) -> str:
    if match := _SECTION.match(line):
        if form == "macho":
            return "\t.const_data"  # __DATA,__const: the linker also moves constants with pointers to it
        shared = "\n\t.linkonce discard" if match[2] else ""
        return f'\t.section .rdata${match[1]},"dr"{shared}'
    if _DROPPED.match(line):
        return ""
    if match := _SYMBOL.match(line):
        directive, name, colon = match.groups()
        if directive is None and not colon:
            return line
        if directive and directive.strip() == ".weak":
            # A COFF symbol of a .linkonce section is an ordinary one.
            weak = f"\n\t.weak_definition {prefix}{name}" if form == "macho" else ""
            return f"\t.globl {prefix}{name}{weak}"
        return f"{chr(9) + '.globl ' if directive else ''}{prefix}{name}{colon}"
    return line


def _operator_faults(
    model: Mapping[str, Any], build: Mapping[str, Any], source: str, obj: Path, command: Sequence[str]
) -> Iterator[Diagnostic]:
    """Yield the state and the hidden effects of a source's object. Raises OpwestError if it cannot be read."""
    program = script("check_operators")
    # Records of earlier versions have no positions and no permitted effects.
    places = dict(zip(build["sources"], build.get("places", ()), strict=False))
    permits = dict(zip(build["sources"], build.get("permits", ()), strict=False)).get(source, ())
    place = places.get(source, {"line": 0, "column": 0})
    at = Location(model["manifest"], place["line"], place["column"])
    try:
        # The command has paths relative to the current directory.
        facts = program.object_facts(str(obj), command, os.curdir, f"{model['name']}__")
    except program.NotElfError as error:
        raise fail(f"{source}: cannot read its object: {error}", at) from error
    except subprocess.CalledProcessError as error:
        raise fail(program.failure(source, error), at) from error
    if facts.states and "state" not in permits:
        message = program.message(source, facts.states)
        yield Diagnostic("error", message, at, program.EXPECTED, program.HINT)
    compiled = read_member(obj.name, obj.read_bytes())
    for effect in (*hidden_effects(facts.undefined, ("host",), permits), *instruction_effects(compiled, permits)):
        yield Diagnostic("error", f"{source} {effect.text}", at, EFFECT_EXPECTED, effect.hint)


_COPY = "modules/opwest/"


def installed_runtime(project: Path) -> Path:
    """Return the runtime installed with this opwest.

    Raises OpwestError if `project` has a copy of another version, for which its models were generated.
    """
    root = resource("zephyr_module")
    lock = read_lock(project)
    copied = {} if lock is None else lock.files
    for path, digest in copied.items():
        if path.startswith(_COPY) and disk.look(root, path.removeprefix(_COPY)) != digest:
            text = "the application has the runtime of another version of opwest"
            raise fail(text, project / path, hint=f"generate it again: opwest update {quoted(str(project))}")
    return root


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
    "accelerator.c", "device_calls.c", "device_launches.c", "device_ownership.c", "devices.c", "halide_backend.c",
    "metadata.c", "port_host.c", "port_host_cache.c", "port_tvm_host.c", "registry.c", "state.c", "status.c",
    "tvm_backend.c",
)  # fmt: skip
PROFILE_SOURCES = ("port_profile_host.c", "profile.c")
"""Additional sources of CONFIG_OPWEST_PROFILE."""
CHECK_INPUTS_SOURCES = ("input_check.c", "port_input_check_host.c")
"""Additional sources of CONFIG_OPWEST_CHECK_INPUTS."""
STREAM_SOURCES = ("stream.c", "stream_frames.c")
"""Additional sources for models that stream."""
PROFILE_FLAG = "-DCONFIG_OPWEST_PROFILE=1"
CHECK_STEPS_FLAG = "-DCONFIG_OPWEST_CHECK_STEPS=1"
CHECK_INPUTS_FLAG = "-DCONFIG_OPWEST_CHECK_INPUTS=1"
SANITIZE_FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-O1", "-g")
"""The options of --sanitize; `undefined` contains `alignment`."""
LINK_FLAGS: dict[Format, tuple[str, ...]] = {
    "elf": ("-no-pie", "-pthread", "-lm"),  # operators may be position dependent, as in Zephyr's native_sim
    "macho": ("-lm",),
    "coff": ("-static", "-pthread", "-lm"),  # the program is run without the DLLs of the compiler in PATH
}
WARNINGS = ("-O2", "-Wall", "-Wextra")
ALIASING = "-fno-strict-aliasing"
"""As Zephyr: tensors of different types follow each other in the same memory, also in an operator (`phases`)."""
C_FLAGS = ("-std=gnu11", ALIASING, *WARNINGS)
CPP_FLAGS = (ALIASING, *WARNINGS, "-fno-exceptions", "-fno-rtti")
"""As Zephyr without CONFIG_CPP_EXCEPTIONS and CONFIG_CPP_RTTI."""
CPP_STANDARD = "11"
"""Zephyr's default, CONFIG_STD_CPP11."""
_MSVC = ("cl", "clang-cl")
_REFUSED = re.compile(r"error: #error \"?((?:generated by TVM for |__)[^\"\n]*)")
"""The checks of the processor in imported sources (frontends/mlf/convert.py)."""
_STANDARD = re.compile(r"^[ \t]*CONFIG_STD_CPP(\w{2})=y\b", re.MULTILINE)


class HostCompiler:
    """The host's compilers for C ($CC, default cc) and C++ ($CXX, default c++).

    Objects go to the directory `work`. Programs compare the inputs of each step before and after its call, unless they
    measure.
    """

    def __init__(
        self, work: Path, bits: int | None, *, profile: bool = False, check_steps: bool = False, sanitize: bool = False
    ) -> None:
        self.bits = bits
        self.command = self._command("CC", C_COMPILERS, "C")
        self.cpp_command: list[str] = []
        """The compiler for C++; empty without a C++ source."""
        self.standard = CPP_STANDARD
        """The C++ standard, as in CONFIG_STD_CPP17: 17."""
        self.work = work
        self.measures = profile
        self.sanitize = list(SANITIZE_FLAGS) if sanitize else []
        self.flags = [PROFILE_FLAG]  # also without measurements: run in LLVM IR has points only with it
        self.flags += [CHECK_STEPS_FLAG] if check_steps else []
        self.flags += [] if profile else [CHECK_INPUTS_FLAG]
        self.objects: list[str] = []

    def _command(self, variable: str, defaults: Sequence[str], language: str) -> list[str]:
        try:
            words = compiler_words(variable, defaults)
        except ValueError as error:
            raise fail(
                f"cannot parse ${variable}: {error}", expected="a compiler with its options, in shell syntax"
            ) from error
        if words and PureWindowsPath(words[0]).stem.lower() in _MSVC:
            raise _msvc_error(f"${variable} is '{words[0]}', a compiler of MSVC")
        if not words or shutil.which(words[0]) is None:
            raise fail(
                f"{language} compiler '{words[0] if words else '$' + variable}' not found",
                hint=f"install {'gcc or clang' if language == 'C' else 'g++ or clang++'}, or set {variable}",
            )
        return [*words, *([f"-m{self.bits}"] if self.bits else [])]

    @cached_property
    def macros(self) -> str:
        """The predefined macros of the compiler for C. Raises OpwestError for the ABI of MSVC."""
        empty = self.work / "empty.c"  # Windows has no /dev/null that every compiler reads
        empty.write_bytes(b"")
        macros = self._run([*self.command, "-dM", "-E", str(empty)])
        if "#define _MSC_VER " in macros:
            raise _msvc_error(f"the compiler '{self.command[0]}' compiles for MSVC")
        return macros

    def pointer_bits(self) -> int:
        """Return the pointer size of the compiler's target in bits."""
        return 64 if "__SIZEOF_POINTER__ 8" in self.macros else 32

    @property
    def form(self) -> Format:
        """The format of the compiler's objects."""
        return format_of(self.macros)

    def program(self, name: str) -> Path:
        """Return the path of a program to link, with the suffix of the system."""
        return self.work / (f"{name}.exe" if self.form == "coff" else name)

    def assemble(self, source: Path, includes: Iterable[Path], folder: Path) -> None:
        """Compile emitted assembly, whose files are below `folder`, in the format of the compiler's objects."""
        if self.form != "elf":
            text = translated(source.read_text(encoding="utf-8"), self.form, prefix_of(self.macros))
            source = self.work / f"{len(self.objects)}_{source.name}"
            source.write_text(text, encoding="utf-8", newline="\n")
        self.compile(source, includes, [f"-I{folder}"])

    def machine(self) -> str:
        """Return the processor of the compiler's target, the first part of its triple: x86_64, aarch64."""
        return self._run([*self.command, "-dumpmachine"]).strip().split("-", 1)[0]

    def compile(self, source: Path, includes: Iterable[Path], extra: Iterable[str] = ()) -> tuple[Path, list[str]]:
        """Compile one source and add its object to the link; return the object and the command."""
        target = self.work / f"{len(self.objects)}_{source.stem[:60]}.o"
        options = [*self.flags, *(f"-I{path}" for path in includes)]
        command = [*self.command, *C_FLAGS]
        if is_cpp(source.name):
            self.cpp_command = self.cpp_command or self._command("CXX", CPP_COMPILERS, "C++")
            command = [*self.cpp_command, f"-std=c++{self.standard}", *CPP_FLAGS]
        command = [*command, *options, *self.sanitize, *extra, "-c", str(source), "-o", str(target)]
        self._run(command)
        self.objects.append(str(target))
        return target, command

    def link(self, program: Path, extra: Iterable[str] = ()) -> None:
        """Link all compiled and added objects."""
        linker = [*(self.cpp_command or self.command), *self.sanitize]
        self._run([*linker, "-o", str(program), *self.objects, *LINK_FLAGS[self.form], *extra])

    def _run(self, command: list[str]) -> str:
        done = run_tool(command)
        if done.returncode != 0:
            refused = _REFUSED.search(done.stderr)
            if refused is not None:
                raise fail(f"the operators of the application cannot run on this machine: {refused[1]}")
            raise fail(
                f"the compiler failed: {commands.joined(command)}\n{first_lines(done.stderr)}", hint=_hint(command)
            )
        return done.stdout


def _msvc_error(message: str) -> OpwestError:
    return fail(
        f"{message}, which has no .incbin and no GNU C",
        expected="gcc or clang for MinGW (x86_64-w64-mingw32)",
        hint="install MinGW-w64, or set CC to 'clang --target=x86_64-w64-mingw32'",
    )


def _hint(command: list[str]) -> str | None:
    """Return what a failed command requires."""
    if "-m32" in command:
        return "-m32 requires the 32-bit C library (Debian: gcc-multilib)"
    if SANITIZE_FLAGS[0] in command:
        return "--sanitize requires the sanitizers of the compiler (libasan and libubsan, or compiler-rt)"
    return None


def _cpp_standard(project: Path) -> str:
    """Return the C++ standard that prj.conf selects; Zephyr's default without one."""
    standards = [CPP_STANDARD]
    with contextlib.suppress(OSError):
        standards += _STANDARD.findall((project / "prj.conf").read_text(encoding="utf-8", errors="replace"))
    return standards[-1].lower()


def build_program(
    project: Path,
    record: dict[str, Any],
    compiler: HostCompiler,
    sources: list[Path],
    program: Path,
    cmsis_nn: Path | None = None,
) -> None:
    """Build `sources`, all models and the runtime into `program`. `cmsis_nn` is the directory of CMSIS-NN, if given."""
    runtime = installed_runtime(project)
    compiler.standard = _cpp_standard(project)
    includes = [runtime / "include", *(project / "models" / m["name"] / "include" for m in record["models"])]
    machine, bits = compiler.machine(), compiler.pointer_bits()
    # Before the first compilation, because a missing target is the most frequent fault.
    builds = [host_build(project, model, machine, bits) for model in record["models"]]
    if compiler.form != "elf":
        _refuse_elf(project, record, builds)
    library_headers, library_sources = _cmsis_nn(project, record["models"], builds, cmsis_nn)
    emulated = EMULATION_SOURCES if any(model["emulated"] for model in record["models"]) else ()
    streams = STREAM_SOURCES if any(model.get("stream") for model in record["models"]) else ()
    checked = CHECK_INPUTS_SOURCES if CHECK_INPUTS_FLAG in compiler.flags else ()
    for name in (*RUNTIME_SOURCES, *PROFILE_SOURCES, *emulated, *streams, *checked):
        compiler.compile(runtime / "src" / name, includes)
    for model, build in zip(record["models"], builds, strict=True):
        folder = project / "models" / model["name"]
        headers = (runtime / "include_tvm", *library_headers)
        _add_model(folder, model, build, compiler, includes, headers, in_c=record["metadata"] == "c")
    for source in library_sources:
        compiler.compile(source, library_headers, ["-w"])
    # An application of microTVM can include TVM's headers.
    tvm = ["-idirafter", str(runtime / "include_tvm")] if any(m.get("tvmgen") for m in record["models"]) else []
    for source in sources:
        compiler.compile(source, includes, tvm)
    compiler.link(program)


def _add_model(
    folder: Path,
    model: dict[str, Any],
    build: dict[str, Any],
    compiler: HostCompiler,
    includes: list[Path],
    last: tuple[Path, ...],
    *,
    in_c: bool,
) -> None:
    """Compile a model; `last` are the last directories of headers for its operators. Raises OpwestError."""
    name = model["name"]
    if in_c:
        optional = [part for part in ("bridges", "tvm_crt") if model.get(part)]
        for part in ("metadata", "run", *optional):
            named = [f'-DOPWEST_TARGET="{build["target"] or ANY_TARGET}"'] if part == "metadata" else []
            compiler.compile(folder / "src" / f"{name}_{part}.c", includes, named)
        if model["constants"]:
            compiler.assemble(folder / "constants.S", includes, folder / "constants")
    else:
        compiler.objects.append(str(folder / metadata_object(name, build["target"])))
    if model.get("stream"):
        compiler.compile(folder / "src" / f"{name}_stream.c", includes)
    if model.get("tvmgen"):
        compiler.compile(folder / "src" / f"{name}_tvmgen.c", includes)
    if any(tensor["reached"] for tensor in model["tensors"]):
        compiler.compile(folder / "src" / f"{name}_devices.c", includes)
    faults: list[Diagnostic] = []
    for source in build["sources"]:
        after = [word for path in last for word in ("-idirafter", str(path))]
        extra = ["-include", str(folder / build["rename"]), *after, *_options_of(folder, build, source)]
        obj, command = compiler.compile(folder / source, includes, extra)
        if compiler.form == "elf":  # docs/contributing/windows-and-macos.md
            faults += _operator_faults(model, build, source, obj, command)
    if faults:
        raise OpwestError(faults)
    compiler.objects += [str(folder / item) for item in build["objects"]]


def _refuse_elf(project: Path, record: dict[str, Any], builds: list[dict[str, Any]]) -> None:
    """Raise OpwestError for files in ELF, which other linkers do not read."""
    if record["metadata"] != "c":
        text = "the metadata of the application is in ELF objects, which the linker of this machine does not read"
        raise fail(text, project, hint="generate with --metadata=c")
    for model, build in zip(record["models"], builds, strict=True):
        if build["objects"]:
            raise fail(
                f"the objects of model {model['name']!r} are ELF files, which the linker of this machine does not read",
                project,
                expected="operators as C sources",
                hint="run on Linux, or with --board",
            )


def _options_of(folder: Path, build: dict[str, Any], source: str) -> list[str]:
    """Return the options of the manifest for a source."""
    rows = (row for row in build.get("options", ()) if row["source"] == source)
    words = [word for row in rows for word in (*(f"-I{folder / path}" for path in row["include_dirs"]), *row["flags"])]
    return [f"-iquote{folder / SOURCES}", *words]  # a wrapper includes its header by the path below the sources


def _cmsis_nn(
    project: Path, models: list[dict[str, Any]], builds: list[dict[str, Any]], given: Path | None
) -> tuple[list[Path], list[Path]]:
    """Return the directory of headers and the sources of CMSIS-NN that the models require; none without a user."""
    users = {}
    for model, build in zip(models, builds, strict=True):
        sources = [project / "models" / model["name"] / source for source in build["sources"]]
        if uses_cmsis_nn(sources):
            users[model["name"]] = sources
    if users:
        root = find_cmsis_nn(given, next(iter(users)), project)
        return [root / "Include"], required_sources(root, [source for sources in users.values() for source in sources])
    if given is not None:
        raise fail("--cmsis-nn has no effect: no operator includes CMSIS-NN", project)
    return [], []


def host_build(project: Path, model: dict[str, Any], machine: str, bits: int) -> dict[str, Any]:
    """Return the build of a model for this machine. Raises OpwestError, listing the model's targets, without one."""
    for build in model["builds"]:
        if build["target"] is None or (build["bits"] == bits and machine in build["host"]):
            selected: dict[str, Any] = build
            return selected
    names = ", ".join(build["target"] for build in model["builds"])
    raise fail(
        f"no objects of model {model['name']!r} for this machine ({machine}, {bits} bits); found: {names}",
        project,
        expected="a target for this machine",
        hint="compile the operators for it (x86-64, i386, aarch64-host), add them to the manifest, and generate again",
    )

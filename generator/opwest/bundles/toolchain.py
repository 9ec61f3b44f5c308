# SPDX-License-Identifier: Apache-2.0
"""The compiler of an image and its options: of a named target, or those of a Zephyr build."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opwest.base import commands
from opwest.base.diagnostics import fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import first_lines, run_tool
from opwest.model.types.builds import Optimize, Target
from opwest.objects.compat import MARCH
from opwest.objects.facts import Member, ObjectError
from opwest.objects.inspect import read_member
from opwest.objects.targets import PAIRED, RISCV_SPEED, Processor, processors

_ARCHIVE, _HEADER = b"!<arch>\n", 60
_ERRNO = ("__errno", "errno", "__errno_location")
"""The symbols through which C libraries write errno: newlib, picolibc, glibc."""


class Library:
    """An archive with a symbol table; members are read on use."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        self._places = dict(_symbol_table(self._data))
        self._members: dict[int, Member | None] = {}

    def member(self, symbol: str) -> Member | None:
        """Return the member that defines a symbol."""
        place = self._places.get(symbol)
        if place is None:
            return None
        if place not in self._members:
            self._members[place] = self._read(place)
        return self._members[place]

    def _read(self, place: int) -> Member | None:
        header = self._data[place : place + _HEADER]
        try:
            size = int(header[48:58])
            content = self._data[place + _HEADER : place + _HEADER + size]
            return read_member(header[:16].decode("ascii", "replace").rstrip(" /"), content)
        except (ValueError, ObjectError):
            return None


def _symbol_table(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield symbols and the places of the headers of their members (the table of GNU ar); the first one counts."""
    if not data.startswith(_ARCHIVE) or data[8:24].rstrip() != b"/":
        return
    size = int(data[56:66])
    table = data[68 : 68 + size]
    (count,) = struct.unpack_from(">I", table)
    places = struct.unpack_from(f">{count}I", table, 4)
    names = table[4 + 4 * count :].split(b"\0")
    for name, place in reversed(list(zip(names, places, strict=False))):  # the first definition replaces later ones
        yield name.decode("ascii", "replace"), place


class Libraries:
    """The libraries of a link, in order."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = libraries

    def find(self, symbol: str) -> Member | None:
        """Return the member that the linker takes for a symbol."""
        return next((member for library in self._libraries if (member := library.member(symbol)) is not None), None)

    def without_errno(self, needed: Iterable[str], own: Iterable[str]) -> dict[str, str]:
        """Return replacements of functions that write errno: the function that they call, by name.

        `needed` are undefined symbols, `own` those that the image defines.
        """
        replacements: dict[str, str] = {}
        seen = set(own)
        pending = list(needed)
        while pending:
            symbol = pending.pop()
            if symbol in seen:
                continue
            seen.add(symbol)
            member = self.find(symbol)
            if member is None:
                continue
            plain = f"__ieee754_{symbol}"
            if any(name in _ERRNO for name in member.undefined) and self.find(plain) is not None:
                replacements[symbol] = plain
                pending.append(plain)
            else:
                pending += member.undefined_strong
        return dict(sorted(replacements.items()))

    def path_to(self, wanted: str, roots: Iterable[str], defined: Mapping[str, object]) -> list[str] | None:
        """Return the shortest chain of symbols from one of `roots` to `wanted`, through members of libraries.

        `defined` are the symbols that objects define, where chains end.
        """
        queue = [[root] for root in dict.fromkeys(roots)]
        seen = {chain[0] for chain in queue}
        for chain in queue:  # grows during the loop
            member = self.find(chain[-1]) if chain[-1] not in defined else None
            if chain[-1] == wanted:
                return chain
            if member is None:
                continue
            if any(symbol.name == wanted and symbol.section != "undefined" for symbol in member.symbols):
                return [*chain, wanted]  # also a local symbol
            for name in member.undefined_strong:
                if name not in seen:
                    seen.add(name)
                    queue.append([*chain, name])
        return None


_RISCV_ABI = {"soft": "", "single": "f", "double": "d", "quad": "q"}
_COMPILERS = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc", "x86-64": "cc", "i386": "cc"}
"""The default compiler for a machine."""
_PICOLIBC = "picolibc.specs"
_OPENED = re.compile(r"^attempt to open (.+) succeeded$", re.MULTILINE)
OPTIMISATION = ("-Os", "-std=gnu11")
"""As Zephyr's defaults."""
_LEVELS: dict[Optimize, tuple[str, ...]] = {"speed": ("-O2",), "size": ("-Os",), "application": ()}
"""The options of operators, as opwest.cmake has them."""
_DEBUGGING = ("-O0", "-Og")
"""The options of CONFIG_NO_OPTIMIZATIONS and CONFIG_DEBUG_OPTIMIZATIONS."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A C compiler with the options for a processor, and those of all sources."""

    command: tuple[str, ...]
    machine: tuple[str, ...]
    """The options that select the processor and its ABI, also for the linker."""
    options: tuple[str, ...] = OPTIMISATION
    """Of all sources: optimisation, dialect, and in a build also its headers and macros."""
    has_c_library: bool = True
    """Whether it has a C library that an image can contain; that of a host cannot be."""

    def run(self, words: Sequence[str]) -> None:
        """Run the compiler. Raises OpwestError if it fails."""
        done = self.attempt(words)
        if done.returncode != 0:
            command = commands.joined([*self.command, *words])
            raise fail(f"the compiler failed: {command}\n{first_lines(done.stderr)}")

    def attempt(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run the compiler and return its result."""
        return run_tool([*self.command, *words])

    def optimisation(self, optimize: Optimize) -> tuple[str, ...]:
        """Return the options of operators, after those of all sources; none beside options for debugging."""
        level = next((word for word in reversed(self.options) if word.startswith("-O")), "-O0")
        if level in _DEBUGGING:
            return ()
        is_riscv = any(word.startswith("-march=rv") for word in self.machine)
        is_gcc = all("clang" not in Path(word).name for word in self.command)
        return _LEVELS[optimize] + (RISCV_SPEED if optimize == "speed" and is_riscv and is_gcc else ())

    @property
    def link_libraries(self) -> tuple[str, ...]:
        """The libraries of the link."""
        return ("-lm", "-lc", "-lgcc") if self.has_c_library else ("-lgcc",)


def linked_archives(chain: Toolchain, libraries: Sequence[str], work: Path) -> list[Path] | None:
    """Return the archives that a link with `libraries` opens, in order; None if it fails."""
    source, target = work / "empty.c", work / "empty.o"
    source.write_text("const char opwest_empty = 0;\n", encoding="utf-8")
    chain.run([*chain.machine, "-c", str(source), "-o", str(target)])
    script = work / "empty.ld"
    script.write_text("", encoding="utf-8")
    words = ["-nostdlib", "-r", "-Wl,-e,opwest_empty", "-T", str(script), "-Wl,--verbose", str(target), *libraries]
    done = chain.attempt([*chain.machine, *words, "-o", str(work / "empty_linked.o")])
    if done.returncode != 0:
        return None
    opened = _OPENED.findall(done.stdout)
    return [Path(path) for path in opened if path.endswith(".a")]


def compiler(words: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the command of a compiler. Raises OpwestError if it is not installed."""
    if not words or shutil.which(words[0]) is None:
        hint = "install it, or name another one: --cc COMMAND"
        raise fail(f"C compiler {words[0] if words else ''!r} of {what} not found", hint=hint)
    return tuple(words)


def command_of(cc: str) -> list[str]:
    """Return the words of --cc. Raises OpwestError for unbalanced quotes."""
    try:
        return commands.split(cc)
    except ValueError as error:
        raise fail(f"cannot parse --cc: {error}", expected="a command") from error


def toolchain_of(target: Target, given: str | None, work: Path) -> Toolchain:
    """Return the toolchain for a target; `given` is the command of --cc. Raises OpwestError without one."""
    default = _COMPILERS.get(target.machine)
    if given is None and default is None:
        message = f"no default compiler for machine {target.machine} of target {target.name!r}"
        raise fail(message, expected="--cc COMMAND")
    words = command_of(given) if given is not None else [default or ""]
    command = compiler(words, f"target {target.name!r}")
    return with_c_library(Toolchain(command, machine_options(target), has_c_library=not target.host), work)


def with_c_library(chain: Toolchain, work: Path) -> Toolchain:
    """Return the toolchain with picolibc if it has no other C library: Debian's compiler for RISC-V has none."""
    if not chain.has_c_library or linked_archives(chain, ("-lm", "-lc"), work) is not None:
        return chain
    picolibc = replace(chain, machine=(*chain.machine, f"--specs={_PICOLIBC}"))
    done = picolibc.attempt([*picolibc.machine, "-print-multi-directory"])
    if done.returncode == 0 and linked_archives(picolibc, ("-lm", "-lc"), work) is not None:
        return picolibc
    return replace(chain, has_c_library=False)


def machine_options(target: Target) -> tuple[str, ...]:
    """Return the options of GCC that select the processor and the ABI of a target."""
    if target.machine == "arm":
        return _arm(target)
    if target.machine == "riscv":
        abi = f"{'lp64' if target.bits == 64 else 'ilp32'}{_RISCV_ABI.get(target.float_abi or 'soft', '')}"
        # GCC 12 finds its libraries only by the name without these extensions, which compiled code does not use.
        arch = (target.arch or f"rv{target.bits}i").replace("_zicsr", "").replace("_zifencei", "")
        return (f"-march={arch}", f"-mabi={abi}", "-mcmodel=medany")
    if target.machine in ("x86-64", "i386"):
        return ("-m32", "-msse2", "-mfpmath=sse") if target.bits == 32 else ("-m64",)
    return ()


def _arm(target: Target) -> tuple[str, ...]:
    cpu = target.llvm.cpu if target.llvm is not None else None
    processor = processors().get(cpu or "")
    known = processor if processor is not None and processor.symbol is not None and processor.has_mcpu else None
    parts = _extensions(target, known)
    base = f"-mcpu={known.name}" if known else f"-march={MARCH.get(target.arch or '', 'armv7-m')}"
    # Operators have another order of instructions for it. Zephyr defines this macro in applications.
    paired = (f"-D{PAIRED}=1",) if known and f"CONFIG_{known.symbol}" == PAIRED else ()
    return (f"{base}{parts}", "-mthumb", f"-mfloat-abi={target.float_abi or 'soft'}", *paired)


def _extensions(target: Target, processor: Processor | None) -> str:
    """Return the suffixes of -mcpu or -march: the optional parts of the processor that differ from GCC's default."""
    if processor is None:
        parts = ["+dsp"] if target.dsp and target.arch in ("v8-M.mainline", "v8.1-M.mainline") else []
        vectors = {"integer": ["+mve"], "float": ["+mve.fp"]}.get(target.mve or "none", [])
        floats = {"single": ["+fp"], "double": ["+fp.dp"]}.get(target.fpu or "none", [])
        return "".join([*parts, *vectors, *(floats if target.arch != "v7-M" else [])])
    parts = []
    if processor.mve and target.mve != "float":
        parts.append("+nomve.fp" if target.mve == "integer" else "+nomve")
    if "double" in processor.fpu and target.fpu == "single":
        parts.append("+nofp.dp")
    if processor.dsp == "optional" and target.dsp is False:
        parts.append("+nodsp")
    return "".join(parts)

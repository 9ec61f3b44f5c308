# SPDX-License-Identifier: Apache-2.0
"""CMSIS-NN for images of candidates: a library for a core, and the bytes of its functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from opwest.importers.models.emit.registry import candidates
from opwest.importers.models.ir.program import Operation
from opwest.importers.models.processors import CORES
from opwest.records import dataclass
from opwest.tuning.emulator import execute
from opwest.tuning.machines import MACHINES, Machine
from opwest.zephyr.cmsis_nn import required_sources

LIBRARY = "cmsis-nn"
"""As in `libraries` of the options of an import."""
_FLAGS = ("-std=c11", "-w", "-Ofast", "-ffunction-sections", "-fdata-sections")
"""Zephyr optimises the module for speed in every application. Not freestanding: copies of 4 bytes are loads."""


@dataclass(frozen=True, eq=False)
class CmsisNn:
    """CMSIS-NN, compiled for a core."""

    machine: Machine
    """The core's, with the headers and the library."""
    functions: Mapping[str, int]
    """The functions that candidates call, with the bytes of code that a link with each alone adds."""


def compiled(root: Path, operations: Iterable[Operation], core: str, work: Path) -> CmsisNn:
    """Compile what candidates of operations call, in a directory for intermediate files. Raises EmulatorError.

    `root`: the directory of CMSIS-NN. Its sources that the candidates do not need are not compiled.
    """
    work.mkdir(parents=True, exist_ok=True)
    machine = MACHINES[core]
    called = {name: None for one in operations for name in functions_of(one, CORES[core])}
    calls = work / "calls.txt"
    calls.write_text("\n".join(called), encoding="utf-8")
    words = [*machine.compiler, *_FLAGS, "-I", str(root / "Include")]
    objects = []
    for source in required_sources(root, [calls]):
        objects.append(str(work / f"{source.stem}.o"))
        execute([*words, "-c", str(source), "-o", objects[-1]])
    archive = work / "libcmsis_nn.a"
    execute([_tool(machine, "ar"), "rcs", str(archive), *objects])
    extended = dataclasses.replace(
        machine,
        compiler=(*machine.compiler, "-I", str(root / "Include")),
        libraries=(str(archive), *machine.libraries),
    )
    return CmsisNn(extended, {name: _code(name, archive, machine, work) for name in called})


def functions_of(operation: Operation, processor: str) -> Sequence[str]:
    """Return the functions of CMSIS-NN that its candidate for an operation calls; none without a candidate."""
    calls = candidates(operation, processor, (LIBRARY,)).values()
    return [name for call in calls for name in call.function.external]


def _code(name: str, archive: Path, machine: Machine, work: Path) -> int:
    """Return the bytes of code and constants of a function and of those that it calls, without the C library."""
    image = work / f"{name}.elf"
    link = ["-nostartfiles", "-nostdlib", "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all"]
    execute([*machine.compiler, *link, f"-Wl,--entry={name}", f"-Wl,-u,{name}", str(archive), "-o", str(image)])
    rows = execute([_tool(machine, "size"), str(image)]).splitlines()[1:]
    return int(rows[0].split()[0])


def _tool(machine: Machine, name: str) -> str:
    return machine.compiler[0].removesuffix("gcc") + name

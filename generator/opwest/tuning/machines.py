# SPDX-License-Identifier: Apache-2.0
"""Machines of QEMU that run images without an operating system: one for each core; and the core of a board."""

from __future__ import annotations

from functools import cache

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.targets import RISCV_SPEED, Processor, measured_cores, processors
from opwest.zephyr.processors import processor_symbols
from opwest.zephyr.workspace import Workspace


@dataclass(frozen=True)
class Machine:
    """A machine of QEMU and the compiler for its core."""

    emulator: tuple[str, ...]
    compiler: tuple[str, ...]
    memories: tuple[tuple[str, int], ...]
    """The starts of the memories for code, data and content: image.ld."""
    start: str
    cycles: str
    """The core whose model of cycles applies; empty: that of the Cortex-M4."""
    libraries: tuple[str, ...] = ("-lm", "-lc", "-lgcc")
    """In the order of the linker: libm calls libc, and both call functions of the compiler."""

    @property
    def is_thumb(self) -> bool:
        """Whether the model of cycles applies; otherwise each instruction takes one cycle."""
        return self.start == "startup_arm.c"


@cache
def machines() -> dict[str, Machine]:
    """Return the machine of each core of measurements."""
    return {core: _machine(processor) for core, processor in measured_cores().items()}


def _machine(processor: Processor) -> Machine:
    assert processor.qemu is not None
    row = processor.qemu
    memories, machine = tuple(row["memories"].items()), str(row["machine"])
    flags, cycles = row.get("flags", "").split(), row.get("cycles", "")
    if processor.machine == "riscv":
        compiler: tuple[str, ...] = ("riscv64-unknown-elf-gcc", "--specs=picolibc.specs", *flags, *RISCV_SPEED)
        cpu = ("-cpu", row["cpu"]) if "cpu" in row else ()
        emulator: tuple[str, ...] = ("qemu-system-riscv32", "-M", machine, *cpu, "-bios", "none")
        return Machine(emulator, compiler, memories, "startup_riscv.c", cycles)
    compiler = ("arm-none-eabi-gcc", "-mthumb", f"-mcpu={processor.name}", *flags)
    emulator = ("qemu-system-arm", "-M", machine)
    return Machine(emulator, compiler, memories, "startup_arm.c", cycles)


def core_of_board(board: str, workspace: Workspace | None) -> str | None:
    """Return the core whose measurements apply to a board; None if it is unknown, or if no measured core is like it."""
    symbols = processor_symbols(board, workspace) or frozenset()
    if "64BIT" in symbols:
        return None
    cores = {
        processor.core
        for processor in processors().values()
        if processor.symbol in symbols and processor.core is not None
    }
    return cores.pop() if len(cores) == 1 else None

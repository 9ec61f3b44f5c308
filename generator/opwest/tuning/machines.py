# SPDX-License-Identifier: Apache-2.0
"""Machines of QEMU that run images without an operating system: one for each core."""

from __future__ import annotations

from opwest.base.frozen_dataclass import dataclass

ARM = ("arm-none-eabi-gcc", "-mthumb")
MPS2 = {"CODE": 0x00000000, "DATA": 0x20000000, "CONTENT": 0x21000000}
"""mps2-an385, -an386: two static memories of 4 MiB, and 16 MiB of dynamic memory."""


@dataclass(frozen=True)
class Machine:
    """A machine of QEMU and the compiler for its core."""

    core: str
    emulator: tuple[str, ...]
    compiler: tuple[str, ...]
    memories: tuple[tuple[str, int], ...]
    """The starts of the memories for code, data and content: image.ld."""
    start: str = "startup_arm.c"
    libraries: tuple[str, ...] = ("-lc", "-lgcc")
    m3: bool = False
    """Whether the model of cycles is that of the Cortex-M3."""


def _arm(core: str, machine: str, flags: str, memories: dict[str, int] | None = None, m3: bool = False) -> Machine:
    emulator = ("qemu-system-arm", "-M", machine)
    return Machine(core, emulator, (*ARM, *flags.split()), tuple((memories or MPS2).items()), m3=m3)


MACHINES = {
    one.core: one
    for one in (
        _arm("cortex-m0plus", "mps2-an385", "-mcpu=cortex-m0plus"),
        _arm("cortex-m3", "mps2-an385", "-mcpu=cortex-m3", m3=True),
        _arm("cortex-m4", "mps2-an386", "-mcpu=cortex-m4 -mfloat-abi=softfp -mfpu=fpv4-sp-d16"),
        _arm(
            "cortex-m7",
            "mps2-an500",
            "-mcpu=cortex-m7 -mfloat-abi=softfp -mfpu=fpv5-sp-d16",
            {**MPS2, "CONTENT": 0x60000000},
        ),
        _arm(
            "cortex-m33",
            "mps2-an505",
            "-mcpu=cortex-m33 -mfloat-abi=softfp -mfpu=fpv5-sp-d16",
            {"CODE": 0x10000000, "DATA": 0x38000000, "CONTENT": 0x80000000},
        ),
        _arm(
            "cortex-m55",
            "mps3-an547",
            "-mcpu=cortex-m55 -mfloat-abi=hard",
            {"CODE": 0x00000000, "DATA": 0x21000000, "CONTENT": 0x60000000},
        ),
        Machine(
            "rv32",
            ("qemu-system-riscv32", "-M", "virt", "-bios", "none"),
            (
                "riscv64-unknown-elf-gcc",
                "--specs=picolibc.specs",
                *"-march=rv32imac -mabi=ilp32 -mcmodel=medany".split(),
            ),
            (("CODE", 0x80000000), ("DATA", 0x81000000), ("CONTENT", 0x82000000)),
            start="startup_riscv.c",
            libraries=("-lgcc",),
        ),
    )
}
"""By core. ARMv6-M code runs on a Cortex-M3: QEMU has no board with a Cortex-M0+ and enough memory."""

# SPDX-License-Identifier: Apache-2.0
"""Whole Zephyr images: build, size, and what QEMU counts in one run of the model."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from common import ProcessError, SkippedError, execute

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))

import riscv_toolchain

EMULATOR = "qemu-system-arm"
SECONDS = 300
ARM = "arm-none-eabi-"


class Machine(NamedTuple):
    """A board in QEMU."""

    emulator: tuple[str, ...]
    prefix: str = ARM
    """Of the names of the tools."""
    model: str = ""
    """The option of the plugin that selects the model of cycles; empty: that of the Cortex-M4."""


MACHINES = {
    "mps2/an385": Machine((EMULATOR, "-M", "mps2-an385"), model="m3=1"),
    "mps2/an386": Machine((EMULATOR, "-M", "mps2-an386")),
    "mps2/an500": Machine((EMULATOR, "-M", "mps2-an500"), model="m7=1"),
    "mps3/corstone300/an547": Machine((EMULATOR, "-M", "mps3-an547")),
    "qemu_riscv32": Machine(
        ("qemu-system-riscv32", "-M", "virt", "-bios", "none", "-m", "256"), riscv_toolchain.PREFIX
    ),
}
"""By board. Zephyr itself has no QEMU runner for mps2/an386 and mps2/an500."""
_CALL = r"(?:bl|jal)\s+\S+"
"""Of Arm and RISC-V, in objdump's listing."""
PADDING = "rom_mpu_padding"
"""A section without content, up to the boundary that memory protection requires."""


@dataclass(frozen=True)
class Counts:
    """What the plugin counts in a part of a run."""

    instructions: int
    cycles: int
    """Of the model in generator/opwest/tuning/qemu/count.c, without wait states."""
    flash_cycles: int = 0
    """With the flash that was given; 0 without one."""

    def since(self, start: Counts) -> Counts:
        """Return what was counted after `start`."""
        return Counts(
            self.instructions - start.instructions,
            self.cycles - start.cycles,
            self.flash_cycles - start.flash_cycles,
        )


class Images:
    """Images of a Zephyr workspace for one board."""

    def __init__(self, board: str) -> None:
        from opwest.runs.west import Build, find_west
        from opwest.zephyr.workspace import find_workspace

        base = Path(os.environ.get("ZEPHYR_BASE") or Path.home() / "zephyrproject" / "zephyr")
        workspace = find_workspace(base) if (base / "VERSION").is_file() else None
        if workspace is None:
            raise SkippedError(f"no Zephyr workspace: {base} does not exist; set ZEPHYR_BASE")
        west = find_west(workspace)
        missing = [tool for tool in ("cmake", "ninja", "dtc") if shutil.which(tool) is None] + (
            [] if west else ["west"]
        )
        if west is None or missing:
            raise SkippedError(f"{', '.join(missing)} not found")
        self.west, self.top, self.base, self.board = west, workspace.top, base, board
        self.machine = MACHINES[board]
        nowhere = Path()
        self.env = Build(workspace, west, nowhere, board, nowhere, lambda _: None, nowhere).environment
        if self.machine.prefix == ARM and "ZEPHYR_SDK_INSTALL_DIR" not in self.env:
            self.env.setdefault("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
            self.env.setdefault("GNUARMEMB_TOOLCHAIN_PATH", "/usr")

    def build(self, application: Path, folder: Path, *options: str) -> tuple[Path, int, int]:
        """Build; return the image, and the bytes of FLASH and RAM in it."""
        words = [self.west, "build", "-p", "-b", self.board, "-d", folder, application, "--", *options]
        log = execute(words, cwd=self.top, env=self.env)
        units = {"B": 1, "KB": 1 << 10, "MB": 1 << 20}
        rows = re.findall(r"^\s*(FLASH|RAM):\s+(\d+) (B|KB|MB)", log, re.MULTILINE)
        found = {name: int(size) * units[unit] for name, size, unit in rows}
        image = folder / "zephyr" / "zephyr.elf"
        if "FLASH" in found:
            return image, found["FLASH"], found["RAM"]
        return image, *sizes_of(image, self.machine.prefix)

    def count(self, image: Path, model: str, plugin: Path, flash: str = "") -> tuple[Counts, list[tuple[str, Counts]]]:
        """Return the counts of one run, and those of each step with the name of its operator.

        `flash`: the options of the plugin for the simulation of a flash memory (wait states, lines, caches).
        """
        prefix = self.machine.prefix
        call, after = call_of_run(image, model, prefix)
        steps = calls_of_steps(image, model, prefix)
        out = image.with_suffix(".counts")
        out.unlink(missing_ok=True)
        marks = "".join(f",mark={address:#x}" for address, _ in steps)
        given = "".join(f",{option}" for option in (self.machine.model, flash) if option)
        arguments = f"{plugin},from={call:#x},to={after:#x}{marks}{given},out={out}"
        machine = [*self.machine.emulator, "-nographic", "-monitor", "none"]
        rows = _lines([*machine, "-kernel", image, "-plugin", arguments], out, len(steps) + 1)
        points = [Counts(row[0], row[5], row[7] if flash else 0) for row in rows]
        parts = [(name, end.since(start)) for (_, name), start, end in zip(steps, points[:-1], points[1:], strict=True)]
        return points[-1], parts


def _lines(command: list[Any], out: Path, wanted: int) -> list[list[int]]:
    """Run an image that does not end until the plugin wrote its lines."""
    process = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        for _ in range(SECONDS * 10):
            text = out.read_text() if out.exists() else ""
            lines = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
            if len(lines) >= wanted:
                return [[int(word) for word in line.split()] for line in lines[:wanted]]
            if process.poll() is not None:
                output = process.stdout.read().decode(errors="replace") if process.stdout else ""
                raise ProcessError(f"{command[0]} ended:\n{output}")
            time.sleep(0.1)
    finally:
        process.kill()
        process.communicate()
    raise ProcessError(f"{command}: no inference within {SECONDS} s")


def symbols(image: Path, prefix: str = ARM) -> dict[str, int]:
    """Return the addresses of an image's symbols."""
    rows = [line.split() for line in execute([f"{prefix}nm", image]).splitlines()]
    return {row[-1]: int(row[0], 16) for row in rows if len(row) == 3}


def constants_of(image: Path, model: str, prefix: str = ARM) -> int:
    """Return the bytes of a model's constants as linked: weights, sums, multipliers, tables. Equal ones count once."""
    rows = [line.split() for line in execute([f"{prefix}nm", "-S", image]).splitlines()]
    sizes = {row[0]: int(row[1], 16) for row in rows if len(row) == 4 and row[3].startswith(f"{model}_constant_")}
    return sum(sizes.values())


def sizes_of(image: Path, prefix: str) -> tuple[int, int]:
    """Return the bytes of FLASH and RAM of an image that its board has in one memory.

    FLASH: sections with content, initial values of variables too. RAM: sections that are writable.
    """
    listing = execute([f"{prefix}readelf", "-SW", image])
    rows = re.findall(r"^\s*\[ *\d+\] (\S+) +(\S+) +\w+ +\w+ +(\w+) +\w+ +(\w+) ", listing, re.MULTILINE)
    held = [(kind, int(size, 16), flags) for name, kind, size, flags in rows if "A" in flags and name != PADDING]
    flash = sum(size for kind, size, _ in held if kind != "NOBITS")
    return flash, sum(size for _, size, flags in held if "W" in flags)


def call_of_run(image: Path, model: str, prefix: str) -> tuple[int, int]:
    """Return the addresses of the instruction that calls run, and of the one after it."""
    if f"{model}_run" not in symbols(image, prefix):
        raise ProcessError(f"{image} has no {model}_run")
    listing = execute([f"{prefix}objdump", "-d", "--no-show-raw-insn", image])
    found = re.findall(rf"^\s*([0-9a-f]+):\s+{_CALL} <{model}_run>\n\s*([0-9a-f]+):", listing, re.MULTILINE)
    if len(found) != 1:
        raise ProcessError(f"{image}: {len(found)} calls of {model}_run, 1 expected")
    return int(found[0][0], 16), int(found[0][1], 16)


def calls_of_steps(image: Path, model: str, prefix: str) -> list[tuple[int, str]]:
    """Return the addresses of the calls of operators in run, and the operators."""
    listing = execute([f"{prefix}objdump", "-d", "--no-show-raw-insn", f"--disassemble={model}_run", image])
    found = re.findall(rf"^\s*([0-9a-f]+):\s+{_CALL} <{model}__op_(\w+)>", listing, re.MULTILINE)
    return [(int(address, 16), name) for address, name in found]

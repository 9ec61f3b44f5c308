# SPDX-License-Identifier: Apache-2.0
"""Instructions of the points of a run in QEMU, counted by a plugin: its addresses, from the image, and its results."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from opwest.base import commands
from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.base.processes import run_tool
from opwest.objects.elf import Elf, parse_elf
from opwest.objects.facts import ObjectError
from opwest.runs.plugin import HERE, PluginError, built_plugin, escaped
from opwest.runs.profile import Measure, Profile
from opwest.runs.west import Build

_HOOKS = ("opwest_profile_begin", "opwest_profile_end")
_CODE = (*_HOOKS, "opwest_measure_add")
_SWITCHES = ("z_arm_pendsv", "z_riscv_switch")
"""The functions of Zephyr that change the thread."""
_MEASURE_BYTES = 48
"""sizeof(struct opwest_measure)"""
_LOAD = 1
_MODELLED = {"CONFIG_CPU_CORTEX_M3": ("Cortex-M3", "m3=1"), "CONFIG_CPU_CORTEX_M4": ("Cortex-M4", "m3=0")}
"""The processors whose model of cycles qemu/thumb.h has, and its option."""
_REBUILD = "omit --no-build"


class CountingError(Exception):
    """An image whose instructions cannot be counted. `hint`: what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, eq=False)
class Counter:
    """A plugin with its options for an image, and the file of its results."""

    models: Sequence[str]
    """The model of each array of measurements."""
    options: Sequence[str]
    """Those of QEMU."""
    command: Sequence[str]
    """The command of QEMU without them; empty: that of the build."""
    file: Path
    processor: str | None
    """The processor whose cycles are modelled."""

    def counted(self, profile: Profile, faults: Diagnostics) -> Profile:
        """Return a profile with the instructions of its points; without counts, the profile and a warning."""
        array = self.models.index(profile.model)
        runs = [run for run in self._runs(array, len(profile.measures)) if run]
        whole = [run for run in runs if not any(changed for _, _, changed in run.values())]
        kept = whole or runs
        if not kept:
            _warn(faults, f"no run of model '{profile.model}' ended in the image", _REBUILD)
            return profile
        points = ([run[i] for run in kept if i in run] for i in range(len(profile.measures)))
        measures = [_measured(measure, counts) for measure, counts in zip(profile.measures, points, strict=True)]
        return replace(
            profile,
            frequency=0,
            clock="counted" if whole else "emulated",
            measures=tuple(measures),
            instructions=True,
            processor=self.processor,
        )

    def _runs(self, wanted: int, points: int) -> Iterator[dict[int, tuple[int, int, int]]]:
        """Yield the instructions, the cycles and whether the thread changed, of each point of each run."""
        run: dict[int, tuple[int, int, int]] = {}
        for line in self.file.read_text(encoding="ascii").splitlines():
            array, point, instructions, cycles, changed = map(int, line.split())
            if array != wanted or point >= points:
                continue
            run[point] = (instructions, cycles, changed)
            if point == 0:
                yield run
                run = {}


def _measured(measure: Measure, counts: Sequence[tuple[int, int, int]]) -> Measure:
    """Return a measure with counted instructions in place of times."""
    values = [instructions for instructions, _, _ in counts]
    if not values:
        return replace(measure, runs=0, last=0, min=0, max=0, total=0, cycles=0)
    return replace(
        measure,
        runs=len(values),
        last=values[-1],
        min=min(values),
        max=max(values),
        total=sum(values),
        cycles=round(sum(cycles for _, cycles, _ in counts) / len(counts)),
    )


def counter_of(build: Build, faults: Diagnostics) -> Counter | None:
    """Return the counter for an image that QEMU runs; None, with a warning, if its instructions cannot be counted."""
    try:
        return _counter(build)
    except (CountingError, PluginError, ObjectError) as error:
        _warn(faults, str(error), error.hint)
        return None


def _warn(faults: Diagnostics, reason: str, hint: str | None) -> None:
    message = f"the instructions are not counted: {reason}; the profile has ticks of QEMU's timer, which vary"
    faults.warning(message, hint=hint)


def _counter(build: Build) -> Counter:
    image = _Image(build.folder / "zephyr" / "zephyr.elf")
    configuration = build.configuration()
    if image.machine not in ("arm", "riscv") or not image.switches:
        raise CountingError(
            f"board '{build.board}' has another processor than a Cortex-M or RISC-V", "use a board with one of these"
        )
    models, arrays = [], []
    for name, address, count in image.arrays():
        models.append(name)
        arrays.append(f"measures={address:#x},count={count}")
    core, model = next((row for symbol, row in _MODELLED.items() if configuration.get(symbol) == "y"), (None, ""))
    command = build.run_command()
    if command[0] == build.west:
        command = _command(build)
    folder = build.folder / "opwest-count"
    folder.mkdir(exist_ok=True)
    plugin = built_plugin(HERE / "points.c", folder / "points.so", command[0], "begin=1,end=1,size=1")
    begin, end = (image.function(name)[0] for name in _HOOKS)
    words = [f"begin={begin:#x},end={end:#x},size={_MEASURE_BYTES}"]
    for name in _CODE:
        start, size = image.function(name)
        words.append(f"code={start:#x},code_end={start + size:#x}")
    words += arrays
    words += [f"handler={address:#x}" for address in sorted(image.handlers())]
    words += [f"switch={address:#x}" for address in image.switches]
    words += [f"thumb={int(image.machine == 'arm')}", *([model] if model else [])]
    file = folder / "counts.txt"
    option = f"{escaped(plugin)},{','.join(words)},out={escaped(file)}"
    return Counter(models, ("-plugin", option), command, file, core)


def _command(build: Build) -> list[str]:
    """Return the command of QEMU in a build, which is the last one of its target. Raises CountingError."""
    ninja = shutil.which("ninja", path=build.environment["PATH"])
    if ninja is None:
        raise CountingError("ninja not found", "install ninja")
    done = run_tool([ninja, "-C", str(build.folder), "-t", "commands", "run_qemu"])
    last = (done.stdout.strip().splitlines() or [""])[-1]
    words = commands.split(last.rpartition("&& ")[2])
    if done.returncode != 0 or not words or not Path(words[0]).name.startswith("qemu-system"):
        raise CountingError(f"the build in '{build.folder}' has no command of QEMU", _REBUILD)
    return words


class _Image:
    """What the plugin needs of an image. Raises ObjectError for a damaged one, CountingError for another one."""

    def __init__(self, path: Path) -> None:
        try:
            self._elf: Elf = parse_elf(path.read_bytes())
        except OSError as error:
            raise CountingError(f"cannot read '{path}': {error.strerror}", _REBUILD) from error
        self.machine = self._elf.machine_name

    @cached_property
    def _symbols(self) -> Mapping[str, tuple[int, int]]:
        names = self._elf.symbol_names()
        return {names.raw(raw.name).decode("ascii", "replace"): (raw.value, raw.size) for raw in self._elf.symbols()}

    def _address(self, name: str) -> int:
        if name not in self._symbols:
            raise CountingError(f"the image has no symbol '{name}'", "build it without LTO")
        return self._symbols[name][0]

    def function(self, name: str) -> tuple[int, int]:
        """Return the address and the size of a function."""
        address = self._address(name)
        return address & ~1 if self.machine == "arm" else address, self._symbols[name][1]

    @property
    def switches(self) -> list[int]:
        """The functions that change the thread."""
        return [self.function(name)[0] for name in _SWITCHES if name in self._symbols]

    def handlers(self) -> set[int]:
        """Return the entries of exceptions, without that of reset."""
        if self.machine == "riscv":
            return {self._address("_isr_wrapper")}
        table = self._words(self._address("_vector_start"), self._address("_vector_end"))
        reset = table[1:2]
        return {word & ~1 for word in table[2:] if word & 1 and word not in reset}

    def arrays(self) -> Iterator[tuple[str, int, int]]:
        """Yield the model, the address and the length of the measurements of each workspace of the service."""
        start, end = (self._address(f"_opwest_profiled_list_{edge}") for edge in ("start", "end"))
        served = self._words(*(self._address(f"_opwest_served_model_list_{edge}") for edge in ("start", "end")))
        size = self._elf.layout.bits // 8
        for profiled in (word for word in served if start <= word < end):
            model, _, measures, _, count = self._words(profiled, profiled + 5 * size)
            (name,) = self._words(model, model + size)
            yield self._text(name), measures, count & 0xFFFFFFFF

    def _words(self, start: int, end: int) -> list[int]:
        form = struct.Struct(self._elf.layout.order + ("Q" if self._elf.layout.bits == 64 else "I"))
        data = self._memory(start)[: max(end - start, 0)]
        if len(data) != end - start:
            raise CountingError(f"the image has no content at {start:#x}", _REBUILD)
        return [word for (word,) in form.iter_unpack(data[: len(data) // form.size * form.size])]

    def _text(self, address: int) -> str:
        return self._memory(address)[:256].partition(b"\0")[0].decode("utf-8", "replace")

    def _memory(self, address: int) -> bytes:
        """Return the content from an address to the end of its segment; empty outside of all segments."""
        for start, data in self._segments:
            if start <= address < start + len(data):
                return data[address - start :]
        return b""

    @cached_property
    def _segments(self) -> list[tuple[int, bytes]]:
        layout, content = self._elf.layout, self._elf.content
        fields = layout.header.unpack_from(content, 16)
        offset, size, count = fields[4], fields[8], fields[9]
        wide = layout.bits == 64
        form = struct.Struct(layout.order + ("IIQQQQQQ" if wide else "8I"))
        if size != form.size or offset + size * count > len(content):
            raise ObjectError("invalid program headers", "a complete image", _REBUILD)
        found = []
        for row in form.iter_unpack(content[offset : offset + size * count]):
            kind, begin, start, length = (row[0], row[2], row[3], row[5]) if wide else (*row[:3], row[4])
            if kind == _LOAD and length:
                found.append((start, content[begin : begin + length]))
        return found

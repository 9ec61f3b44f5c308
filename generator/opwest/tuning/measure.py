# SPDX-License-Identifier: Apache-2.0
"""Measure the candidates of layers in QEMU: many in one image, each compared with the portable variant."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.base.timing import command
from opwest.base.timing import output as report_output
from opwest.compiler.ir.movement import GatherSlices, OneHot, ScatterSlices, UpdateSlice
from opwest.compiler.ir.operations import HybridConvolution, HybridProduct
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.output.emit import candidates, emit_program
from opwest.compiler.processors import class_of
from opwest.compiler.selection.costs import key_of
from opwest.objects.flash import IN_SOURCE, NONE, UNKNOWN, Flash
from opwest.runs import plugin
from opwest.tuning.image import Candidate, Image
from opwest.tuning.machines import Machine, machines
from opwest.tuning.results import MeasurementError, Measurements, Progress, Result, WrongResultError
from opwest.tuning.tolerance import limits_for
from opwest.zephyr.cmsis_nn import required_sources

HERE = Path(__file__).resolve().parent / "qemu"
FLAGS = ("-std=c11", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections", "-ffreestanding")
SPEED = ("-O2",)
"""The default of operators in applications (`optimize: speed`)."""
SECONDS = 600
REQUIRED = "docs/tuning.md lists the required programs"
DEFECT = (
    "this is a defect of opwest, or of the package that adds a variant; --verbose prints the command and its output"
)
TOO_LARGE = "a layer is too large for the memories of the machine, or its operator ends with a fault of the processor"
_FAULTS = r"\berror\b|undefined reference|cannot find|multiple definition|overlaps section|will not fit"
_INSTALLATION = r"cannot find -l|\.h: No such file|unrecognized|invalid .*(-m|architecture)"
"""What compilers and linkers print if a library, a header, or a core is missing in them."""


class EmulatorError(MeasurementError):
    """A program that is missing or failed. `hint`: what to do."""

    def __init__(self, message: str, hint: str = REQUIRED) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Measured:
    """A run of a candidate."""

    wrong: int
    """Wrong bytes in the outputs."""
    first: int
    """The place of the first of them."""
    guards: int
    """Changed bytes around inputs and outputs."""
    stack: int
    """Bytes of stack of a call, with its arguments."""
    instructions: int
    """Executed instructions, with those of interrupts."""
    cycles: int
    """Of the model in count.c, without wait states."""
    constants: int
    """Loads from constants and other content of the image."""
    flash_cycles: int
    """With the stalls of the flash: the model of flash.h."""
    code: int
    """Bytes of the operators, without constants."""


def run(
    candidates: Sequence[Candidate],
    machine: Machine,
    work: Path,
    flags: Sequence[str] = SPEED,
    sources: Sequence[Path] = (),
    options: Sequence[str] = (),
    flash: Flash = NONE,
    *,
    content_in_flash: bool = True,
) -> list[Measured]:
    """Return the measurements, in order, with more sources and options of QEMU. Raises EmulatorError.

    `flash`: the memory of the operators and of the content of the image; `content_in_flash`: whether of the second.
    """
    image = build(candidates, machine, work, flags, sources)
    output, counts = emulated(image, machine, built_plugin(work), work / "counts.txt", options, flash, content_in_flash)
    rows = [[int(word) for word in line.split()[1:]] for line in output.splitlines() if line.startswith("candidate ")]
    if len(rows) != len(candidates) or len(counts) != len(candidates):
        report_output(output)
        ended = f"{len(rows)} of {counted(len(candidates), 'candidate')} in an image ended"
        raise EmulatorError(f"{machine.emulator[0]} {' '.join(machine.emulator[1:])}: {ended}", TOO_LARGE)
    codes = code_of(len(candidates), machine, work)
    measured = []
    for (_, wrong, first, guards, stack), row, code in zip(rows, counts, codes, strict=True):
        total, _, _, _, _, cycles, constants, flash_cycles, *_ = row
        measured.append(Measured(wrong, first, guards, stack, total, cycles, constants, flash_cycles, code))
    return measured


def build(
    candidates: Sequence[Candidate], machine: Machine, work: Path, flags: Sequence[str], more: Sequence[Path] = ()
) -> Path:
    """Return the image in a directory for intermediate files."""
    work.mkdir(parents=True, exist_ok=True)
    made = Image(candidates)
    for name, content in made.files.items():
        (work / name).write_bytes(content)
    sources = [work / name for name in made.files if name.endswith(".c")]
    own = [HERE / machine.start, HERE / "measure.c", *more]
    words = [*machine.compiler, *FLAGS, *flags, "-I", str(HERE)]
    for source in (*sources, *own):
        execute([*words, "-c", str(source), "-o", str(work / f"{source.stem}.o")])
    execute([*words, "-c", "content.S", "-o", "content.o"], work)
    objects = [str(work / f"{unit.stem}.o") for unit in (*sources, *own)] + [str(work / "content.o")]
    starts = [f"-Wl,--defsym={name}={start:#x}" for name, start in machine.memories]
    image = work / "image.elf"
    # -T, not -Wl,-T: otherwise the specification of picolibc adds a linker script of its own.
    link = ["-nostartfiles", "-nostdlib", "-Wl,--no-warn-rwx-segments", "-T", str(HERE / "image.ld"), *starts]
    execute([*words, *link, *objects, *machine.libraries, "-o", str(image)])
    return image


def code_of(count: int, machine: Machine, work: Path) -> list[int]:
    """Return the bytes of code of each candidate."""
    return _code_sizes([work / f"operators_{number}.o" for number in range(count)], machine)


def _code_sizes(files: Sequence[Path], machine: Machine) -> list[int]:
    """Return the bytes of code and constants of objects or images."""
    rows = execute([_tool(machine, "size"), *map(str, files)]).splitlines()[1:]
    return [int(row.split()[0]) for row in rows]


def built_plugin(work: Path) -> Path:
    """Return the plugin for the installed QEMU. Raises EmulatorError if it loads no version of the plugin."""
    made = work / "count.so"
    if made.exists():
        return made
    try:
        return plugin.built_plugin(HERE / "count.c", made, "qemu-system-arm", "from=1,to=1", (HERE,))
    except plugin.PluginError as error:
        raise EmulatorError(str(error), error.hint) from error


def emulated(
    image: Path,
    machine: Machine,
    counter: Path,
    counts: Path,
    options: Sequence[str] = (),
    flash: Flash = NONE,
    content_in_flash: bool = True,
) -> tuple[str, list[list[int]]]:
    """Return the output of an image and the lines of the plugin."""
    symbols = _symbols(image, machine)
    places = f"from={symbols['count_from']:#x},to={symbols['count_to']:#x}"
    content, content_end = symbols["content"], symbols["content_end"]
    places += f",data={content:#x},data_end={content_end:#x}"
    memories = dict(machine.memories)
    ranges = [(memories["CODE"], memories["DATA"]), (content, content_end)]
    places += flash_options(flash, ranges if content_in_flash else ranges[:1])
    model = f"thumb={int(machine.is_thumb)}" + (f",{machine.cycles}=1" if machine.cycles else "")
    arguments = f"{counter},{places},{model},out={counts}"
    words = [*machine.emulator, "-nographic", "-monitor", "none", "-serial", "none"]
    words += ["-semihosting-config", "enable=on,target=native", "-kernel", str(image), "-plugin", arguments]
    output = execute([*words, *options])
    return output, [[int(word) for word in line.split()] for line in counts.read_text(encoding="utf-8").splitlines()]


def flash_options(flash: Flash, ranges: Sequence[tuple[int, int]]) -> str:
    """Return the options of the plugin for a flash in ranges of addresses; empty without wait states."""
    if flash.wait_states == 0:
        return ""
    options = "".join(f",flash_from={start:#x},flash_to={end:#x}" for start, end in ranges)
    options += f",wait_states={flash.wait_states},line={flash.line},icache={flash.cache},dcache={flash.data_cache}"
    return f"{options},prefetch={int(flash.prefetch)}"


def _symbols(image: Path, machine: Machine) -> dict[str, int]:
    rows = [line.split() for line in execute([_tool(machine, "nm"), str(image)]).splitlines()]
    return {row[-1]: int(row[0], 16) & ~1 for row in rows if len(row) == 3}


def execute(words: Sequence[str], folder: Path | None = None, given: str = "") -> str:
    """Return the output of a program. Raises EmulatorError."""
    with command(words):
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
                cwd=folder,
                input=given,
                timeout=SECONDS,
            )
        except FileNotFoundError as missing:
            raise EmulatorError(f"{words[0]} not found") from missing
        except subprocess.TimeoutExpired as late:
            raise EmulatorError(f"{words[0]}: no end within {SECONDS} s") from late
    if done.returncode:
        report_output(done.stdout + done.stderr)
        reason = first_fault(done.stderr or done.stdout) or f"exit code {done.returncode}"
        raise EmulatorError(f"{words[0]}: {reason}", REQUIRED if re.search(_INSTALLATION, reason) else DEFECT)
    return done.stdout + done.stderr


def first_fault(output: str) -> str:
    """Return the first error in the output of a compiler or linker, without directories; its first line without one."""
    lines = [re.sub(r"(?<![\w.<\"])/\S*/", "", line).strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if re.search(_FAULTS, line)), lines[0] if lines else "")


def tools_of(machine: Machine) -> str:
    """Return the programs with their versions, such as `qemu-system-arm 7.2.11, arm-none-eabi-gcc 12.2.1`."""
    return ", ".join(named(name) for name in (machine.emulator[0], machine.compiler[0]))


def named(program: str) -> str:
    """Return the name of a program and its version. Raises EmulatorError."""
    match = re.search(r"\d+\.\d+(\.\d+)?", execute([program, "--version"]).splitlines()[0].split("(")[0])
    return f"{Path(program).name} {match[0] if match else execute([program, '-dumpversion']).strip()}"


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
    machine = machines()[core]
    called = {name: None for operation in operations for name in functions_of(operation, class_of(core))}
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
        machine, compiler=(*machine.compiler, "-I", str(root / "Include")), libraries=(str(archive), *machine.libraries)
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
    return _code_sizes([image], machine)[0]


def _tool(machine: Machine, name: str) -> str:
    return machine.compiler[0].removesuffix("gcc") + name


MAX_BYTES = 8 << 20
"""The bytes of inputs, constants and outputs in an image."""
MAX_CANDIDATES = 150


@dataclass(frozen=True, eq=False)
class _Offer:
    operation: Operation
    variant: str
    program: Program

    @property
    def size(self) -> int:
        values = [*self.program.inputs, *self.program.outputs]
        weights = getattr(self.operation, "weights", np.zeros(0))
        return sum(value.size * np.dtype(value.dtype).itemsize for value in values) + 3 * weights.nbytes


def distinct(programs: Iterable[Program]) -> list[Operation]:
    """Return one operation of each geometry."""
    operations: dict[str, Operation] = {}
    for program in programs:
        for operation in program.operations:
            operations.setdefault(key_of(operation), operation)
    return list(operations.values())


def measure(
    operations: Sequence[Operation],
    core: str,
    work: Path,
    progress: Progress = lambda _: None,
    library: CmsisNn | None = None,
    flash: Flash = UNKNOWN,
) -> Measurements:
    """Run all candidates of operations; with `library`, also calls of CMSIS-NN. Raises MeasurementError.

    The code is that for the flash. The stalls of the results are those with the flash, which the source of the
    measurements contains if it is not UNKNOWN, or with UNKNOWN if the flash has no wait states.
    """
    results: list[Result] = []
    batches = list(_batches(operations, class_of(core), () if library is None else (LIBRARY,)))
    machine = machines()[core] if library is None else library.machine
    modelled = flash if flash.wait_states else UNKNOWN
    for number, batch in enumerate(batches):
        progress(f"image {number + 1} of {len(batches)}: {counted(len(batch), 'candidate')}")
        made = list(_candidates(batch, flash))
        measured = run(made, machine, work / f"{core}_{number}", flash=modelled)
        for offer, candidate in zip(batch, measured, strict=True):
            if candidate.wrong or candidate.guards:
                raise WrongResultError(offer.operation, offer.variant)
            stalls = candidate.flash_cycles - candidate.cycles
            results.append(Result(offer.operation, offer.variant, candidate.cycles, candidate.code, stalls))
    functions = {} if library is None else library.functions
    source = tools_of(machines()[core]) + (f"{IN_SOURCE}{flash.text}" if modelled != UNKNOWN else "")
    return Measurements(results, source, functions=functions)


def measure_in_qemu(
    operations: Sequence[Operation], progress: Progress, flash: Flash, core: str, library: CmsisNn | None = None
) -> Measurements:
    """Run all candidates of operations, with intermediate files in a temporary directory. Raises MeasurementError."""
    with tempfile.TemporaryDirectory(prefix="opwest-tune-") as work:
        return measure(operations, core, Path(work), progress, library, flash)


def _batches(operations: Sequence[Operation], processor: str, libraries: Sequence[str] = ()) -> Iterator[list[_Offer]]:
    """Yield the candidates of images: all of an operation in one, the portable one first."""
    batch: list[_Offer] = []
    for operation in operations:
        program = alone(operation)
        names = candidates(program.operations[0], processor, libraries)
        offers = [_Offer(operation, name, program) for name in names]
        is_full = len(batch) + len(offers) > MAX_CANDIDATES
        if batch and (is_full or sum(offer.size for offer in (*batch, *offers)) > MAX_BYTES):
            yield batch
            batch = []
        batch += offers
    if batch:
        yield batch


def alone(operation: Operation) -> Program:
    """Return a program of one operation, whose data are inputs and whose results are outputs."""

    def fresh(value: Value, role: str) -> Value:
        return Value(role, role, value.dtype, value.shape, value.quantization)

    def part(value: Value) -> Value:
        """Return the first channels of an output whose other channels are not written."""
        whole = Value("output", "output", value.dtype, (*value.shape[:-1], value.pitch))
        return dataclasses.replace(value, name="part", root=whole, offset=0)

    inputs = tuple(datum if datum.role == "constant" else fresh(datum, "input") for datum in operation.inputs)
    results = tuple(part(result) if result.pitch else fresh(result, "output") for result in operation.results)
    program = Program()
    program.inputs = [datum for datum in inputs if datum.role == "input"]
    program.outputs = [result.base for result in results]
    program.operations = [dataclasses.replace(operation, inputs=inputs, results=results)]
    return program


def _candidates(batch: Sequence[_Offer], flash: Flash) -> Iterator[Candidate]:
    first = 0
    for number, offer in enumerate(batch):
        is_reference = number == 0 or batch[number - 1].operation is not offer.operation
        first = number if is_reference else first
        prefix = f"c{number}_"
        emitted = emit_program(offer.program, "A candidate.", offer.variant, prefix, flash.loop_bytes)
        inputs = inputs_of(offer.program)
        limits = limits_for(offer.program, offer.variant, inputs)
        yield Candidate(offer.program, emitted, inputs, None, None if is_reference else first, limits)


def inputs_of(program: Program) -> list[Any]:
    """Return an array for each input of a program."""
    integers = (1, 1000)
    for operation in program.operations:
        if isinstance(operation, INDEXED):
            integers = (0, 1)
        elif isinstance(operation, HYBRID):
            integers = (1, 128)
    return [_data(value, integers) for value in program.inputs]


INDEXED = (GatherSlices, ScatterSlices, UpdateSlice, OneHot)
"""The operations with indices."""
HYBRID = (HybridConvolution, HybridProduct)
"""The operations with zero points of int8 data."""


def _data(value: Value, integers: tuple[int, int]) -> Any:
    """Return data as layers see it: values around the middle, some at the limits; `integers` are the limits of int32.

    Indices are inside of all data, and integer divisors are not 0: otherwise an operator returns an error at once.
    """
    random = np.random.default_rng(1)
    if value.dtype in ("int32", "int64"):
        first, last = integers
        return random.integers(first, last, value.shape).astype(value.dtype)
    if value.dtype == "float32":
        return random.standard_normal(value.shape).astype(np.float32)
    if value.dtype == "bool":
        return random.integers(0, 2, value.shape).astype(bool)
    limits = np.iinfo(value.dtype)
    spread = min(float(limits.max), 32767.0) / 2.5
    return np.clip(np.rint(random.normal(0, spread, value.shape)), limits.min, limits.max).astype(value.dtype)

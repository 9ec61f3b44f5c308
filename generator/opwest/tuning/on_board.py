# SPDX-License-Identifier: Apache-2.0
"""Measure the candidates of layers on a board by its cycle counter: as models of one image after the other.

The model of an image has an ordinary manifest: each layer is filled, computed by all its candidates, and compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from opwest import pipeline
from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.emission.function import Function, Parameter, c_type
from opwest.compiler.folder import npz, write_folder
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.names import free_name
from opwest.compiler.output.emit import Emitted, Step, candidates, emit_program, source_of
from opwest.compiler.output.manifest import CONSTANTS, Described, Implementation, manifest_text, name_values
from opwest.compiler.output.placement import placement
from opwest.compiler.processors import class_of
from opwest.compiler.selection.choose import constant_bytes
from opwest.compiler.selection.tuning_files import read_tables
from opwest.manifest import writer
from opwest.objects.flash import Flash
from opwest.objects.rewriting import code_size
from opwest.project.request import Request
from opwest.render.boards import board_file
from opwest.runs.arrays import Runs
from opwest.runs.build_folder import ignore_builds
from opwest.runs.connection import connected, need_smpclient, prepare, served_model
from opwest.runs.link import LinkError
from opwest.runs.options import ImageOptions
from opwest.runs.profile import Profile
from opwest.runs.progress import StageProgress
from opwest.runs.project_data import choose_model, required_record
from opwest.runs.session import run_model
from opwest.runs.west import Build, SpaceError, configuration_of
from opwest.tuning.measure import alone, named
from opwest.tuning.results import MeasurementError, Measurements, Progress, Result, WrongResultError
from opwest.tuning.tolerance import limits_for

_NEXT = """\
/* Around 0, with a standard deviation of about 12600: the sum of four numbers of xorshift. */
static int32_t next_value(uint32_t *state)
{
	int32_t sum = -131070;

	for (int32_t i = 0; i < 4; i++) {
		*state ^= *state << 13;
		*state ^= *state >> 17;
		*state ^= *state << 5;
		sum += (int32_t)(*state >> 16);
	}
	return sum / 3;
}
"""


def fill(value: Value, seed: int) -> Function:
    """Return an operator that writes a tensor: values around the middle of a small dtype, some at its limits.

    Equal seeds give equal content.
    """
    body = f"""\
	uint32_t state = {seed + 1}u;

	for (int32_t i = 0; i < {prod(value.shape)}; i++) {{
		const int32_t value = next_value(&state);
{_stored(value.dtype)}	}}
"""
    return Function(f"fill_{value.dtype}", (Parameter("data", value.dtype, "out"),), body, definitions=(_NEXT,))


def _stored(dtype: str) -> str:
    """Return the lines that store a value as an element."""
    kind = c_type(dtype)
    if dtype == "bool":
        return "\n\t\tdata[i] = value > 0;\n"
    if np.issubdtype(np.dtype(dtype), np.floating):
        return f"\n\t\tdata[i] = ({kind})value / ({kind})12600;\n"
    limits = np.iinfo(dtype)
    low, high = max(int(limits.min), -(1 << 30)), min(int(limits.max), 1 << 30)
    # int32 data can be zero points of int8 data.
    scaled = {8: "value / 256", 32: "value / 1024"}.get(limits.bits, "value")
    return f"""\
		const int32_t scaled = {scaled};

		data[i] = ({kind})(scaled < {low} ? {low} : scaled > {high} ? {high} : scaled);
"""


GREATEST = 3.5
"""A number above the magnitudes of float data that `fill` writes."""


def compare(value: Value, limit: float | None = None) -> Function:
    """Return an operator that counts the bytes in which two tensors like a value differ.

    `limit`: float32 elements are counted instead, those that differ by more.
    """
    size = prod(value.shape) * np.dtype(value.dtype).itemsize
    if limit is not None:
        body = f"""\
	uint32_t count = 0;

	for (int32_t i = 0; i < {prod(value.shape)}; i++) {{
		const float distance = wanted[i] < found[i] ? found[i] - wanted[i] : wanted[i] - found[i];

		count += !(distance <= {limit.hex()}f);
	}}
	differences[0] = count;
"""
    else:
        body = f"""\
	const uint8_t *left = (const uint8_t *)wanted;
	const uint8_t *right = (const uint8_t *)found;
	uint32_t count = 0;

	for (int32_t i = 0; i < {size}; i++) {{
		count += left[i] != right[i];
	}}
	differences[0] = count;
"""
    parameters = (
        Parameter("wanted", value.dtype),
        Parameter("found", value.dtype),
        Parameter("differences", "uint32", "out"),
    )
    base = f"compare_{value.dtype}" if limit is None else f"compare_{value.dtype}_within"
    return Function(base, parameters, body)


MODEL = "candidates"
DIFFERENCES = "differences"
"""The output: by comparison, the bytes in which a candidate differs from the portable one of its layer."""
_STEPS = "steps.c"
_MAIN = "main.c"


@dataclass(frozen=True, eq=False)
class Piece:
    """A layer with some of its candidates, which run beside the portable one."""

    operation: Operation
    variants: tuple[str, ...]
    """Without `portable`."""

    def constants(self, processor: str) -> int:
        """Return the bytes of the constants of all candidates for a class of processors."""
        calls = candidates(self.operation, processor)
        return sum(constant_bytes(calls[name]) for name in ("portable", *self.variants))


@dataclass(frozen=True)
class Run:
    """A candidate in the model."""

    piece: int
    variant: str
    step: int
    source: str
    """The C file that contains only its operator."""
    comparisons: tuple[int, ...]
    """Elements of the output."""


@dataclass(frozen=True, eq=False)
class CandidatesModel:
    """The content of a directory with a manifest.yaml."""

    files: Mapping[str, bytes]
    runs: Sequence[Run]
    steps: int
    """The number of steps."""


def candidates_model(pieces: Sequence[Piece], kconfig: Mapping[str, str], loop_bytes: int | None) -> CandidatesModel:
    """Return the model of candidates. `kconfig`: options of the application."""
    return _Maker(loop_bytes).made(pieces, kconfig)


class _Maker:
    """The steps of a model and their C files."""

    def __init__(self, loop_bytes: int | None) -> None:
        self.loop_bytes = loop_bytes
        self.steps: list[Step] = []
        self.runs: list[Run] = []
        self.sources: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self.differences = Value(DIFFERENCES, "output", "uint32", ())
        self.compared = 0
        self._symbols: dict[Function, str] = {}
        self._taken: set[str] = set()
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}

    def made(self, pieces: Sequence[Piece], kconfig: Mapping[str, str]) -> CandidatesModel:
        """Return the model."""
        for number, piece in enumerate(pieces):
            self._layer(number, piece)
        self.differences.shape = (self.compared,)
        heading = "The data of layers, and the comparison of results, written by `opwest tune`."
        self.sources[_STEPS] = source_of(self._symbols, heading)
        emitted = Emitted(tuple(self.steps), self.sources[_STEPS], ())
        program = Program(outputs=[self.differences])
        base = Implementation(emitted, name_values(program, emitted), sources=tuple(self.sources))
        origin = "Candidates of the layers of a model, written by `opwest tune`."
        none = placement((), ())
        text = manifest_text(Described(MODEL, origin, (), program, base, (), {}, None, none, True))
        options = list(writer.kconfig(kconfig))[1:]  # without the key `application`
        text += "\n".join(["application:", f"  sources: [{_MAIN}]", *options, ""])
        constants = {name: value.content for value, name in base.names.items() if value.role == "constant"}
        self.files.update({name: source.encode() for name, source in self.sources.items()})
        self.files.update({CONSTANTS: npz(constants)} if constants else {})
        # The application itself opens no model: the image has one workspace, that of the service.
        main = "/* SPDX-License-Identifier: Apache-2.0 */\n\nint main(void)\n{\n\treturn 0;\n}\n"
        self.files.update({_MAIN: main.encode(), "manifest.yaml": text.encode()})
        return CandidatesModel(self.files, self.runs, len(self.steps))

    def _layer(self, number: int, piece: Piece) -> None:
        program = alone(piece.operation)
        values = {data: _fresh(data) for data in program.inputs}
        for seed, value in enumerate(values.values()):
            self._own(fill(value, seed), (value,))
        wanted: list[Value] = []
        for variant in ("portable", *piece.variants):
            results = {output: _fresh(output) for output in program.outputs}
            wanted = wanted or list(results.values())
            step, source = self._candidate(program, variant, {**values, **results})
            first = self.compared
            data = [np.full(value.shape, GREATEST, value.dtype) for value in program.inputs]
            bounds = limits_for(program, variant, data)
            limit = None if bounds is None else float(max(bound.max() for bound in bounds))
            for left, right in zip(wanted, results.values(), strict=True):
                place = Value(DIFFERENCES, "intermediate", "uint32", (1,), root=self.differences, offset=self.compared)
                self._own(compare(left, limit), (left, right, place))
                self.compared += 1
            self.runs.append(Run(number, variant, step, source, tuple(range(first, self.compared))))

    def _candidate(self, program: Program, variant: str, values: Mapping[Value, Value]) -> tuple[int, str]:
        """Add a candidate; return its step and the name of its C file."""
        name = f"candidate_{len(self.runs)}"
        emitted = emit_program(program, "A candidate.", variant, f"{name}_", self.loop_bytes)
        (step,) = emitted.steps
        arguments = tuple(
            values[argument] if argument in values else self._constant(argument) for argument in step.arguments
        )
        self.steps.append(Step(step.function, step.symbol, arguments, step.label, step.variant, step.scalars))
        if emitted.source:
            self.sources[f"{name}.c"] = emitted.source
        if step.function.user is not None:
            self.files.update(step.function.user.files)
        return len(self.steps) - 1, f"{name}.c"

    def _own(self, function: Function, arguments: tuple[Value, ...]) -> None:
        """Add a step of an operator of this module."""
        if function not in self._symbols:
            self._symbols[function] = free_name(function.base, self._taken)
        self.steps.append(Step(function, self._symbols[function], arguments, "", "portable"))

    def _constant(self, value: Value) -> Value:
        """Return the constant for equal arrays of all candidates."""
        array: Any = np.ascontiguousarray(value.content)
        return self._constants.setdefault((value.dtype, value.shape, array.tobytes()), value)


def _fresh(value: Value) -> Value:
    return Value(value.name, "intermediate", value.dtype, value.shape)


MAX_CONSTANTS = 128 << 10
"""The bytes of constants in an image, unless one layer has more."""
MAX_CYCLES = 100_000_000
"""The expected cycles of a run of an image, unless one layer has more: the answer to its request ends in time."""
MAX_CANDIDATES = 60
"""The number of candidates in an image: each takes about 100 bytes of RAM for its measurements."""
_KCONFIG = {"mve": {"CONFIG_FPU": "y"}}
"""By class of processors: options of the application. GCC has MVE only with the registers of the FPU."""


@dataclass(frozen=True)
class BoardRun:
    """Measurements of a model of candidates."""

    cycles: Mapping[int, int]
    """By step: the least of several runs."""
    differences: Sequence[int]
    """The output."""
    code: Mapping[str, int]
    """By C file: bytes of its object, without constants."""
    source: str
    """The board with its counter, and the compiler."""


class TooLargeError(Exception):
    """An image that does not fit in the memories of the board."""


Execute = Callable[[CandidatesModel], BoardRun]
"""Build the image of a model and run it. Raises TooLargeError or OpwestError."""


def measure_on_board(
    operations: Sequence[Operation], progress: Progress, flash: Flash, core: str, execute: Execute
) -> Measurements:
    """Run all candidates of operations. Images that do not fit are split; a layer that does not fit is left out.

    `flash`: that of the import, for which its operators are written; the cycles are those of the board's own.
    Raises MeasurementError, also for a wrong result.
    """
    pending = list(batches(operations, core))
    fastest: dict[tuple[Operation, str], Result] = {}
    left_out: dict[Operation, str] = {}
    source, done = "", 0
    while pending:
        batch = pending.pop(0)
        if all(piece.operation in left_out for piece in batch):
            continue
        count = sum(1 + len(piece.variants) for piece in batch)
        done += 1
        progress(f"image {done} of {done + len(pending)}: {counted(count, 'candidate')}")
        model = candidates_model(batch, _KCONFIG.get(class_of(core), {}), flash.loop_bytes)
        try:
            run = execute(model)
        except TooLargeError as error:
            pieces = halves(batch)
            progress("the image does not fit on the board" + (": it is split" if pieces else ""))
            if not pieces:
                left_out[batch[0].operation] = str(error)
            pending[:0] = pieces
            continue
        source = run.source
        for result in _results(batch, model, run):
            before = fastest.get((result.operation, result.variant))
            if before is None or result.cycles < before.cycles:
                fastest[result.operation, result.variant] = result
    # The variants of a layer are compared with each other: all of one source.
    results = [entry for entry in fastest.values() if entry.operation not in left_out]
    if not results:
        raise MeasurementError("\n".join(["no layer fits on the board", *dict.fromkeys(left_out.values())]))
    return Measurements(results, source, list(left_out))


def _results(batch: Sequence[Piece], model: CandidatesModel, run: BoardRun) -> Iterator[Result]:
    """Yield the measured candidates of an image. Raises MeasurementError for a wrong result."""
    for candidate in model.runs:
        operation = batch[candidate.piece].operation
        if any(run.differences[place] for place in candidate.comparisons):
            raise WrongResultError(operation, candidate.variant)
        yield Result(operation, candidate.variant, run.cycles[candidate.step], run.code.get(candidate.source, 0))
    if not any(run.cycles[candidate.step] for candidate in model.runs):
        raise MeasurementError(f"the counter does not advance: 0 cycles for every candidate ({run.source})")


def batches(operations: Sequence[Operation], core: str) -> Iterator[list[Piece]]:
    """Yield the layers of the images."""
    table = read_tables().of(core)
    batch: list[Piece] = []
    sizes, times, count = 0, 0.0, 0
    for operation in operations:
        names = [name for name in candidates(operation, class_of(core)) if name != "portable"]
        piece = Piece(operation, tuple(names))
        size = piece.constants(class_of(core))
        time = sum(table.cost(operation, name).cycles for name in ("portable", *names))
        is_full = sizes + size > MAX_CONSTANTS or times + time > MAX_CYCLES
        if batch and (is_full or count + 1 + len(names) > MAX_CANDIDATES):
            yield batch
            batch, sizes, times, count = [], 0, 0.0, 0
        batch.append(piece)
        sizes, times, count = sizes + size, times + time, count + 1 + len(names)
    if batch:
        yield batch


def halves(batch: Sequence[Piece]) -> list[list[Piece]]:
    """Return two smaller images with the same candidates; none if the image cannot be smaller."""
    if len(batch) > 1:
        middle = len(batch) // 2
        return [list(batch[:middle]), list(batch[middle:])]
    (piece,) = batch
    middle = len(piece.variants) // 2
    if not middle:
        return []
    return [[Piece(piece.operation, some)] for some in (piece.variants[:middle], piece.variants[middle:])]


RUNS = 5
"""The runs of an image: the least cycles of each step count."""
_COUNTERS = {
    "CONFIG_OPWEST_PROFILE_CLOCK_KERNEL": "the kernel's cycle counter",
    "CONFIG_OPWEST_PROFILE_CLOCK_TIMING": "cycle counter",
}


class BoardRunner:
    """Runs one image after the other; only the first build compiles Zephyr."""

    def __init__(self, folder: Path, options: ImageOptions, progress: StageProgress) -> None:
        """`folder`: the import; `options`: the board and the connection to it."""
        self._folder = folder / "build" / f"tune_{board_file(options.board)}"
        self._progress = progress
        self._options = replace(options, directory=self._folder / "app", build_dir=self._folder / "image", profile=True)

    def __call__(self, model: CandidatesModel) -> BoardRun:
        """Run a model of candidates. Raises TooLargeError or OpwestError."""
        self._check_ram(self._generate(model.files))
        try:
            need_smpclient()
            return self._run(model)
        except SpaceError as error:
            raise TooLargeError(error.causes[0].message if error.causes else error.message) from error
        except LinkError as error:
            raise error.for_user from error
        finally:
            self._progress.end()

    def _generate(self, files: Mapping[str, bytes]) -> int:
        """Write the sources of the application; return the bytes of its planned memory. Raises OpwestError."""
        ignore_builds(self._folder.parent)
        source = self._folder / MODEL
        for folder in (source, self._options.directory):
            if folder.exists():
                shutil.rmtree(folder)
        write_folder(source, files)
        project = pipeline.run(Request((source / "manifest.yaml",), self._options.directory), Diagnostics())
        return sum(pool.size for pool in project.examinations[0].plan.pools.values())

    def _check_ram(self, needed: int) -> None:
        """Raise TooLargeError, without a build, for more memory than an earlier configuration has."""
        size = configuration_of(self._folder / "image").get("CONFIG_SRAM_SIZE", "0")
        limit = int(size) << 10 if size.isdecimal() else 0
        if limit and needed > limit:
            raise TooLargeError(f"the data of the layers need {needed} bytes, the board has {limit} bytes of RAM")

    def _run(self, model: CandidatesModel) -> BoardRun:
        record = required_record(self._options.directory)
        build = prepare(self._options, record, self._progress, Diagnostics())
        with connected(self._options, build, self._progress) as link:
            served = served_model(link, choose_model(MODEL, self._options.directory, record), None)
            done = run_model(link, served, Runs({}, RUNS), progress=self._progress, profile=True)
        assert done.profile is not None
        cycles = {
            measure.step: measure.min
            for measure in done.profile.measures
            if measure.kind == "step" and measure.step is not None
        }
        if len(cycles) != model.steps:
            message = f"the image on '{link.device}' measured {counted(len(cycles), 'step')}, expected {model.steps}"
            raise LinkError(message, "check the connection for lost characters")
        differences = [int(output) for output in done.outputs[DIFFERENCES]]
        return BoardRun(cycles, differences, dict(self._code(build, model)), self._source(build, done.profile))

    def _code(self, build: Build, model: CandidatesModel) -> Iterator[tuple[str, int]]:
        """Yield the C files of candidates with the bytes of their objects."""
        names = {run.source for run in model.runs}
        for path in build.folder.rglob("candidate_*.c.obj"):
            name = path.name.removesuffix(".obj")
            if name in names:  # others are from an earlier image
                yield name, code_size(path.read_bytes())

    def _source(self, build: Build, profile: Profile) -> str:
        """Return the board with its counter, and the compiler."""
        configuration = build.configuration()
        counter = next((text for name, text in _COUNTERS.items() if configuration.get(name) == "y"), "clock")
        speed = f" at {profile.frequency} Hz" if profile.frequency else ""
        # Such a board can be real, but its counter may then be that of the emulator.
        speed += ", configured for QEMU" if configuration.get("CONFIG_QEMU_TARGET") == "y" else ""
        compiler = build.compiler()
        words = [build.board, f"{counter}{speed}", *([] if compiler is None else [named(compiler)])]
        return ", ".join(words)

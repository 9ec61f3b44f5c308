# SPDX-License-Identifier: Apache-2.0
"""Candidates of layers as a model with an ordinary manifest: each layer is filled, computed by all, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Function, Parameter, c_type
from opwest.compiler.folder import npz
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.names import free_name
from opwest.compiler.output.emit import Emitted, Step, candidates, emit_program, source_of
from opwest.compiler.output.manifest import CONSTANTS, Described, Implementation, manifest_text, name_values
from opwest.compiler.output.placement import placement
from opwest.compiler.selection.choose import constant_bytes
from opwest.manifest import writer
from opwest.tuning.measure import alone

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
    scaled = "value / 256" if limits.bits == 8 else "value"
    return f"""\
		const int32_t scaled = {scaled};

		data[i] = ({kind})(scaled < {low} ? {low} : scaled > {high} ? {high} : scaled);
"""


def compare(value: Value) -> Function:
    """Return an operator that counts the bytes in which two tensors like a value differ."""
    size = prod(value.shape) * np.dtype(value.dtype).itemsize
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
    return Function(f"compare_{value.dtype}", parameters, body)


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
        found = candidates(self.operation, processor)
        return sum(constant_bytes(found[name]) for name in ("portable", *self.variants))


@dataclass(frozen=True)
class Run:
    """A candidate in the model."""

    piece: int
    variant: str
    step: int
    source: str
    """The C file with nothing but its operator."""
    comparisons: tuple[int, ...]
    """Elements of the output."""


@dataclass(frozen=True, eq=False)
class CandidatesModel:
    """The content of a directory with a manifest.yaml."""

    files: Mapping[str, bytes]
    runs: Sequence[Run]
    steps: int
    """The number of steps."""


def candidates_model(pieces: Sequence[Piece], kconfig: Mapping[str, str]) -> CandidatesModel:
    """Return the model of candidates. `kconfig`: options of the application."""
    return _Maker().made(pieces, kconfig)


class _Maker:
    """The steps of a model and their C files."""

    def __init__(self) -> None:
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
        text += "\n".join(["application:", f"  sources: [{_MAIN}]", *_kconfig(kconfig), ""])
        constants = {name: value.content for value, name in base.names.items() if value.role == "constant"}
        self.files.update({name: source.encode() for name, source in self.sources.items()})
        self.files.update({CONSTANTS: npz(constants)} if constants else {})
        # The application itself opens no model: the image has one workspace, that of the service.
        main = "/* SPDX-License-Identifier: Apache-2.0 */\n\nint main(void)\n{\n\treturn 0;\n}\n"
        self.files.update({_MAIN: main.encode(), "manifest.yaml": text.encode()})
        return CandidatesModel(self.files, self.runs, len(self.steps))

    def _layer(self, number: int, piece: Piece) -> None:
        program = alone(piece.operation)
        values = {one: _fresh(one) for one in program.inputs}
        for seed, value in enumerate(values.values()):
            self._own(fill(value, seed), (value,))
        wanted: list[Value] = []
        for variant in ("portable", *piece.variants):
            results = {output: _fresh(output) for output in program.outputs}
            wanted = wanted or list(results.values())
            step, source = self._candidate(program, variant, {**values, **results})
            first = self.compared
            for left, right in zip(wanted, results.values(), strict=True):
                place = Value(DIFFERENCES, "intermediate", "uint32", (1,), root=self.differences, offset=self.compared)
                self._own(compare(left), (left, right, place))
                self.compared += 1
            self.runs.append(Run(number, variant, step, source, tuple(range(first, self.compared))))

    def _candidate(self, program: Program, variant: str, values: Mapping[Value, Value]) -> tuple[int, str]:
        """Add a candidate; return its step and the name of its C file."""
        name = f"candidate_{len(self.runs)}"
        emitted = emit_program(program, "A candidate.", variant, prefix=f"{name}_")
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


def _kconfig(options: Mapping[str, str]) -> Iterator[str]:
    lines = list(writer.kconfig(options))
    return iter(lines[1:])  # without the key `application`

# SPDX-License-Identifier: Apache-2.0
"""Resolve the steps of `run`: bind every argument, check that tensors are written before they are read."""

from __future__ import annotations

from typing import Any

from opwest.diagnostics import Location, nearest
from opwest.manifest.located import Mapping
from opwest.model.context import Context, located_items
from opwest.model.dtypes import TensorType
from opwest.model.identifiers import check_name
from opwest.model.model import Argument, Binding, Operator, Step
from opwest.model.scalars import bind_number
from opwest.model.step_device import step_device
from opwest.model.step_names import Names, check_roles, first_writers, named_by_unknown_operators
from opwest.records import dataclass


@dataclass
class Intermediate:
    """An intermediate tensor, as derived from the steps."""

    name: str
    location: Location
    type: TensorType
    typed: bool
    """Whether the type is known; false if the argument of the first writer has no shape (reported)."""
    align: int = 1
    read: bool = False


@dataclass(frozen=True)
class Scratch:
    """Scratch memory of an operator in one step."""

    name: str
    argument: Argument
    device: str | None
    location: Location


@dataclass(frozen=True)
class Flow:
    """The result of resolving the steps."""

    steps: list[Step]
    intermediates: list[Intermediate]
    scratch: list[Scratch]
    alignments: dict[str, int]
    """The alignment in bytes that the operators require, by tensor name."""
    agents: dict[str, set[str]]
    """The agents that access each tensor: names of devices, and "cpu"."""


def resolve_steps(context: Context, names: Names) -> Flow:
    """Return the steps with their bindings, and the properties of tensors that follow from them."""
    return _Dataflow(context, names).resolve()


class _Dataflow:
    def __init__(self, context: Context, names: Names) -> None:
        self.context = context
        self.faults = context.faults
        self.names = names
        self.constants = set(names.declared_constants)
        self.tensors: dict[str, Intermediate] = {}
        self.written: set[str] = set()
        self.used: set[str] = set()
        self.alignments: dict[str, int] = {}
        self.agents: dict[str, set[str]] = {}
        self.run = context.section("run")
        self.declared = context.section("tensors", self.run)
        self.writers = first_writers(context, names.operators)
        self.uncertain = named_by_unknown_operators(context, names.operators)
        self.scratch: list[Scratch] = []
        self.settled = check_roles(context)
        """Names for which further errors are suppressed: declared in two roles, or tensors of unknown operators."""
        self.incomplete = False
        """Whether a step could not be resolved: a tensor without a writer is then not reported."""

    def resolve(self) -> Flow:
        """Walk the steps in order."""
        steps = []
        for index, (entry, at) in enumerate(located_items(self.context.items("steps", self.run))):
            step = self._step(index, entry, at)
            if step is not None:
                steps.append(step)
        self._check_unused()
        return Flow(steps, list(self.tensors.values()), self.scratch, self.alignments, self.agents)

    def _step(self, index: int, entry: Mapping, at: Location) -> Step | None:
        operator = self.names.operators.get(entry["call"])
        if operator is None:
            self.faults.error(
                f"undefined operator {entry['call']!r}",
                entry.value_location("call"),
                hint=nearest(entry["call"], self.names.operators),
            )
            return None
        device = step_device(self.faults, self.names.devices, entry, operator, at)
        if device is not None:
            self.used.add(device)
        given = located_items(entry["args"])
        expected = operator.step_args
        if len(given) != len(expected):
            listed = ", ".join(a.name for a in expected) or "none"
            scratch = [a.name for a in operator.passed if a.direction == "scratch"]
            hint = f"omit scratch arguments ({', '.join(scratch)}): opwest plans their memory" if scratch else None
            count = f"{len(expected)} argument{'s' * (len(expected) != 1)}"
            self.faults.error(
                f"operator {operator.name!r} takes {count}, the step passes {len(given)}",
                entry.value_location("args"),
                expected=listed,
                hint=hint,
            )
            self.incomplete = True
            return None
        self._check_aliases(operator, given)
        bound: dict[str, Binding | None] = {}
        # Bind reads before writes, in any order of the arguments.
        for reading in (True, False):
            for argument, (value, place) in zip(expected, given, strict=True):
                if (argument.direction != "out") == reading:
                    bound[argument.name] = self._bind(index, argument, value, place)
                    if not argument.scalar and isinstance(value, str):
                        self.agents.setdefault(value, set()).add(device or "cpu")
        if None in bound.values():
            return None
        for argument in operator.args:
            if argument.direction == "scratch":
                name = f"{argument.name} of step {index}"
                self.scratch.append(Scratch(name, argument, device, at))
                bound[argument.name] = Binding("buffer", name)
        bindings = tuple(b for a in operator.args if (b := bound[a.name]) is not None)
        return Step(index, operator, entry.get("device"), bindings, at)

    def _check_aliases(self, operator: Operator, given: list[tuple[Any, Location]]) -> None:
        """Report a tensor passed twice to a step that writes it: operators require separate memory."""
        seen: dict[str, Argument] = {}
        for argument, (value, place) in zip(operator.step_args, given, strict=True):
            if not isinstance(value, str) or value in self.settled:
                continue
            other = seen.setdefault(value, argument)
            if other is not argument and (argument.is_written or other.is_written):
                self.faults.error(
                    f"tensor {value!r} is passed for {other.name!r} and {argument.name!r} of a step that writes it",
                    place,
                    expected="separate tensors",
                    hint="for an operator that works in place, declare one argument with direction: inout",
                )

    def _bind(self, index: int, argument: Argument, value: Any, place: Location) -> Binding | None:
        if argument.scalar:
            return bind_number(self.faults, argument, value, place)
        if not isinstance(value, str):
            self.faults.error(
                f"argument {argument.name!r} takes a tensor, the step passes {value!r}",
                place,
                expected="the name of a tensor",
                hint="to pass a number, declare the argument with scalar: true",
            )
            return None
        self.used.add(value)
        if value in self.settled:
            self.written.add(value)
            return None
        self.alignments[value] = max(self.alignments.get(value, 1), argument.align)
        if value in self.names.inputs:
            return self._bind_input(argument, value, place)
        if value in self.constants:
            return self._bind_constant(argument, value, place)
        if value in self.names.outputs:
            return self._bind_output(index, argument, value, place)
        return self._bind_intermediate(index, argument, value, place)

    def _bind_input(self, argument: Argument, name: str, place: Location) -> Binding:
        if argument.is_written:
            self.faults.error(
                f"input {name!r} is written by this step",
                place,
                expected="a tensor that is not an input",
                hint="inputs are read-only: write another tensor",
            )
        self._agree(argument, self.names.inputs[name].type, f"input {name!r}", place)
        return Binding("input", name)

    def _bind_constant(self, argument: Argument, name: str, place: Location) -> Binding:
        if argument.is_written:
            self.faults.error(
                f"constant {name!r} is written by this step", place, expected="a tensor that is not a constant"
            )
        if name in self.names.constants:
            self._agree(argument, self.names.constants[name].type, f"constant {name!r}", place)
        return Binding("constant", name)

    def _bind_output(self, index: int, argument: Argument, name: str, place: Location) -> Binding:
        if argument.is_read:
            self._check_written(index, name, f"output {name!r}", place)
        self.written.add(name)  # an output that is only read was reported
        self._agree(argument, self.names.outputs[name].type, f"output {name!r}", place)
        return Binding("output", name)

    def _bind_intermediate(self, index: int, argument: Argument, name: str, place: Location) -> Binding | None:
        if argument.is_read:
            self._check_written(index, name, f"tensor {name!r}", place)
            if name not in self.writers:
                self.settled.add(name)
                return None
            self.written.add(name)  # report an unwritten tensor once
        tensor = self.tensors.get(name)
        if tensor is None:
            tensor = self.tensors[name] = self._introduce(argument, name, place)
        elif not tensor.typed:
            tensor.type, tensor.typed = argument.type, argument.location not in self.context.untyped
        else:
            self._agree(argument, tensor.type, f"tensor {name!r}", place)
        if argument.is_written:
            self.written.add(name)
        tensor.read = tensor.read or argument.is_read
        tensor.align = max(tensor.align, argument.align)
        return Binding("buffer", name)

    def _introduce(self, argument: Argument, name: str, place: Location) -> Intermediate:
        """Return a new intermediate tensor with the type of its first writer; report a declaration that differs."""
        check_name("tensor", name, place, self.faults)
        tensor = Intermediate(name, place, argument.type, argument.location not in self.context.untyped)
        entry = self.declared.get(name, {})
        tensor.align = max(tensor.align, entry.get("align", 1))
        for key, actual in (("dtype", argument.type.dtype.name), ("shape", list(argument.type.shape))):
            if key in entry and entry[key] != actual and tensor.typed:
                self.faults.error(
                    f"tensor {name!r} is declared with {key} {entry[key]}, "
                    f"but argument {argument.name!r} of the step that writes it is {argument.type}",
                    entry.value_location(key),
                    expected=f"{key}: {actual}",
                )
        return tensor

    def _check_written(self, index: int, name: str, what: str, place: Location) -> None:
        """Report a tensor that this step reads and no earlier step writes."""
        if name in self.written or name in self.uncertain:
            return
        if name in self.writers:
            writer = self.writers[name]
            by = "first by this step" if writer == index else f"by the later step {writer}"
            self.faults.error(
                f"{what} is read by step {index} before it is written {by}",
                place,
                hint="steps run in the listed order",
            )
        elif not self.incomplete:
            known = {*self.names.inputs, *self.constants, *self.written}
            expected = "an input, a constant, or a tensor that an earlier step writes"
            self.faults.error(
                f"{what} is read but never written",
                place,
                expected=expected,
                hint=nearest(name, known),
            )

    def _agree(self, argument: Argument, type_: TensorType, what: str, place: Location) -> None:
        if argument.type == type_ or argument.location in self.context.untyped:
            return
        differs = "shape" if argument.type.dtype == type_.dtype else "dtype"
        hint = None
        if argument.type.size == type_.size and differs == "shape":
            hint = "the sizes are equal: declare the same shape in both places"
        self.faults.error(
            f"{differs} mismatch: {what} is {type_}, argument {argument.name!r} takes {argument.type}",
            place,
            expected=str(argument.type),
            hint=hint,
        )

    def _check_unused(self) -> None:
        """Report outputs that no step writes; warn about unused inputs, constants and tensors."""
        for name, output in self.names.outputs.items():
            if not self.incomplete and name not in {*self.written, *self.uncertain}:
                self.faults.error(
                    f"output {name!r} is never written",
                    output.location,
                    expected="a step that writes it",
                )
        for name in self.declared:
            if not self.incomplete and name not in {
                *self.tensors,
                *self.names.inputs,
                *self.names.outputs,
                *self.uncertain,
                *self.settled,
            }:
                at = self.declared.key_location(name)
                self.faults.error(f"unused tensor {name!r}", at, hint=nearest(name, self.tensors))
        if self.faults.has_errors:
            return  # after an error, "unused" may be a consequence of it
        for role, named in (
            ("input", self.names.inputs),
            ("constant", self.names.constants),
            ("device", self.names.devices),
        ):
            for name, item in named.items():
                if name not in self.used and name not in self.uncertain:
                    self.faults.warning(f"unused {role} {name!r}", item.location)
        for name, tensor in self.tensors.items():
            if not tensor.read and name in self.written and name not in self.uncertain:
                self.faults.warning(f"tensor {name!r} is written but never read", tensor.location)

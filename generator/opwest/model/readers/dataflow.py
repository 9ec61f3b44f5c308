# SPDX-License-Identifier: Apache-2.0
"""Resolve the steps of `run`: bind every argument, check that tensors are written before they are read."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Literal

from opwest.base.diagnostics import Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.checks.agreement import check_agreement
from opwest.model.checks.memory import Coverage
from opwest.model.inputs.context import Context, located_items
from opwest.model.inputs.files import Files
from opwest.model.readers.constants import bind_number
from opwest.model.readers.programs import step_device
from opwest.model.readers.steps import (
    Names,
    check_roles,
    first_writers,
    has_too_many_steps,
    listed_steps,
    named_by_unknown_operators,
    slice_names,
)
from opwest.model.readers.views import declared_types, is_arena
from opwest.model.types.c_names import check_name
from opwest.model.types.dtypes import TensorType
from opwest.model.types.model import Argument, Binding, Operator, State, Step


@dataclass
class Intermediate:
    """An intermediate tensor, as derived from the steps."""

    name: str
    location: Location
    type: TensorType
    typed: bool
    """Whether the type is known; false if the argument of the first writer has no shape (reported)."""
    align: int = 1


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
    states: list[State] = field(default_factory=list)
    views: set[str] = field(default_factory=set)
    """The views that steps use."""


class Dataflow:
    """Binds the arguments of steps in their order; records which tensors are written, read and required."""

    def __init__(self, context: Context, names: Names, files: Files) -> None:
        self.context = context
        self.files = files
        self.operator: Operator
        """That of the step that is bound."""
        self.faults = context.faults
        self.names = names
        self.constants = set(names.declared_constants)
        self.tensors: dict[str, Intermediate] = {}
        self.written = Coverage()
        for view in (names.views[name] for name in names.inputs if name in names.views):
            self.written.add(view.root, view.offset, view.end)
        self.read: set[str] = set()
        """The intermediate tensors and states that steps read."""
        self.used: set[str] = set()
        self.alignments: dict[str, int] = {}
        self.declared = context.section("tensors", context.run)
        self.declared_types = declared_types(context)
        self.writers = first_writers(context, names)
        # Names for which further errors are suppressed: tensors of unknown operators, or declared in two roles.
        self.uncertain = named_by_unknown_operators(context, names)
        self.settled = check_roles(context)
        sections = (self.declared, *(context.section(key, self.context.run) for key in ("inputs", "outputs")))
        parts = [
            (name, entry["view_of"]) for section in sections for name, entry in section.items() if "view_of" in entry
        ]
        for name, tensor in (*parts, *slice_names(context)):
            if name not in names.views:  # reported
                self.settled.add(name)
                self.uncertain |= {name, names.root(tensor)}
        cut = has_too_many_steps(context)
        self.incomplete = cut or context.incomplete
        """Whether a step could not be resolved: a tensor without a writer is then not reported."""
        if cut:
            given = [value for step, _ in listed_steps(context) for value in step["args"] if isinstance(value, str)]
            self.uncertain |= {names.root(value) for value in given}
        self.agents: dict[str, set[str]] = {}
        self.scratch: list[Scratch] = []

    def resolve(self) -> Flow:
        """Return the steps with their bindings, and the properties of tensors that follow from them."""
        steps = []
        for index, (entry, at) in enumerate(listed_steps(self.context)):
            step = self._step(index, entry, at)
            if step is not None:
                steps.append(step)
        states = [self._with_next(state) for state in self.names.states.values()]
        self._check_unused()
        used = {name for name in self.used if name in self.names.views}
        return Flow(steps, list(self.tensors.values()), self.scratch, self.alignments, self.agents, states, used)

    def _step(self, index: int, entry: Mapping, at: Location) -> Step | None:
        operator = self.names.operators.get(entry["call"])
        if operator is None:
            self.faults.error(
                f"undefined operator {entry['call']!r}",
                entry.value_location("call"),
                hint=nearest(entry["call"], self.names.operators),
            )
            return None
        device, program = step_device(self.faults, self.names.devices, self.names.programs, entry, operator, at)
        if device is not None:
            self.used.add(device)
        given = located_items(entry["args"])
        self.operator = operator
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
                    if isinstance(value, str):
                        agent = "cpu" if argument.scalar else device or "cpu"  # the processor passes values
                        self.agents.setdefault(self.names.root(value), set()).add(agent)
        if None in bound.values():
            return None
        for argument in operator.args:
            if argument.direction == "scratch":
                name = f"{argument.name} of step {index}"
                self.scratch.append(Scratch(name, argument, device, at))
                bound[argument.name] = Binding("buffer", name)
        bindings = tuple(b for a in operator.args if (b := bound[a.name]) is not None)
        cycles = entry.get("cycles", operator.cycles)
        return Step(index, operator, entry.get("device"), bindings, at, program, cycles)

    def _check_aliases(self, operator: Operator, given: list[tuple[Any, Location]]) -> None:
        """Report memory passed twice to a step that writes it: operators require separate memory, unless in place."""
        seen: list[tuple[Argument, str]] = []
        for argument, (value, place) in zip(operator.step_args, given, strict=True):
            if not isinstance(value, str) or argument.scalar or self.names.root(value) in self.settled:
                continue
            for other, name in seen:
                if not (argument.is_written or other.is_written) or not self._overlap(argument, value, other, name):
                    continue
                if value == name and (_in_place(argument, other) or _in_place(other, argument)):
                    continue
                which = f"tensor {value!r} is" if value == name else f"{name!r} and {value!r}, which overlap, are"
                self.faults.error(
                    f"{which} passed for {other.name!r} and {argument.name!r} of a step that writes "
                    f"{'it' if value == name else 'one of them'}",
                    place,
                    expected="separate tensors",
                    hint=self._way_out(value, argument if argument.is_written else other)
                    if value == name
                    else "pass views that do not overlap",
                )
                break
            seen.append((argument, value))

    def _way_out(self, value: str, written: Argument) -> str:
        if value in self.names.states and written.direction == "out":
            return f"write another tensor and declare it as 'next' of state {value!r}"
        return "for an operator that works in place, declare one argument with direction: inout"

    def _overlap(self, argument: Argument, value: str, other: Argument, name: str) -> bool:
        if self.names.root(value) != self.names.root(name):
            return False
        (low, high), (begin, end) = self._extent(argument, value), self._extent(other, name)
        return value == name or (low < end and begin < high)

    def _bind(self, index: int, argument: Argument, value: Any, place: Location) -> Binding | None:
        if argument.scalar and not isinstance(value, str):
            return bind_number(self.faults, argument, value, place)
        if not isinstance(value, str):
            self.faults.error(
                f"argument {argument.name!r} takes a tensor, the step passes {value!r}",
                place,
                expected="the name of a tensor",
                hint="to pass a number, declare the argument with scalar: true",
            )
            return None
        return self._bind_tensor(index, argument, value, place)

    def _extent(self, argument: Argument, value: str) -> tuple[int, int]:
        """Return the bytes of its root that an argument accesses."""
        view = self.names.views.get(value)
        if view is not None:
            return view.offset, view.end
        known = self.names.outputs.get(value) or self.names.states.get(value) or self.tensors.get(value)
        return 0, known.type.size if known else argument.type.size

    def _bind_tensor(self, index: int, argument: Argument, value: str, place: Location) -> Binding | None:
        """Return the binding of a tensor or view in step `index`; None after an error that was reported."""
        self.used.add(value)
        root = self.names.root(value)
        extent = self._extent(argument, value)
        if {value, root} & self.settled:
            self.written.add(root, *extent)
            return None
        self.used.add(root)
        self.alignments[root] = max(self.alignments.get(root, 1), argument.align)
        bound = self._bind_root(index, argument, value, place)
        view = self.names.views.get(value)
        if bound is not None and argument.is_written:
            self.written.add_view(root, view.offset, view.type) if view else self.written.add_whole(root)
        if bound is None or view is None:
            return bound
        if view.offset % argument.align:
            self.faults.error(
                f"view {value!r} begins at byte {view.offset} of {root!r}, "
                f"argument {argument.name!r} requires an alignment of {argument.align} bytes",
                place,
                expected=f"an offset of a multiple of {argument.align} bytes",
            )
        return replace(bound, view=value, offset=view.offset)

    def _bind_root(self, index: int, argument: Argument, value: str, place: Location) -> Binding | None:
        """Return the binding of the tensor that contains `value`; report a use that its role does not permit."""
        name = self.names.root(value)
        if value != name:
            check_agreement(self.context, argument, self.names.views[value].type, f"view {value!r}", place)
        type_: TensorType | None
        if name in self.names.inputs:
            binding, what, type_ = Binding("input", name), f"input {name!r}", self.names.inputs[name].type
            if argument.is_written:
                self.faults.error(
                    f"{what} is written by this step",
                    place,
                    expected="a tensor that is not an input",
                    hint="inputs are read-only: write another tensor",
                )
        elif name in self.constants:
            constant = self.names.constants.get(name)
            binding, what, type_ = Binding("constant", name), f"constant {name!r}", constant.type if constant else None
            if argument.is_written:
                self.faults.error(f"{what} is written by this step", place, expected="a tensor that is not a constant")
        elif name in self.names.outputs:
            binding, what, type_ = Binding("output", name), f"output {name!r}", self.names.outputs[name].type
            if argument.is_read:
                self._check_written(index, argument, value, what, place)
                self.written.add(name, 0, type_.size)  # report an unwritten output once
        elif name in self.names.states:
            state = self.names.states[name]
            binding, what, type_ = Binding("buffer", name), f"state {name!r}", state.type
            if argument.is_written and state.next is not None:
                self.faults.error(
                    f"{what} is written by this step, and has 'next'",
                    place,
                    expected="a state without 'next', or steps that only read it",
                    hint=f"run copies {state.next.name!r} to the state at its end",
                )
            if argument.is_read:
                self.read.add(name)
        else:
            return self._bind_intermediate(index, argument, value, place)
        if value == name and type_ is not None:
            check_agreement(self.context, argument, type_, what, place)
        return binding

    def _bind_intermediate(self, index: int, argument: Argument, value: str, place: Location) -> Binding | None:
        name = self.names.root(value)
        if argument.is_read:
            if argument.direction != "inout" or value != name or not is_arena(self.context, name):
                self._check_written(index, argument, value, f"tensor {name!r}", place)
            if name not in self.writers and name not in self.written:
                self.settled.add(name)
                return None
            self.written.add(name, *self._extent(argument, value))  # report an unwritten tensor once
            self.read.add(name)
        if value != name:
            if name not in self.tensors:
                at = self.declared.key_location(name)
                align = self.declared[name].get("align", 1)
                self.tensors[name] = Intermediate(name, at, self.declared_types[name], typed=True, align=align)
            self.tensors[name].align = max(self.tensors[name].align, argument.align)
            return Binding("buffer", name)
        tensor = self.tensors.get(name)
        if tensor is None:
            tensor = self.tensors[name] = self._introduce(argument, name, place)
        elif not tensor.typed:
            if not argument.scalar:
                tensor.type, tensor.typed = argument.type, argument.location not in self.context.untyped
        else:
            check_agreement(self.context, argument, tensor.type, f"tensor {name!r}", place)
        tensor.align = max(tensor.align, argument.align)
        return Binding("buffer", name)

    def _introduce(self, argument: Argument, name: str, place: Location) -> Intermediate:
        """Return a new intermediate tensor with the type of its first writer; report a declaration that differs."""
        check_name("tensor", name, place, self.faults)
        type_ = replace(argument.type, pitch=0) if argument.type.pitch else argument.type
        if argument.type.pitch:
            self.faults.error(
                f"argument {argument.name!r} takes {argument.type}, tensor {name!r} has rows that follow each other",
                place,
                expected=f"a view with pitch: {argument.type.pitch}",
            )
        tensor = Intermediate(name, place, type_, argument.location not in self.context.untyped)
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

    def _check_written(self, index: int, argument: Argument, value: str, what: str, place: Location) -> None:
        """Report memory that this step reads and no earlier step writes."""
        name = self.names.root(value)
        gap = self.written.gap(name, *self._extent(argument, value))
        if gap is None or name in self.uncertain:
            return
        if name in self.written:
            self.faults.error(
                f"bytes {gap[0]} to {gap[1] - 1} of {what} are read by step {index} before they are written",
                place,
                expected="earlier steps that write all of them",
                hint="a step writes only the bytes of the view that it is given" if self.names.views else None,
            )
        elif name in self.writers:
            writer = self.writers[name]
            by = "first by this step" if writer == index else f"by the later step {writer}"
            self.faults.error(
                f"{what} is read by step {index} before it is written {by}",
                place,
                hint="steps run in the listed order; to read the value of the last run, declare it under run.state",
            )
        elif not self.incomplete:
            from opwest.model.checks.forgotten import direction_hint

            known = {*self.names.inputs, *self.constants, *self.names.states, *self.written.tensors}
            self.faults.error(
                f"{what} is read but never written",
                place,
                expected=f"{'a number, ' if argument.scalar else ''}an input, a constant, a state, "
                "or a tensor that an earlier step writes",
                hint=direction_hint(self.files, self.operator, argument, nearest(name, known)),
            )

    def _with_next(self, state: State) -> State:
        """Return a state with the binding of its next content; report one that does not fit."""
        if state.next is None:
            return state
        name = state.next.name
        at = self.context.section("state", self.context.run)[state.name].value_location("next")
        root, view = self.names.root(name), self.names.views.get(name)
        self.used |= {name, root}
        self.read.add(root)
        interfaces = {**self.names.inputs, **self.names.outputs}
        if root in interfaces:
            type_ = interfaces[root].type
        elif root in self.tensors:
            type_ = self.tensors[root].type
        else:
            if not self.incomplete and root not in {*self.uncertain, *self.settled}:
                self.faults.error(
                    f"'next' of state {state.name!r} is {name!r}",
                    at,
                    expected="an input, an output, or an intermediate tensor that a step writes",
                    hint=nearest(name, {*interfaces, *self.tensors}),
                )
            return replace(state, next=None)
        type_ = view.type if view else type_
        if type_ != state.type:
            self.faults.error(
                f"state {state.name!r} is {state.type}, its 'next' {name!r} is {type_}",
                at,
                expected=str(state.type),
            )
        offset = view.offset if view else 0
        gap = None if root in self.names.inputs else self.written.gap(root, offset, offset + type_.size)
        if gap is not None and not self.incomplete and root not in self.uncertain:
            self.faults.error(
                f"'next' of state {state.name!r} is {name!r}: no step writes its bytes "
                f"{gap[0] - offset} to {gap[1] - offset - 1}",
                at,
                expected="a tensor that the steps write completely",
            )
        role: Literal["input", "output", "buffer"]
        role = "input" if root in self.names.inputs else "output" if root in self.names.outputs else "buffer"
        self.agents.setdefault(root, set()).add("cpu")
        return replace(state, next=Binding(role, root, view=name if view else None, offset=offset))

    def _check_unused(self) -> None:
        """Report outputs that no step writes; warn about unused inputs, constants and tensors."""
        for name, output in self.names.outputs.items():
            view = self.names.views.get(name)
            root, begin = (view.root, view.offset) if view else (name, 0)
            gap = self.written.gap(root, begin, begin + output.type.size)
            if gap is not None and not self.incomplete and not {name, root} & self.uncertain:
                part = f"bytes {gap[0] - begin} to {gap[1] - begin - 1} of output {name!r} are"
                what = part if name in self.written else None
                self.faults.error(
                    f"{what or f'output {name!r} is'} never written",
                    output.location,
                    expected=f"steps that write {'them' if what else 'it'}" if what else "a step that writes it",
                )
        known = {*self.tensors, *self.names.inputs, *self.names.outputs, *self.names.states, *self.uncertain}
        known |= {*self.settled, *self.used, *self._containing()}
        for name in self.declared:
            if not self.incomplete and name not in known:
                at = self.declared.key_location(name)
                self.faults.error(f"unused tensor {name!r}", at, hint=nearest(name, self.tensors))
        if self.faults.has_errors:
            return  # after an error, "unused" may be a consequence of it
        kept = self.used | self.uncertain
        for role, named in (
            ("input", self.names.inputs),
            ("constant", self.names.constants),
            ("device", self.names.devices),
            ("state", self.names.states),
        ):
            for name, item in named.items():
                both = {name, self.names.root(name)}
                if kept.isdisjoint(both) and name not in self.context.devices_elsewhere:
                    self.faults.warning(f"unused {role} {name!r}", item.location)
        for name, tensor in self.tensors.items():
            if name not in self.read and name in self.written and name not in self.uncertain:
                self.faults.warning(f"tensor {name!r} is written but never read", tensor.location)
        for name, state in self.names.states.items():
            if name in self.used and name not in self.uncertain:
                if state.next is None and name not in self.written:
                    self.faults.warning(
                        f"state {name!r} is never written", state.location, hint="declare it under 'constants'"
                    )
                elif name not in self.read:
                    self.faults.warning(f"state {name!r} is written but never read", state.location)

    def _containing(self) -> set[str]:
        """Return the views that steps use only through views of them."""
        containing: set[str] = set()
        for name in self.used | self.settled:
            while name not in containing and "view_of" in (entry := self.declared.get(name, {})):
                containing.add(name)
                name = entry["view_of"]
        return containing


def _in_place(result: Argument, other: Argument) -> bool:
    """Whether a result may have the address of another argument."""
    return other.name in result.in_place and (result.direction, other.direction) == ("out", "in")

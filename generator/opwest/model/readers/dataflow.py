# SPDX-License-Identifier: Apache-2.0
"""Resolve the steps of `run`: bind every argument, check that tensors are written before they are read."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Literal

from opwest.base.diagnostics import Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, located_items
from opwest.model.readers.constants import bind_number
from opwest.model.readers.step_device import step_device
from opwest.model.readers.steps import Names, listed_steps
from opwest.model.readers.tensor_binding import Intermediate, TensorBinding
from opwest.model.types.model import Argument, Binding, Operator, State, Step


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


def resolve_steps(context: Context, names: Names) -> Flow:
    """Return the steps with their bindings, and the properties of tensors that follow from them."""
    return _Dataflow(context, names).resolve()


class _Dataflow(TensorBinding):
    def __init__(self, context: Context, names: Names) -> None:
        super().__init__(context, names)
        self.agents: dict[str, set[str]] = {}
        self.scratch: list[Scratch] = []

    def resolve(self) -> Flow:
        """Walk the steps in order."""
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
        placed = step_device(self.faults, self.names.devices, self.names.programs, entry, operator, at)
        device = placed.device
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
                        self.agents.setdefault(self.names.root(value), set()).add(device or "cpu")
        if None in bound.values():
            return None
        for argument in operator.args:
            if argument.direction == "scratch":
                name = f"{argument.name} of step {index}"
                self.scratch.append(Scratch(name, argument, device, at))
                bound[argument.name] = Binding("buffer", name)
        bindings = tuple(b for a in operator.args if (b := bound[a.name]) is not None)
        cycles = entry.get("cycles", operator.cycles)
        return Step(index, operator, entry.get("device"), bindings, at, placed.program, cycles)

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
        (low, high), (begin, end) = self.extent(argument, value), self.extent(other, name)
        return value == name or (low < end and begin < high)

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
        return self.bind_tensor(index, argument, value, place)

    def _with_next(self, state: State) -> State:
        """Return a state with the binding of its next content; report one that does not fit."""
        if state.next is None:
            return state
        name = state.next.name
        at = self.context.section("state", self.run)[state.name].value_location("next")
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
        for role, named in (
            ("input", self.names.inputs),
            ("constant", self.names.constants),
            ("device", self.names.devices),
            ("state", self.names.states),
        ):
            for name, item in named.items():
                both = {name, self.names.root(name)}
                if not both & (self.used | self.uncertain) and name not in self.context.devices_elsewhere:
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
        found: set[str] = set()
        for name in self.used | self.settled:
            while name not in found and "view_of" in (entry := self.declared.get(name, {})):
                found.add(name)
                name = entry["view_of"]
        return found


def _in_place(result: Argument, other: Argument) -> bool:
    """Whether a result may have the address of another argument."""
    return other.name in result.in_place and (result.direction, other.direction) == ("out", "in")

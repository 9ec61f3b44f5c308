# SPDX-License-Identifier: Apache-2.0
"""A draft of `run` from the names of arguments, with placeholders for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from opwest.base.frozen_dataclass import dataclass
from opwest.drafting.selection import Chosen
from opwest.drafting.signatures import STRUCT_DEVICE, Parameter, is_constant_name
from opwest.manifest.placeholders import MARK


@dataclass(frozen=True)
class End:
    """An argument of a step: the source or destination of a tensor."""

    operator: str
    argument: Parameter

    @property
    def words(self) -> str:
        """Its name in comments."""
        return f"{self.operator}'s {self.argument.name}" + (f" ({self.argument.dtype})" if self.argument.dtype else "")


@dataclass
class Step:
    """One call; placeholders replace unknown arguments."""

    call: str
    args: list[str]
    device: str | None = None
    guessed: list[str] = field(default_factory=list)
    """Tensors that it shares with another step only because their names match."""


@dataclass
class Sketch:
    """The steps of `run`, with the inputs, outputs and devices that they use."""

    steps: list[Step] = field(default_factory=list)
    inputs: dict[str, Parameter] = field(default_factory=dict)
    """Known inputs; empty if any of `open_inputs` could be an input."""
    outputs: dict[str, Parameter] = field(default_factory=dict)
    open_inputs: list[End] = field(default_factory=list)
    open_outputs: list[End] = field(default_factory=list)
    constants: dict[str, End] = field(default_factory=dict)
    state: dict[str, Parameter] = field(default_factory=dict)
    """Structures that operators read and write."""
    devices: dict[str, str] = field(default_factory=dict)
    """By name, the C type of the handle."""
    tensors: dict[tuple[str, str], str] = field(default_factory=dict)
    """By operator and argument, the tensor that its step passes; without unknown ones."""
    shapes: dict[str, list[tuple[int, ...] | None]] = field(default_factory=dict)
    """By tensor, the shapes of its arguments."""
    is_complete: bool = True
    """Whether every operator's arguments are known."""


def sketch(operators: Sequence[Chosen]) -> Sketch:
    """Return a run that calls each operator once."""
    run = Sketch(is_complete=all(operator.signature is not None for operator in operators))
    links = _links(operators)
    for operator in _ordered(operators, links):
        run.steps.append(_step(operator, links, run))
    _set_interface(run, single=len(operators) == 1)
    _find_tensors(run, operators)
    return run


def _find_tensors(run: Sketch, operators: Sequence[Chosen]) -> None:
    """Record the tensor of every argument, and the shapes that one of its arguments has."""
    by_name = {operator.name: operator for operator in operators}
    for step in run.steps:
        signature = by_name[step.call].signature
        arguments = [a for a in signature.step_arguments if a.direction != "scratch"] if signature else []
        for argument, name in zip(arguments, step.args, strict=bool(signature)):
            if argument.role == "tensor" and not name.startswith(MARK):
                run.tensors[step.call, argument.name] = name
                run.shapes.setdefault(name, []).append(argument.shape)


Links = dict[tuple[str, str], str]
"""By operator and argument that reads, the operator that writes an argument of the same name."""


def _tensors(operator: Chosen, direction: str) -> list[Parameter]:
    arguments = operator.signature.step_arguments if operator.signature else ()
    return [a for a in arguments if a.role == "tensor" and a.direction == direction]


def _links(operators: Sequence[Chosen]) -> Links:
    """Return the arguments that read a result of the same name and type, if the match is unique."""
    writers: dict[tuple[str, str | None], list[str]] = {}
    for operator in operators:
        for argument in _tensors(operator, "out"):
            writers.setdefault((argument.name, argument.dtype), []).append(operator.name)
    links: Links = {}
    for operator in operators:
        for argument in _tensors(operator, "in"):
            matches = writers.get((argument.name, argument.dtype), [])
            constant = is_constant_name(argument.name, certain=True)
            if len(matches) == 1 and matches[0] != operator.name and not constant:
                links[operator.name, argument.name] = matches[0]
    return links


def _ordered(operators: Sequence[Chosen], links: Links) -> list[Chosen]:
    """Return the operators with writers before readers, else in the given order; break cycles of links."""
    left = {operator.name: operator for operator in operators}
    ordered: list[Chosen] = []
    waits: dict[str, set[str]] = {name: set() for name in left}
    for (reader, _), writer in links.items():
        waits[reader].add(writer)
    while left:
        ready = next((name for name in left if not waits[name] & left.keys()), None)
        if ready is None:  # a cycle has no first operator
            for key in [key for key, writer in links.items() if key[0] in left and writer in left]:
                del links[key]
            waits = {name: set() for name in left}
            continue
        ordered.append(left.pop(ready))
    return ordered


def _step(operator: Chosen, links: Links, run: Sketch) -> Step:
    if operator.signature is None:
        return Step(operator.name, [MARK])
    step = Step(operator.name, [])
    read = {(writer, name) for (_, name), writer in links.items()}
    for argument in operator.signature.step_arguments:
        if argument.direction == "scratch":
            continue
        key = (operator.name, argument.name)
        end = End(operator.name, argument)
        own = f"{operator.name}_{argument.name}"
        if argument.struct and argument.direction == "inout":
            run.state[own] = argument
            step.args.append(own)
        elif argument.value is not None:
            step.args.append(argument.value)
        elif argument.role == "scalar" or argument.direction in (None, "inout"):
            step.args.append(f"{MARK}_{argument.name}")
            if argument.role == "tensor":
                run.open_inputs.append(end)
                run.open_outputs.append(end)
        elif argument.direction == "out":
            step.args.append(argument.name if key in read else own)
            if key not in read:
                run.open_outputs.append(end)
        elif key in links:
            step.args.append(argument.name)
            step.guessed.append(argument.name)
        elif argument.struct or is_constant_name(argument.name):
            is_qualified = argument.name.startswith(f"{operator.name}_") and argument.name not in run.constants
            name = argument.name if is_qualified else own
            run.constants[name] = end
            step.args.append(name)
        else:
            run.open_inputs.append(end)
            step.args.append(f"{MARK}_{argument.name}")
    device = operator.signature.device
    if device:
        step.device = _device(device.handle, run)
    return step


def _device(handle: str, run: Sketch) -> str:
    """Return the name of the device that operators with this type of handle share."""
    for name, known in run.devices.items():
        if known == handle:
            return name
    tag = "accelerator" if handle == STRUCT_DEVICE else handle.split()[-2]
    name = tag if tag not in run.devices else f"{tag}_{len(run.devices)}"
    run.devices[name] = handle
    return name


def _set_interface(run: Sketch, *, single: bool) -> None:
    """Set the inputs and outputs that are unambiguous."""
    if not run.is_complete:
        return
    for direction, ends, named in (("in", run.open_inputs, run.inputs), ("out", run.open_outputs, run.outputs)):
        if any(end.argument.direction != direction for end in ends) or not (single or len(ends) <= 1):
            continue
        for end in ends:
            own = f"{end.operator}_{end.argument.name}"
            taken = {name for step in run.steps for name in step.args}
            name = end.argument.name if end.argument.name not in taken else own
            named[name] = end.argument
            old = f"{MARK}_{end.argument.name}" if direction == "in" else own
            for step in run.steps:
                if step.call == end.operator:
                    step.args = [name if argument == old else argument for argument in step.args]
        ends.clear()

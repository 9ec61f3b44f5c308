# SPDX-License-Identifier: Apache-2.0
"""Bind the tensors of steps: roles, types, and whether they are written before they are read."""

from __future__ import annotations

from dataclasses import replace

from opwest.base.diagnostics import Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.model.checks.memory import Coverage
from opwest.model.inputs.context import Context
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
from opwest.model.types.model import Argument, Binding


@dataclass
class Intermediate:
    """An intermediate tensor, as derived from the steps."""

    name: str
    location: Location
    type: TensorType
    typed: bool
    """Whether the type is known; false if the argument of the first writer has no shape (reported)."""
    align: int = 1


class TensorBinding:
    """Binds tensors to arguments in the order of the steps; records what is written, read and required."""

    def __init__(self, context: Context, names: Names) -> None:
        self.context = context
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
        self.run = context.section("run")
        self.declared = context.section("tensors", self.run)
        self.declared_types = declared_types(context)
        self.writers = first_writers(context, names)
        self.uncertain = named_by_unknown_operators(context, names)
        self.settled = check_roles(context)
        sections = (self.declared, *(context.section(key, self.run) for key in ("inputs", "outputs")))
        parts = [
            (name, entry["view_of"]) for section in sections for name, entry in section.items() if "view_of" in entry
        ]
        for name, tensor in (*parts, *slice_names(context)):
            if name not in names.views:  # reported
                self.settled.add(name)
                self.uncertain |= {name, names.root(tensor)}
        """Names for which further errors are suppressed: declared in two roles, or tensors of unknown operators."""
        cut = has_too_many_steps(context)
        self.incomplete = cut or context.incomplete
        """Whether a step could not be resolved: a tensor without a writer is then not reported."""
        if cut:
            given = [value for step, _ in listed_steps(context) for value in step["args"] if isinstance(value, str)]
            self.uncertain |= {names.root(value) for value in given}

    def extent(self, argument: Argument, value: str) -> tuple[int, int]:
        """Return the bytes of its root that an argument accesses."""
        view = self.names.views.get(value)
        if view is not None:
            return view.offset, view.end
        known = self.names.outputs.get(value) or self.names.states.get(value) or self.tensors.get(value)
        return 0, known.type.size if known else argument.type.size

    def bind_tensor(self, index: int, argument: Argument, value: str, place: Location) -> Binding | None:
        """Return the binding of a tensor or view in step `index`; None after an error that was reported."""
        self.used.add(value)
        root = self.names.root(value)
        extent = self.extent(argument, value)
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
        """Return the binding of the tensor that contains `value`."""
        root = self.names.root(value)
        if value != root:
            self._agree(argument, self.names.views[value].type, f"view {value!r}", place)
        if root in self.names.inputs:
            return self._bind_input(argument, value, place)
        if root in self.constants:
            return self._bind_constant(argument, value, place)
        if root in self.names.outputs:
            return self._bind_output(index, argument, value, place)
        if root in self.names.states:
            return self._bind_state(argument, value, place)
        return self._bind_intermediate(index, argument, value, place)

    def _bind_input(self, argument: Argument, value: str, place: Location) -> Binding:
        name = self.names.root(value)
        if argument.is_written:
            self.faults.error(
                f"input {name!r} is written by this step",
                place,
                expected="a tensor that is not an input",
                hint="inputs are read-only: write another tensor",
            )
        if value == name:
            self._agree(argument, self.names.inputs[name].type, f"input {name!r}", place)
        return Binding("input", name)

    def _bind_constant(self, argument: Argument, value: str, place: Location) -> Binding:
        name = self.names.root(value)
        if argument.is_written:
            self.faults.error(
                f"constant {name!r} is written by this step", place, expected="a tensor that is not a constant"
            )
        if name in self.names.constants and value == name:
            self._agree(argument, self.names.constants[name].type, f"constant {name!r}", place)
        return Binding("constant", name)

    def _bind_state(self, argument: Argument, value: str, place: Location) -> Binding:
        name = self.names.root(value)
        state = self.names.states[name]
        if argument.is_written and state.next is not None:
            self.faults.error(
                f"state {name!r} is written by this step, and has 'next'",
                place,
                expected="a state without 'next', or steps that only read it",
                hint=f"run copies {state.next.name!r} to the state at its end",
            )
        if value == name:
            self._agree(argument, state.type, f"state {name!r}", place)
        if argument.is_read:
            self.read.add(name)
        return Binding("buffer", name)

    def _bind_output(self, index: int, argument: Argument, value: str, place: Location) -> Binding:
        name = self.names.root(value)
        output = self.names.outputs[name]
        if argument.is_read:
            self._check_written(index, argument, value, f"output {name!r}", place)
            self.written.add(name, 0, output.type.size)  # report an unwritten output once
        if value == name:
            self._agree(argument, output.type, f"output {name!r}", place)
        return Binding("output", name)

    def _bind_intermediate(self, index: int, argument: Argument, value: str, place: Location) -> Binding | None:
        name = self.names.root(value)
        if argument.is_read:
            if argument.direction != "inout" or value != name or not is_arena(self.context, name):
                self._check_written(index, argument, value, f"tensor {name!r}", place)
            if name not in self.writers and name not in self.written:
                self.settled.add(name)
                return None
            self.written.add(name, *self.extent(argument, value))  # report an unwritten tensor once
            self.read.add(name)
        if value != name:
            self._through_view(argument, name)
            return Binding("buffer", name)
        tensor = self.tensors.get(name)
        if tensor is None:
            tensor = self.tensors[name] = self._introduce(argument, name, place)
        elif not tensor.typed:
            tensor.type, tensor.typed = argument.type, argument.location not in self.context.untyped
        else:
            self._agree(argument, tensor.type, f"tensor {name!r}", place)
        tensor.align = max(tensor.align, argument.align)
        return Binding("buffer", name)

    def _through_view(self, argument: Argument, name: str) -> None:
        """Add the intermediate tensor that contains a view, as declared."""
        if name not in self.tensors:
            at = self.declared.key_location(name)
            align = self.declared[name].get("align", 1)
            self.tensors[name] = Intermediate(name, at, self.declared_types[name], typed=True, align=align)
        self.tensors[name].align = max(self.tensors[name].align, argument.align)

    def _introduce(self, argument: Argument, name: str, place: Location) -> Intermediate:
        """Return a new intermediate tensor with the type of its first writer; report a declaration that differs."""
        check_name("tensor", name, place, self.faults)
        type_ = replace(argument.type, pitch=0)
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
        gap = self.written.gap(name, *self.extent(argument, value))
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
            known = {*self.names.inputs, *self.constants, *self.names.states, *self.written.tensors}
            self.faults.error(
                f"{what} is read but never written",
                place,
                expected="an input, a constant, a state, or a tensor that an earlier step writes",
                hint=nearest(name, known),
            )

    def _agree(self, argument: Argument, type_: TensorType, what: str, place: Location) -> None:
        if argument.type == type_ or argument.location in self.context.untyped:
            return
        differs = "shape" if argument.type.dtype == type_.dtype else "dtype"
        hint = None
        if argument.type.size == type_.size and differs == "shape":
            hint = "the sizes are equal: declare the same shape in both places, or pass a view with this shape"
        self.faults.error(
            f"{differs} mismatch: {what} is {type_}, argument {argument.name!r} takes {argument.type}",
            place,
            expected=str(argument.type),
            hint=hint,
        )

# SPDX-License-Identifier: Apache-2.0
"""The manifest of an imported model, for users to read and edit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Function, check_of
from opwest.compiler.folder import npz
from opwest.compiler.graph.user import UserOperator
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.names import free_name, identifier, opening
from opwest.compiler.output.emit import Emitted, Step
from opwest.compiler.output.source import c_file
from opwest.compiler.processors import ProcessorClass
from opwest.compiler.reference.runtimes import Cases
from opwest.manifest import writer
from opwest.objects.flash import NONE, Flash, keys_of
from opwest.zephyr import cmsis_nn


def name_values(program: Program, emitted: Emitted, own: Sequence[Value] = ()) -> Mapping[Value, str]:
    """Return names: those of the model where they are usable, numbered names for intermediate tensors.

    Values in `own` keep their names.
    """
    names: dict[Value, str] = {value: value.name for value in own}
    taken: set[str] = set(names.values())
    for role, values in (("input", program.inputs), ("output", program.outputs), ("state", program.states)):
        for value in values:
            names[value] = free_name(identifier(value.name, role), taken)
    for state in program.states:
        # Variants number their tensors on their own, but share the declaration of the state.
        if state.next is not None and state.next not in names:
            names[state.next] = free_name(f"{names[state]}_next", taken)
    count = 0
    for number, step in enumerate(emitted.steps):
        for value in step.arguments:
            for root in with_roots(value):
                if root in names:
                    continue
                if root.role == "constant":
                    names[root] = free_name(f"{step.function.base}_{number}_{root.name}", taken)
                else:
                    names[root] = free_name(f"t{count}", taken)
                    count += 1
    return names


def with_roots(value: Value) -> list[Value]:
    """Return a view after the values that contain it, the one with the memory first."""
    return [value] if value.root is None else [*with_roots(value.root), value]


def declared(value: Value) -> Value:
    """Return the value that steps name: a view of all elements is its root."""
    while (
        value.root is not None
        and value.root.role != "arena"
        and value.root.size == value.size
        and value.root.dtype == value.dtype
        and value.root.pitch == value.pitch
    ):
        value = value.root
    return value


MANIFEST, SOURCE = "manifest.yaml", "operators.c"


@dataclass(frozen=True, eq=False)
class Implementation:
    """The operators of a model for some processors."""

    emitted: Emitted
    names: Mapping[Value, str]
    processor: ProcessorClass | None = None
    """None: hosts and all processors without an implementation of their own."""
    sources: tuple[str, ...] = (SOURCE,)
    """The C files of the operators."""
    program: Program | None = None
    """The operations of the steps, one each; None for candidates of operators, which no import proves."""
    costs: Sequence[Mapping[str, Any]] = ()
    """For each core whose costs apply: the rows of `selection/choice_rows.py`, without operators of the user."""

    def path(self, name: str) -> str:
        """Return the path of a file: variants have a directory of their own."""
        return name if self.processor is None else f"{self.processor.name}/{name}"

    def files(self) -> dict[str, bytes]:
        """Return the C source and the constants by their paths, without empty ones."""
        files = {self.path(SOURCE): c_file(self.emitted.source)} if self.emitted.source else {}
        constants = {name: value.content for value, name in self.names.items() if value.content is not None}
        if constants:
            files[self.path(CONSTANTS)] = npz(constants)
        return files


class Pools(Protocol):
    """The pools of a model, and the constants in them."""

    @property
    def memory(self) -> Iterator[str]:
        """Yield the section `memory` of the manifest."""

    def pools_of(self, emitted: Emitted) -> Mapping[Value, str]:
        """Return the pools of constants."""


@dataclass(frozen=True, eq=False)
class Described:
    """The content of a manifest."""

    model: str
    origin: str
    remarks: Sequence[str]
    program: Program
    base: Implementation
    variants: Sequence[Implementation]
    labels: Mapping[int, tuple[str, ...]]
    vectors: Vectors | None
    placement: Pools
    caller_memory: bool = True
    """Whether the caller provides the memory of inputs and outputs."""
    boards: Sequence[str] = ()
    arenas: Mapping[Value, writer.Keys] = field(default_factory=dict)
    """The keys of tensors that a compiler has planned."""
    application: Sequence[str] = ()
    """The lines of the section `application`."""
    flash: Flash | None = None
    """The flash that the request states."""
    optimize: str | None = None
    """The key `optimize` of the operators' sources; None: the default of manifests."""


def manifest_text(of: Described) -> str:
    """Return the manifest; ends with a line end."""
    base = of.base
    operators = _operators(base.emitted.steps)
    return writer.document(
        opening(of.model, of.origin, of.remarks),
        [f"boards: {writer.flow_list(map(writer.scalar, of.boards))}"] if of.boards else (),
        _flash(of),
        *_named(of),
        of.placement.memory,
        ["objects:", *_objects(of, base)],
        ["operators:", *(line for key, name in operators.items() for line in _operator(name, key))],
        _constants(base, of.placement),
        _externals(base),
        ["run:", *_interfaces(of), *_tensors(of, base), *_steps(base, operators)],
        _variants(of),
        of.application,
        () if of.vectors is None else vector_lines(of.vectors, [of.base.names[value] for value in of.program.outputs]),
    )


def _flash(of: Described) -> list[str]:
    """Return the key `flash`."""
    if of.flash is None:
        return []
    if of.flash == NONE:
        return ["flash: none"]
    keys = {key: str(value).lower() for key, value in keys_of(of.flash).items()}
    return [f"flash: {writer.flow_map(keys)}"]


def _variants(of: Described) -> Iterator[str]:
    """Yield the implementations for classes of processors."""
    base = of.base
    if of.variants:
        yield "# The operators for some processors; hosts and all other processors use those above."
        yield "variants:"
    for variant in of.variants:
        assert variant.processor is not None
        operators = _operators(variant.emitted.steps)
        inner = [
            f"targets: {writer.flow_list(variant.processor.targets)}",
            "objects:",
            *_objects(of, variant),
            "operators:",
            *(line for key, name in operators.items() for line in _operator(name, key)),
            *_replacing("constants:", _constants(variant, of.placement), _constants(base, of.placement)),
            *(_externals(variant) if variant.emitted.external else ()),
            "run:",
            *_replacing("  tensors:", _tensors(of, variant), _tensors(of, base)),
            *_steps(variant, operators),
        ]
        yield f"  {variant.processor.name}:"
        yield from (f"    {line}" if line else line for line in inner)


def _replacing(key: str, own: Iterable[str], base: Iterable[str]) -> list[str]:
    """Return a section of a variant, empty if only the base has one.

    A variant without the section has that of the base, where a name can be that of another tensor.
    """
    return list(own) or ([f"{key} {{}}"] if any(base) else [])


def _users(of: Implementation) -> list[UserOperator]:
    """Return the operators of the user, in the order of the steps."""
    return list(dict.fromkeys(step.function.user for step in of.emitted.steps if step.function.user is not None))


def _objects(of: Described, made: Implementation) -> Iterator[str]:
    if made.emitted.source:
        yield from writer.object_entry([made.path(name) for name in made.sources])
        yield from writer.key("optimize", of.optimize)
    for user in _users(made):
        yield from (f"  - {writer.value(section)}" for section in user.sections["objects"])


def _named(of: Described) -> Iterator[list[str]]:
    """Yield the targets of variants, and the other sections of the snippets."""
    for key in ("targets", "devices"):
        entries = {name: keys for user in _users(of.base) for name, keys in user.sections.get(key, {}).items()}
        for variant in of.variants:
            if key == "targets" and variant.processor is not None:
                entries.update(variant.processor.declared)
        if entries:
            lines = [f"{key}:"]
            for name, keys in entries.items():
                lines.append(f"  {writer.scalar(name)}:")
                lines += [f"    {writer.scalar(inner)}: {writer.value(value)}" for inner, value in keys.items()]
            yield lines


def _externals(of: Implementation) -> Iterator[str]:
    """Yield the external symbols: those of CMSIS-NN, and those of operators of the user."""
    own = list(writer.externals(cmsis_nn.externals_of(of.emitted.external)))
    users = dict.fromkeys(writer.value(entry) for user in _users(of) for entry in user.sections.get("externals", ()))
    yield from own or (["externals:"] if users else [])
    yield from (f"  - {entry}" for entry in users)


@dataclass(frozen=True)
class Vectors:
    """Cases with their outputs."""

    inputs: Cases
    outputs: Cases
    tolerances: tuple[dict[str, float], ...]
    """Tolerances by output; empty for equality."""
    remark: str


@dataclass(frozen=True)
class _Operator:
    """An operator of the manifest: a function with dtypes and shapes. One function can serve several shapes."""

    symbol: str
    function: Function
    shapes: tuple[tuple[int, ...], ...]
    pitches: tuple[int, ...]


def _key(step: Step) -> _Operator:
    return _Operator(
        step.symbol,
        step.function,
        tuple(declared(argument).shape for argument in step.arguments),
        tuple(declared(argument).pitch for argument in step.arguments),
    )


def _operators(steps: Sequence[Step]) -> dict[_Operator, str]:
    names: dict[_Operator, str] = {}
    for step in steps:
        key = _key(step)
        if key not in names:
            name, number = step.symbol.removeprefix("op_"), 1
            base = name
            while name in names.values():
                number += 1
                name = f"{base}_shape_{number}"
            names[key] = name
    return names


def operator_names(steps: Sequence[Step]) -> list[str]:
    """Return the name in the manifest of the operator of each step."""
    names = _operators(steps)
    return [names[_key(step)] for step in steps]


def _operator(name: str, key: _Operator) -> Iterator[str]:
    function = key.function
    if function.user is not None:
        return _user_operator(name, function.user, key.shapes)
    shapes, pitches = iter(key.shapes), iter(key.pitches)
    arguments = []
    for parameter in function.parameters:
        shape, pitch = ((parameter.elements,), 0) if parameter.direction == "scratch" else (next(shapes), next(pitches))
        arguments.append(
            writer.argument(
                parameter.name,
                parameter.dtype,
                writer.shape_of(shape),
                scalar=False,
                direction=parameter.direction,
                in_place=parameter.in_place,
                align=parameter.align,
                pitch=pitch,
            )
        )
    keys = [*writer.key("symbol", key.symbol), *writer.key("returns", "status" if function.has_status else "void")]
    keys += writer.key("check", check_of(key.symbol)) if function.check else []
    return writer.operator(name, keys, arguments)


def _user_operator(name: str, user: UserOperator, given: Sequence[tuple[int, ...]]) -> Iterator[str]:
    """Return an operator of the user, with the shapes of the model."""
    shapes = iter(given)
    lines = []
    for argument in user.arguments[: len(user.arguments) - user.returns_value]:
        keys = dict(argument.keys)
        if not argument.is_scalar and argument.direction != "scratch":
            keys["shape"] = list(next(shapes))
        lines.append([f"      - {writer.value(keys)}"])
    own = [line for key, value in user.keys.items() for line in writer.key(key, writer.value(value))]
    return writer.operator(name, own, lines)


CONSTANTS = "constants.npz"


def _constants(of: Implementation, placement: Pools) -> Iterator[str]:
    constants = {value: name for value, name in of.names.items() if value.role == "constant"}
    pools = placement.pools_of(of.emitted)
    if constants:
        yield "constants:"
        for value, name in constants.items():
            keys = {"file": of.path(CONSTANTS), "key": name, "pool": pools.get(value)}
            yield f"  {name}: {writer.flow_map(keys)}"


def _interfaces(of: Described) -> Iterator[str]:
    """Yield the inputs, outputs and states: those of all implementations."""
    program, names = of.program, of.base.names
    external = None if of.caller_memory else "false"
    inputs = {names[value]: _interface(value, names, None, external) for value in program.inputs}
    yield from writer.interface("inputs", inputs)
    labelled = {
        names[output]: _interface(output, names, _fitting(of.labels.get(number), output), external)
        for number, output in enumerate(program.outputs)
    }
    yield from writer.interface("outputs", labelled)
    if program.states:
        yield from writer.interface("state", {names[state]: _state(state, names) for state in program.states})


def _tensors(described: Described, of: Implementation) -> Iterator[str]:
    """Yield the arenas, and the views that steps name with their roots."""
    names = of.names
    views: dict[str, writer.Keys] = {names[arena]: keys for arena, keys in described.arenas.items()}
    for step in of.emitted.steps:
        for value in map(declared, step.arguments):
            inside = with_roots(value)
            for part in inside if len(inside) > 1 else ():
                if part.role in ("input", "output", "arena", "constant", "state"):
                    continue
                plain = {"dtype": part.dtype, "shape": writer.shape_of(part.shape)}
                views[names[part]] = plain if part.root is None else _view(part, names)
    if views:
        yield from writer.interface("tensors", views)


def _steps(of: Implementation, operators: Mapping[_Operator, str]) -> Iterator[str]:
    names = of.names
    yield "  steps:"
    for step in of.emitted.steps:
        user = step.function.user
        device = None if user is None or user.device is None else writer.scalar(user.device)
        yield from writer.step(operators[_key(step)], _passed(step, names), device, program=step.program)


def _passed(step: Step, names: Mapping[Value, str]) -> list[str | int | float | bool]:
    """Return the arguments of a step: names of tensors, and numbers for scalars."""
    tensors = iter([names[declared(argument)] for argument in step.arguments])
    user = step.function.user
    if user is None:
        return list(tensors)
    numbers = iter(step.scalars)
    passed = [argument for argument in user.arguments if argument.direction != "scratch"]
    return [next(numbers) if argument.is_scalar else next(tensors) for argument in passed]


def _interface(
    value: Value, names: Mapping[Value, str], labels: Sequence[str] | None = None, external: str | None = None
) -> writer.Keys:
    keys: dict[str, str | None] = {"dtype": value.dtype, "shape": writer.shape_of(value.shape)}
    if value.root is None:
        keys["external"] = external
    else:
        keys |= {"view_of": names[value.root], "offset": str(value.offset) if value.offset else None}
    quantization = value.quantization
    if quantization is not None and value.dtype in ("int8", "uint8", "int16") and len(quantization.scales) == 1:
        keys["quantization"] = writer.flow_map(
            {"scale": repr(quantization.scale), "zero_point": str(quantization.zero)}
        )
    if labels:
        keys["labels"] = writer.flow_list(map(writer.scalar, labels))
    return keys


def _fitting(labels: Sequence[str] | None, value: Value) -> Sequence[str] | None:
    """Return the class names if the output can have them: one score for each, or one class number."""
    fits = labels is not None and (value.shape[-1:] == (len(labels),) or (value.size == 1 and value.dtype != "float32"))
    return labels if fits else None


def _state(value: Value, names: Mapping[Value, str]) -> writer.Keys:
    keys: dict[str, str | None] = {"dtype": value.dtype, "shape": writer.shape_of(value.shape)}
    if value.content is not None and value.content.any():
        keys["initial"] = writer.flow_map({"file": CONSTANTS, "key": names[value]})
    if value.next is not None:
        keys["next"] = names[value.next]
    return keys


def _view(value: Value, names: Mapping[Value, str]) -> writer.Keys:
    assert value.root is not None
    return {
        "view_of": names[value.root],
        "offset": str(value.offset) if value.offset else None,
        "dtype": value.dtype if value.dtype != value.root.dtype else None,
        "shape": writer.shape_of(value.shape),
        "pitch": str(value.pitch) if value.pitch else None,
    }


def vector_lines(vectors: Vectors, outputs: Sequence[str]) -> Iterator[str]:
    """Yield the section of golden vectors; `outputs` are the names of the model's outputs."""
    yield from writer.comment(vectors.remark)
    yield "tests:"
    yield "  vectors: vectors.npz"
    tolerant = [(name, values) for name, values in zip(outputs, vectors.tolerances, strict=True) if values]
    if tolerant:
        yield "  tolerance:"
        for name, values in tolerant:
            yield f"    {name}: {writer.flow_map({key: _number(v) for key, v in values.items()})}"


def _number(value: Any) -> str:
    return json.dumps(float(f"{value:.3g}") if isinstance(value, float) else value)

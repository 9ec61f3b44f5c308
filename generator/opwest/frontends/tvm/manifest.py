# SPDX-License-Identifier: Apache-2.0
"""The manifest of an imported model, for users to read and edit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.names import ObjectFile, free_name, identifier, opening
from opwest.frontends.tvm.codegen import PREFIX, Scratch
from opwest.frontends.tvm.read import Source
from opwest.frontends.tvm.steps import Step, Steps, Tensor
from opwest.frontends.tvm.vectors import Vectors
from opwest.manifest import writer


@dataclass(frozen=True)
class Names:
    """The name of every tensor."""

    of: Mapping[Tensor, str]


def name_tensors(steps: Steps, source: Source) -> Names:
    """Return names: those of the model for inputs and outputs, numbered names for other tensors."""
    names: dict[Tensor, str] = {}
    taken: set[str] = set()

    def give(tensor: Tensor, preferred: str) -> None:
        names[tensor] = free_name(preferred, taken)

    for role, tensors, ports in (
        ("input", steps.inputs, source.inputs),
        ("output", steps.outputs, source.outputs),
    ):
        for tensor, port in zip(tensors, _ports(ports, len(tensors)), strict=True):
            give(tensor, identifier(port, role))
    for number, tensor in enumerate(steps.constants):
        give(tensor, f"constant_{number}")
    for number, tensor in enumerate(steps.intermediates):
        give(tensor, f"t{number}")
    return Names(names)


def _ports(ports: Sequence[str], count: int) -> Sequence[str]:
    return ports if len(ports) == count else [""] * count


def manifest_text(
    model: str,
    steps: Steps,
    names: Names,
    scratch: Mapping[str, tuple[Scratch, ...]],
    objects: Sequence[ObjectFile],
    vectors: Vectors | None,
    origin: str,
) -> str:
    """Return the manifest; ends with a line end."""
    operators = _operators(steps)
    return writer.document(
        opening(model, origin, ()),
        ["objects:", *(line for one in objects for line in writer.object_entry([one.name], one.target))],
        [
            "operators:",
            *(line for key, name in operators.items() for line in _operator(name, key, scratch.get(key[0], ()))),
        ],
        _constants(steps, names),
        _run(steps, operators, names),
        () if vectors is None else _tests(vectors, steps, names),
    )


def _constants(steps: Steps, names: Names) -> Iterator[str]:
    if not steps.constants:
        return
    yield "constants:"
    for tensor in steps.constants:
        name = names.of[tensor]
        yield f"  {name}: {writer.flow_map({'file': 'constants.npz', 'key': name})}"


def _run(steps: Steps, operators: Mapping[_Key, str], names: Names) -> Iterator[str]:
    yield "run:"
    for role, tensors in (("inputs", steps.inputs), ("outputs", steps.outputs)):
        yield from writer.interface(role, {names.of[tensor]: _interface(tensor) for tensor in tensors})
    yield "  steps:"
    for step in steps.steps:
        yield from writer.step(operators[_key(step)], [names.of[t] for t in step.arguments])


_Key = tuple[str, tuple[tuple[str, tuple[int, ...]], ...], int]
"""An operator of the manifest: function, tensors, results. One function may serve several shapes of equal size."""


def _key(step: Step) -> _Key:
    return step.function, tuple((t.dtype, t.shape) for t in step.arguments), step.writes


def _operators(steps: Steps) -> dict[_Key, str]:
    found: dict[_Key, str] = {}
    functions = {step.function for step in steps.steps}
    for step in steps.steps:
        key = _key(step)
        if key in found:
            continue
        name, number = step.function, 1
        while name in found.values() or (number > 1 and name in functions):
            number += 1
            name = f"{step.function}_{number}"
        found[key] = name
    return found


def _operator(name: str, key: _Key, scratch: Sequence[Scratch]) -> Iterator[str]:
    function, tensors, writes = key
    arguments = [
        writer.argument(
            f"p{number}",
            dtype,
            writer.shape_of(shape),
            direction="out" if number >= len(tensors) - writes else "in",
        )
        for number, (dtype, shape) in enumerate(tensors)
    ]
    arguments += [
        writer.argument(f"scratch{number}", one.dtype, writer.shape_of([one.elements]), direction="scratch")
        for number, one in enumerate(scratch)
    ]
    keys = [*writer.key("symbol", f"{PREFIX}{function}"), *writer.key("returns", "void")]
    return writer.operator(name, keys, arguments)


def _interface(tensor: Tensor) -> writer.Keys:
    return {"dtype": tensor.dtype, "shape": writer.shape_of(tensor.shape)}


def _tests(vectors: Vectors, steps: Steps, names: Names) -> Iterator[str]:
    yield from writer.comment(vectors.remark)
    yield "tests:"
    yield "  vectors: vectors.npz"
    tolerant = [(t, vectors.tolerances[i]) for i, t in enumerate(steps.outputs) if vectors.tolerances[i]]
    if tolerant:
        yield "  tolerance:"
        for tensor, values in tolerant:
            yield f"    {names.of[tensor]}: {writer.flow_map({key: _number(v) for key, v in values.items()})}"


def _number(value: Any) -> str:
    return json.dumps(float(f"{value:.3g}") if isinstance(value, float) else value)

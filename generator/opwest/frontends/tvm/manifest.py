# SPDX-License-Identifier: Apache-2.0
"""The manifest of an imported model, for users to read and edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opwest.compiler.names import ObjectFile, free_name, identifier, opening
from opwest.compiler.output.manifest import Vectors, vector_lines
from opwest.frontends.tvm.codegen import PREFIX, Scratch
from opwest.frontends.tvm.read import Source
from opwest.frontends.tvm.steps import Step, Steps, Tensor
from opwest.manifest import writer

Names = Mapping[Tensor, str]
"""The name of every tensor."""


def name_tensors(steps: Steps, source: Source) -> Names:
    """Return names: those of the model for inputs and outputs, numbered names for other tensors."""
    names: dict[Tensor, str] = {}
    taken: set[str] = set()
    for role, tensors, ports in (("input", steps.inputs, source.inputs), ("output", steps.outputs, source.outputs)):
        given = ports if len(ports) == len(tensors) else [""] * len(tensors)
        for tensor, port in zip(tensors, given, strict=True):
            names[tensor] = free_name(identifier(port, role), taken)
    intermediates = dict.fromkeys(t for step in steps.steps for t in step.arguments if t.role == "intermediate")
    for prefix, others in (("constant_", steps.constants), ("t", list(intermediates))):
        for number, tensor in enumerate(others):
            names[tensor] = free_name(f"{prefix}{number}", taken)
    return names


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
        ["objects:", *(line for file in objects for line in writer.object_entry([file.name], file.target))],
        [
            "operators:",
            *(line for key, name in operators.items() for line in _operator(name, key, scratch.get(key[0], ()))),
        ],
        _constants(steps, names),
        _run(steps, operators, names),
        () if vectors is None else vector_lines(vectors, [names[output] for output in steps.outputs]),
    )


def _constants(steps: Steps, names: Names) -> Iterator[str]:
    if not steps.constants:
        return
    yield "constants:"
    for tensor in steps.constants:
        name = names[tensor]
        yield f"  {name}: {writer.flow_map({'file': 'constants.npz', 'key': name})}"


def _run(steps: Steps, operators: Mapping[_Key, str], names: Names) -> Iterator[str]:
    yield "run:"
    for role, tensors in (("inputs", steps.inputs), ("outputs", steps.outputs)):
        keys = {names[t]: {"dtype": t.dtype, "shape": writer.shape_of(t.shape)} for t in tensors}
        yield from writer.interface(role, keys)
    yield "  steps:"
    for step in steps.steps:
        yield from writer.step(operators[_key(step)], [names[t] for t in step.arguments])


_Key = tuple[str, tuple[tuple[str, tuple[int, ...]], ...], int]
"""An operator of the manifest: function, tensors, results. One function may serve several shapes of equal size."""


def _key(step: Step) -> _Key:
    return step.function, tuple((t.dtype, t.shape) for t in step.arguments), step.writes


def _operators(steps: Steps) -> dict[_Key, str]:
    names: dict[_Key, str] = {}
    functions = {step.function for step in steps.steps}
    for step in steps.steps:
        key = _key(step)
        if key in names:
            continue
        name, number = step.function, 1
        while name in names.values() or (number > 1 and name in functions):
            number += 1
            name = f"{step.function}_{number}"
        names[key] = name
    return names


def _operator(name: str, key: _Key, scratch: Sequence[Scratch]) -> Iterator[str]:
    function, tensors, writes = key
    arguments = [
        writer.argument(
            f"p{number}", dtype, writer.shape_of(shape), direction="out" if number >= len(tensors) - writes else "in"
        )
        for number, (dtype, shape) in enumerate(tensors)
    ]
    arguments += [
        writer.argument(f"scratch{number}", memory.dtype, writer.shape_of([memory.elements]), direction="scratch")
        for number, memory in enumerate(scratch)
    ]
    keys = [*writer.key("symbol", f"{PREFIX}{function}"), *writer.key("returns", "void")]
    return writer.operator(name, keys, arguments)

# SPDX-License-Identifier: Apache-2.0
"""The manifest of an imported model, for users to read and edit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opwest.importers.text import WIDTH, ObjectFile, comment, free_name, identifier, object_line
from opwest.importers.tvm.codegen import PREFIX, Scratch
from opwest.importers.tvm.source import Port, Source
from opwest.importers.tvm.steps import Step, Steps, Tensor
from opwest.importers.tvm.vectors import Vectors


@dataclass(frozen=True)
class Names:
    """The name of every tensor."""

    of: Mapping[Tensor, str]


def name_tensors(steps: Steps, source: Source) -> Names:
    """Return names: those of the model for inputs and outputs, numbers for the rest."""
    names: dict[Tensor, str] = {}
    taken: set[str] = set()

    def give(tensor: Tensor, wanted: str) -> None:
        names[tensor] = free_name(wanted, taken)

    for role, tensors, ports in (
        ("input", steps.inputs, source.inputs),
        ("output", steps.outputs, source.outputs),
    ):
        for tensor, port in zip(tensors, _ports(ports, len(tensors)), strict=True):
            give(tensor, identifier(port.name, role))
    for number, tensor in enumerate(steps.constants):
        give(tensor, f"constant_{number}")
    for number, tensor in enumerate(steps.intermediates):
        give(tensor, f"t{number}")
    return Names(names)


def _ports(ports: Sequence[Port], count: int) -> Sequence[Port]:
    return ports if len(ports) == count else [Port("")] * count


def manifest_text(
    model: str,
    steps: Steps,
    names: Names,
    source: Source,
    scratch: Mapping[str, tuple[Scratch, ...]],
    objects: Sequence[ObjectFile],
    vectors: Vectors | None,
    origin: str,
) -> str:
    """Return the manifest; ends with a line end."""
    operators = _operators(steps)
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        *comment(f"{origin} Yours to edit: boards, memory pools, names."),
        *(line for remark in source.remarks for line in comment(remark[:1].upper() + remark[1:] + ".")),
        "version: 1",
        f"model: {model}",
        "",
        "objects:",
        *(object_line(one) for one in objects),
        "",
        "operators:",
        *(line for key, name in operators.items() for line in _operator(name, key, scratch.get(key[0], ()))),
        "",
    ]
    if steps.constants:
        lines.append("constants:")
        lines += [f"  {names.of[t]}: {{file: constants.npz, key: {names.of[t]}}}" for t in steps.constants]
        lines.append("")
    lines.append("run:")
    for role, tensors, ports in (("inputs", steps.inputs, source.inputs), ("outputs", steps.outputs, source.outputs)):
        lines.append(f"  {role}:" if tensors else f"  {role}: {{}}")
        lines += [_interface(names.of[t], t, p) for t, p in zip(tensors, _ports(ports, len(tensors)), strict=True)]
    lines.append("  steps:")
    lines += [line for step in steps.steps for line in _step(step, operators[_key(step)], names)]
    if vectors is not None:
        lines += ["", *_tests(vectors, steps, names)]
    return "".join(f"{line}\n" for line in lines)


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
    yield f"  {name}:"
    yield f"    symbol: {PREFIX}{function}"
    yield "    returns: void"
    yield "    args:"
    for number, (dtype, shape) in enumerate(tensors):
        is_result = number >= len(tensors) - writes
        direction = ", direction: out" if is_result else ""
        yield f"      - {{name: p{number}, dtype: {dtype}, shape: {list(shape)}{direction}}}"
    for number, one in enumerate(scratch):
        yield f"      - {{name: scratch{number}, dtype: {one.dtype}, shape: [{one.elements}], direction: scratch}}"


def _interface(name: str, tensor: Tensor, port: Port) -> str:
    quantization = ""
    if port.quantization is not None and tensor.dtype in ("int8", "uint8", "int16"):
        scale, zero = port.quantization
        quantization = f", quantization: {{scale: {scale!r}, zero_point: {zero}}}"
    return f"    {name}: {{dtype: {tensor.dtype}, shape: {list(tensor.shape)}{quantization}}}"


def _step(step: Step, operator: str, names: Names) -> Iterator[str]:
    arguments = [names.of[t] for t in step.arguments]
    line = f"    - {{call: {operator}, args: [{', '.join(arguments)}]}}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"    - call: {operator}"
    yield f"      args: [{', '.join(arguments)}]"


def _tests(vectors: Vectors, steps: Steps, names: Names) -> Iterator[str]:
    yield from comment(vectors.remark)
    yield "tests:"
    yield "  vectors: vectors.npz"
    tolerant = [(t, vectors.tolerances[i]) for i, t in enumerate(steps.outputs) if vectors.tolerances[i]]
    if tolerant:
        yield "  tolerance:"
        for tensor, values in tolerant:
            yield f"    {names.of[tensor]}: {{{', '.join(f'{k}: {_number(v)}' for k, v in values.items())}}}"


def _number(value: Any) -> str:
    return json.dumps(float(f"{value:.3g}") if isinstance(value, float) else value)

# SPDX-License-Identifier: Apache-2.0
"""The steps of a model with an NPU, and the manifest's parts for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Function, Parameter
from opwest.compiler.graph.user import Argument, UserOperator
from opwest.compiler.ir.program import Value
from opwest.compiler.output.emit import Emitted, Step
from opwest.compiler.output.source import c_file
from opwest.frontends.vela.arena import DEVICE
from opwest.frontends.vela.file import ARENA, FAST, WEIGHTS, Call, Meaning, VelaFile
from opwest.manifest import writer
from opwest.objects.ethos_u.payload import ALIGNMENT

SOURCE = "npu.c"
SYMBOL = "npu"
REGION = "region_"
"""The start of the names of arguments that are base pointers: opwest check compares them with the programs."""
_COMMENTS = ("the weights", "the scratch memory, with inputs and outputs", "the fast scratch memory")
_TEXT = """\
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the NPU, written by `opwest import`. You can edit this file.
 *
 * The program of the step is Vela's command stream; its base pointers are the arguments.
 */
#include <stdint.h>

#include <opwest/accelerator.h>
#include <opwest/ethos_u.h>

{head}
{{
	const struct opwest_ethos_u_inference inference = {{
		.count = {count}U,
		.regions = {{
{regions}
		}},
	}};

	return opwest_ethos_u_enqueue(launch, &inference);
}}
"""


def arguments_of(meaning: Meaning) -> list[int]:
    """Return the regions that are arguments: the arena is one, also if it is two regions."""
    return list(dict.fromkeys(meaning.regions))


def source_text(file: VelaFile, meaning: Meaning) -> str:
    """Return the file."""
    sizes = file.memory.sizes
    parameters = [
        f"{'const ' if region == WEIGHTS else ''}uint8_t *{REGION}{region}"
        for region in arguments_of(meaning)
        if sizes[region]
    ]
    head = f"int32_t {SYMBOL}({', '.join([*parameters, 'const struct opwest_launch *launch'])})"
    regions = "\n".join(
        f"\t\t\t/* {_COMMENTS[region]} */\n\t\t\t{{.data = {REGION}{region}, .size = {sizes[region]}U}},"
        if sizes[region]
        else "\t\t\t{0},"
        for region in meaning.regions
    )
    return _TEXT.format(head=head, count=len(meaning.regions), regions=regions)


OVERLAY = "npu.overlay"
_NAMES = {WEIGHTS: "npu_weights", ARENA: "arena", FAST: "npu_fast"}
"""The names of tensors in the manifest, by region."""
_ROLES = {WEIGHTS: "constant", ARENA: "arena", FAST: "arena"}
_OVERLAY = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* The NPU as an accelerator of opwest; `ethosu0` is the node of Zephyr's driver. */
/ {
	npu0: npu0 {
		compatible = "opwest,ethos-u";
		npu = <&ethosu0>;
	};
};
"""


@dataclass(frozen=True, eq=False)
class NpuStep:
    """The operator that all subgraphs for the NPU are steps of."""

    operator: UserOperator
    function: Function
    values: tuple[Value, ...]
    """The arguments: the weights if there are any, the arena, the fast scratch memory if there is one of its own."""
    programs: Mapping[Call, str]
    """The files of the programs."""


def npu_step(file: VelaFile, meaning: Meaning, place: str) -> NpuStep:
    """Return the operator, with its files."""
    sizes = file.memory.sizes
    regions = [region for region in arguments_of(meaning) if sizes[region]]
    where = Location(place)
    arguments = []
    values = []
    for region in regions:
        name, direction = f"{REGION}{region}", "in" if region == WEIGHTS else "inout"
        keys = {"name": name, "dtype": "uint8"} | ({"direction": direction} if direction != "in" else {})
        shape = (sizes[region],)
        arguments.append(Argument(name, "uint8", shape, direction, False, where, {**keys, "align": ALIGNMENT}))
        content = file.memory.weights if region == WEIGHTS else None
        values.append(Value(_NAMES[region], _ROLES[region], "uint8", shape, None, content))
    files, programs = _programs(file.calls)
    files[SOURCE] = c_file(source_text(file, meaning))
    files[OVERLAY] = _OVERLAY.encode()
    npu = meaning.npu
    operator = UserOperator(
        SYMBOL,
        where,
        tuple(arguments),
        False,
        {"symbol": SYMBOL, "device": {"type": npu.name, "launch": True}, "async": True},
        DEVICE,
        {
            "objects": [{"files": [SOURCE]}],
            # A program is a part of each launch: to change it costs nothing.
            "devices": {DEVICE: {"devicetree": {"nodelabel": DEVICE}, "type": npu.name, "switching": "free"}},
        },
        files,
    )
    parameters = tuple(Parameter(argument.name, "uint8", argument.direction) for argument in arguments)
    return NpuStep(operator, Function(SYMBOL, parameters, "", user=operator), tuple(values), programs)


def _programs(calls: Mapping[UserOperator, Call]) -> tuple[dict[str, bytes], dict[Call, str]]:
    """Return the files of the programs, equal ones once."""
    files: dict[str, bytes] = {}
    names: dict[bytes, str] = {}
    for call in calls.values():
        name = names.setdefault(call.payload, f"programs/npu_{len(names)}.cop")
        files[name] = call.payload
    return files, {call: names[call.payload] for call in calls.values()}


def with_npu(emitted: Emitted, file: VelaFile, npu: NpuStep) -> Emitted:
    """Return the steps with those of the NPU as calls of its operator."""
    steps = list(emitted.steps)
    for number, step in enumerate(steps):
        call = file.calls.get(step.function.user) if step.function.user is not None else None
        if call is not None:
            program = npu.programs[call]
            steps[number] = Step(npu.function, SYMBOL, npu.values, step.label, step.variant, (), program)
    return replace(emitted, steps=tuple(steps))


def place_views(places: Mapping[Value, int], arena: Value) -> None:
    """Let values be views of the arena at their offsets, bytes."""
    assert np.dtype(arena.dtype).itemsize == 1
    for value, offset in places.items():
        value.root, value.offset = arena, offset


def arenas_of(npu: NpuStep) -> Mapping[Value, writer.Keys]:
    """Return the declarations of the tensors that Vela has planned."""
    pools = {_NAMES[ARENA]: "arena", _NAMES[FAST]: "fast"}
    return {
        value: {
            "dtype": value.dtype,
            "shape": writer.shape_of(value.shape),
            "pool": pools[value.name],
            "align": str(ALIGNMENT),
            "arena": "true",
        }
        for value in npu.values
        if value.role == "arena"
    }


def application_of(meaning: Meaning, boards: Sequence[str]) -> Sequence[str]:
    """Return the section `application` of the manifest: the NPU's driver, and its node on boards."""
    series, macs = meaning.npu.name.removeprefix("ethos-").upper().split("-")
    options = {"CONFIG_ETHOS_U": "y"}
    if macs != "32":  # Zephyr has no symbol for it
        options[f"CONFIG_ETHOS_{series[0]}{series[1:]}_{macs}"] = "y"
    lines = list(writer.kconfig(options))
    if boards:
        lines += ["  overlays:", *(f"    {writer.scalar(board)}: {OVERLAY}" for board in boards)]
    return lines

# SPDX-License-Identifier: Apache-2.0
"""The manifest of an imported model, for users to read and edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwest.compiler.names import opening
from opwest.frontends.mlf.draft import Argument, Draft, Operator, Tensor
from opwest.manifest import writer
from opwest.manifest.placeholders import MARK
from opwest.model.types.conventions import UNPACKED


def manifest_text(model: str, draft: Draft, origin: str, compat: Sequence[str]) -> str:
    """Return the manifest; ends with a line end. `compat` is its section of that name."""
    return writer.document(
        opening(model, origin, (*draft.remarks, *draft.warnings)),
        compat,
        ["objects:", *(line for target, file in draft.objects for line in writer.object_entry([file], target))],
        _devices(draft),
        ["operators:", *(line for operator in draft.operators for line in _operator(operator, draft))],
        _constants(draft),
        writer.externals(draft.externals),
        _run(draft),
        writer.kconfig(draft.kconfig),
    )


def _devices(draft: Draft) -> Iterator[str]:
    if not draft.devices:
        return
    yield "devices:"
    for name in draft.devices:
        if name in draft.accelerators:
            text = (
                "The hooks of its driver replace TVMDevice…Activate, Open, Close and Deactivate; the model's open "
                "activates it once. Specify its devicetree node, and a program if it needs one."
            )
            yield from writer.comment(text, "  ")
            yield f"  {writer.scalar(name)}:"
            yield f"    devicetree: {writer.flow_map({'nodelabel': MARK})}"
            yield f"    type: {writer.scalar(name)}"
            continue
        yield from writer.comment(
            "TVM passes a bare pointer: specify its type, the header, and the expression for your board."
        )
        yield f"  {writer.scalar(name)}:"
        yield f"    handle: {writer.flow_map({'type': MARK, 'header': MARK, 'expression': MARK})}"


def _operator(operator: Operator, draft: Draft) -> Iterator[str]:
    if operator.remark:
        yield from writer.comment(operator.remark, "  ")
    device = writer.flow_map({"handle": MARK}) if operator.device else None
    if operator.device and operator.device_name in draft.accelerators:
        device = writer.flow_map({"type": writer.scalar(str(operator.device_name))})
    keys = [
        *writer.key("symbol", writer.scalar(operator.symbol)),
        *writer.key("convention", operator.convention.name if operator.convention is not UNPACKED else None),
        *writer.key("workspace", str(operator.workspace) if operator.workspace else None),
        *writer.key("returns", "void" if operator.void else None),
        *writer.key("device", device),
    ]
    yield from writer.operator(operator.name, keys, map(_argument, operator.args))


def _argument(argument: Argument) -> Iterator[str]:
    return writer.argument(
        argument.name,
        argument.dtype,
        writer.shape_of(argument.shape),
        direction=argument.direction,
        align=argument.align,
        pointer=argument.pointer,
        in_place=() if argument.in_place is None else (argument.in_place,),
    )


def _constants(draft: Draft) -> Iterator[str]:
    if not draft.constants:
        return
    yield "constants:"
    for constant in draft.constants:
        if constant.remark:
            yield from writer.comment(constant.remark, "  ")
        keys = {
            "file": writer.scalar(constant.file),
            "key": writer.scalar(constant.key) if constant.key else None,
            "dtype": constant.dtype,
            "shape": None if constant.shape is None else writer.shape_of(constant.shape),
            "align": str(constant.align) if constant.align else None,
        }
        yield f"  {writer.scalar(constant.name)}: {writer.flow_map(keys)}"


def _run(draft: Draft) -> Iterator[str]:
    yield "run:"
    yield from writer.interface("inputs", _tensors(draft.inputs))
    yield from writer.interface("outputs", _tensors(draft.outputs))
    if draft.aligned:
        yield from writer.interface("tensors", {name: {"align": str(align)} for name, align in draft.aligned.items()})
    if draft.planner is not None:
        yield f"  memory_planner: {draft.planner}"
    yield "  steps:"
    for step in draft.steps:
        yield from writer.step(step.operator, step.args, step.device)


def _tensors(tensors: tuple[Tensor, ...]) -> dict[str, dict[str, str]]:
    return {tensor.name: {"dtype": tensor.dtype, "shape": writer.shape_of(tensor.shape)} for tensor in tensors}

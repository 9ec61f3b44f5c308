# SPDX-License-Identifier: Apache-2.0
"""The manifest of an imported model, for users to read and edit."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.importers.mlf.draft import Argument, Constant, Draft, Operator, Step, Tensor
from opwest.importers.text import WIDTH, ObjectFile, comment, object_line
from opwest.manifest.marks import MARK
from opwest.model.conventions import UNPACKED


def manifest_text(model: str, draft: Draft, origin: str) -> str:
    """Return the manifest; ends with a line end."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        *comment(f"{origin} Yours to edit: boards, memory pools, names."),
        *(line for one in (*draft.remarks, *draft.warnings) for line in comment(one[:1].upper() + one[1:] + ".")),
        "version: 1",
        f"model: {model}",
        "",
        "objects:",
        *(object_line(ObjectFile(file, target)) for target, file in draft.objects),
        "",
        *_devices(draft),
        "operators:",
        *(line for operator in draft.operators for line in _operator(operator)),
        "",
        *_constants(draft),
        *_externals(draft),
        "run:",
        *_tensors("inputs", draft.inputs),
        *_tensors("outputs", draft.outputs),
        "  steps:",
        *(line for step in draft.steps for line in _step(step)),
    ]
    if draft.kconfig:
        lines += ["", "application:", "  kconfig:"]
        lines += [f"    {symbol}: {value}" for symbol, value in sorted(draft.kconfig.items())]
    return "".join(f"{line}\n" for line in lines)


def _devices(draft: Draft) -> Iterator[str]:
    if not draft.devices:
        return
    yield "devices:"
    for name in draft.devices:
        yield from comment("TVM passed a bare pointer: say which type it has, and what it points at on your board.")
        yield f"  {name}:"
        yield f"    handle: {{type: {MARK}, header: {MARK}, expression: {MARK}}}"
    yield ""


def _operator(operator: Operator) -> Iterator[str]:
    if operator.remark:
        yield from (f"  {line}" for line in comment(operator.remark))
    yield f"  {operator.name}:"
    yield f"    symbol: {operator.symbol}"
    if operator.convention is not UNPACKED:
        yield f"    convention: {operator.convention.name}"
    if operator.workspace:
        yield f"    workspace: {operator.workspace}"
    if operator.device:
        yield "    device:"
        yield f"      handle: {MARK}"
    yield "    args:" if operator.args else "    args: []"
    for argument in operator.args:
        yield f"      - {{{_argument(argument)}}}"


def _argument(argument: Argument) -> str:
    parts = [f"name: {argument.name}", f"dtype: {argument.dtype}", f"shape: {list(argument.shape)}"]
    if argument.direction != "in":
        parts.append(f"direction: {argument.direction}")
    if argument.align:
        parts.append(f"align: {argument.align}")
    if argument.pointer:
        parts.append("pointer: true")
    return ", ".join(parts)


def _constants(draft: Draft) -> Iterator[str]:
    if not draft.constants:
        return
    yield "constants:"
    for constant in draft.constants:
        if constant.remark:
            yield from (f"  {line}" for line in comment(constant.remark))
        yield f"  {constant.name}: {{{_constant(constant)}}}"
    yield ""


def _constant(constant: Constant) -> str:
    parts = [f"file: {constant.file}"]
    if constant.key:
        parts.append(f"key: {constant.key}")
    if constant.dtype:
        parts.append(f"dtype: {constant.dtype}")
    if constant.shape is not None:
        parts.append(f"shape: {list(constant.shape)}")
    if constant.align:
        parts.append(f"align: {constant.align}")
    return ", ".join(parts)


def _externals(draft: Draft) -> Iterator[str]:
    if not draft.externals:
        return
    yield "externals:"
    for symbol, (origin, option) in draft.externals.items():
        kconfig = f", kconfig: {option}" if option else ""
        yield f'  - {{symbol: {symbol}, from: "{origin}"{kconfig}}}'
    yield ""


def _tensors(role: str, tensors: tuple[Tensor, ...]) -> Iterator[str]:
    yield f"  {role}:" if tensors else f"  {role}: {{}}"
    for tensor in tensors:
        yield f"    {tensor.name}: {{dtype: {tensor.dtype}, shape: {list(tensor.shape)}}}"


def _step(step: Step) -> Iterator[str]:
    device = f", device: {step.device}" if step.device else ""
    line = f"    - {{call: {step.operator}{device}, args: [{', '.join(step.args)}]}}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"    - call: {step.operator}"
    if step.device:
        yield f"      device: {step.device}"
    yield f"      args: [{', '.join(step.args)}]"

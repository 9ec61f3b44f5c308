# SPDX-License-Identifier: Apache-2.0
"""The draft as YAML: every section with a line that says what it is, marks where somebody has to decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwest.drafting.selection import Chosen, Entry, Selection
from opwest.drafting.signatures import STRUCT_DEVICE, Parameter
from opwest.drafting.sketch import End, Sketch
from opwest.drafting.targets import OwnTarget
from opwest.manifest import writer
from opwest.manifest.marks import MARK
from opwest.manifest.writer import comment, flow_list, remark, remarked, scalar

_HEADER = f"""\
# A draft by `opwest init`. {MARK} stands where the files do not tell: `opwest check` names each place, with what it
# takes, and nothing is generated while one is left. What is "guessed" is likely, and worth a look.
version: 1
"""
_MOST_LEFT_OUT = 100


def draft_text(model: str, selection: Selection, run: Sketch) -> str:
    """Return the text of a manifest; ends with a line end."""
    return writer.document(
        _HEADER.splitlines(),
        [
            f"# The prefix of every C symbol that firmware sees: {model}_run(), <{model}.h>.",
            f"model: {scalar(model)}",
        ],
        _targets(selection.own_targets),
        _objects(selection),
        _devices(run),
        _operators(selection),
        _constants(run),
        _externals(selection),
        _run(run),
    )


def _targets(own: Sequence[OwnTarget]) -> Iterator[str]:
    if not own:
        return
    lines = ["# None of the named targets (`opwest targets`) is what these objects were made for.", "targets:"]
    for target in own:
        keys = {key: scalar(str(value)) if key != "bits" else str(value) for key, value in target.keys}
        lines.append(f"  {scalar(target.name)}:")
        lines.append(
            f"    {writer.flow_map({**keys, 'kconfig': MARK})}" + remark("the symbols that select it: {CONFIG_...: y}")
        )
    yield from lines


def _objects(selection: Selection) -> Iterator[str]:
    yield "# What is linked, per target; entries without a target are compiled for whatever is built."
    yield "objects:"
    for entry in selection.entries:
        yield from _entry(entry)
    if selection.unlisted:
        yield "# Not listed:"
        for name, reason in selection.unlisted.items():
            yield from comment(f"- {name}: {reason}", hanging="  ")


def _entry(entry: Entry) -> Iterator[str]:
    also = f"guessed; fits too: {', '.join(entry.also)}" if entry.also else ""
    if also:
        yield from comment(also, "  ", "  ")
    yield from writer.object_entry(entry.files, entry.target)
    if entry.is_ir and entry.targets == ("",):
        yield from writer.key(
            "targets", flow_list([MARK]), "what to compile the IR for: `opwest targets` lists the names"
        )
    elif entry.targets:
        yield from writer.key("targets", flow_list(map(scalar, entry.targets)))
    if entry.state:
        names = list(dict.fromkeys(entry.state))
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        yield from writer.key("stateful", MARK, f"true, if writable variables are meant: {shown}; else make them const")


def _devices(run: Sketch) -> Iterator[str]:
    if not run.devices:
        return
    lines = ["# What operators take as their last argument; guessed: one for all. `driver: none`, if its driver is not"]
    lines += ["# one of opwest's class (opwest/accelerator.h).", "devices:"]
    for name, handle in run.devices.items():
        if handle == STRUCT_DEVICE:
            way = {"devicetree": writer.flow_map({"nodelabel": MARK})}
        else:
            keys = {"type": scalar(handle), "header": MARK, "expression": MARK}
            way = {"handle": writer.flow_map(keys)}
        lines.append(f"  {name}: {writer.flow_map(way)}")
    yield from lines


def _operators(selection: Selection) -> Iterator[str]:
    yield "# What the operators look like from C, arguments in the order of their parameters."
    yield "operators:"
    for operator in selection.operators:
        yield from _operator(operator)
    left = list(selection.left_out.items())
    if left:
        yield "# Functions that do not look like operators:"
        for symbol, reason in left[:_MOST_LEFT_OUT]:
            yield from comment(f"- {symbol}: {reason}", hanging="  ")
        if len(left) > _MOST_LEFT_OUT:
            yield f"# - and {len(left) - _MOST_LEFT_OUT} more"


def _operator(operator: Chosen) -> Iterator[str]:
    signature = operator.signature
    missing = f"not in the files for {', '.join(operator.missing_in)}" if operator.missing_in else ""
    origin = f"from the {signature.origin} of {operator.place}" if signature else f"in {operator.place}"
    if signature is not None and signature.origin == "C":
        origin = f"from {operator.place}"
    symbol = scalar(operator.symbol) if operator.name != operator.symbol else None
    keys = [*writer.key("symbol", symbol)]
    end = remark(origin, missing)
    if signature is None:
        keys += writer.key("returns", MARK, "status (int32_t, 0 when all is well) or void")
        keys += writer.key(
            "args", flow_list([MARK]), "{name: x, dtype: int8, shape: [1, 8]}, ...: compile with -g to have them"
        )
        yield from writer.operator(operator.name, keys, None, end)
        return
    keys += writer.key("returns", None if signature.returns_status else "void")
    device = signature.device
    if device:
        handle = scalar(device.handle) if device.handle != STRUCT_DEVICE else None
        keys += writer.key("device", writer.flow_map({"handle": handle}), *device.remarks, _said(device))
    yield from writer.operator(operator.name, keys, map(_argument, signature.arguments), end)


def _said(parameter: Parameter) -> str:
    return f"the source says: {parameter.comment}" if parameter.comment else ""


def _argument(argument: Parameter) -> Iterator[str]:
    return writer.argument(
        argument.name,
        argument.dtype or MARK,
        None if argument.role == "scalar" else _shape(argument),
        direction=argument.direction or MARK,
        remarks=(*argument.remarks, _said(argument)),
    )


def _shape(argument: Parameter) -> str:
    return MARK if argument.shape is None else flow_list(map(str, argument.shape))


def _constants(run: Sketch) -> Iterator[str]:
    if not run.constants:
        return
    lines = [
        "# Parameters that stay in flash, guessed by the names of arguments: .npy, .npz with `key: ...`, or raw bytes.",
        "constants:",
    ]
    lines += [f"  {name}: {writer.flow_map({'file': MARK})}" + remark(end.words) for name, end in run.constants.items()]
    yield from lines


def _externals(selection: Selection) -> Iterator[str]:
    if not selection.externals:
        return
    lines = [
        "# Needed by the objects, and neither in them nor in the C library: who provides it, in words. The option that",
        "# brings it can be added: `kconfig: CONFIG_...`.",
        "externals:",
    ]
    for symbol, places in selection.externals.items():
        shown = ", ".join(places[:3]) + (", …" if len(places) > 3 else "")
        hint = "compile with -fno-stack-protector instead" if symbol.startswith("__stack_chk") else ""
        lines += remarked(f"  - {writer.flow_map({'symbol': scalar(symbol), 'from': MARK})}", f"for {shown}", hint)
    yield from lines


def _run(run: Sketch) -> Iterator[str]:
    yield "# One inference. A name that is neither an input, an output nor a constant is an intermediate tensor."
    yield "run:"
    yield from _interface("inputs", run.inputs, run.open_inputs, run.is_complete)
    yield from _interface("outputs", run.outputs, run.open_outputs, run.is_complete)
    if len(run.steps) > 1:
        yield "  # Each operator once, in the order of the files where no name tells: reorder, repeat or remove them."
    yield "  steps:"
    for step in run.steps:
        guessed = f"guessed by name: {', '.join(step.guessed)}" if step.guessed else ""
        yield from writer.step(step.call, step.args, step.device, remark(guessed))


def _interface(key: str, known: dict[str, Parameter], open_ends: Sequence[End], is_complete: bool) -> Iterator[str]:
    """Yield the inputs or the outputs, with marks where several arguments come in question."""
    if is_complete and not open_ends:
        tensors = {name: {"dtype": one.dtype or MARK, "shape": _shape(one)} for name, one in known.items()}
        yield from writer.interface(key, tensors)
        return
    if open_ends:
        yield from comment(f"One of these, or several: {', '.join(end.words for end in open_ends)}", "  ", hanging="  ")
    dtypes = {end.argument.dtype for end in open_ends}
    dtype = dtypes.pop() if len(dtypes) == 1 and is_complete else None
    yield from writer.interface(key, {MARK: {"dtype": dtype or MARK, "shape": MARK}})

# SPDX-License-Identifier: Apache-2.0
"""The draft as YAML: every section with a line that says what it is, marks where somebody has to decide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from opwest.drafting.selection import Chosen, Entry, Selection
from opwest.drafting.signatures import STRUCT_DEVICE, Parameter
from opwest.drafting.sketch import End, Sketch
from opwest.drafting.targets import OwnTarget
from opwest.manifest.marks import MARK

_HEADER = f"""\
# A draft by `opwest init`. {MARK} stands where the files do not tell: `opwest check` names each place, with what it
# takes, and nothing is generated while one is left. What is "guessed" is likely, and worth a look.
version: 1
"""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*\Z")
_RESERVED = frozenset("null true false Null True False NULL TRUE FALSE".split())
_MOST_LEFT_OUT = 100
_WIDTH = 118


def draft_text(model: str, selection: Selection, run: Sketch) -> str:
    """Return the text of a manifest; ends with a line end."""
    sections = [
        _HEADER,
        f"# The prefix of every C symbol that firmware sees: {model}_run(), <{model}.h>.\nmodel: {scalar(model)}\n",
        *_targets(selection.own_targets),
        _lines(_objects(selection)),
        *_devices(run),
        _lines(_operators(selection)),
        *_constants(run),
        *_externals(selection),
        _lines(_run(run)),
    ]
    return "\n".join(sections)


def scalar(text: str) -> str:
    """Return a string as YAML reads it back."""
    return text if _PLAIN.match(text) and text not in _RESERVED else json.dumps(text, ensure_ascii=False)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _remark(*remarks: str) -> str:
    """Return a comment for the end of a line; what comes from files can't end it."""
    plain = ["".join(c if c.isprintable() else "?" for c in one) for one in remarks if one]
    return f"  # {'; '.join(plain)}" if plain else ""


def _remarked(line: str, *remarks: str) -> Iterator[str]:
    """Yield a line with a comment at its end, or before it where both are too long for one."""
    remark = _remark(*remarks)
    if len(line) + len(remark) <= _WIDTH:
        yield line + remark
        return
    yield from _comment("; ".join(one for one in remarks if one), line[: len(line) - len(line.lstrip())])
    yield line


def _comment(text: str, indent: str = "") -> Iterator[str]:
    """Yield a comment, folded where it is long."""
    line = f"{indent}#"
    for word in "".join(c if c.isprintable() else "?" for c in text).split():
        if len(line) + 1 + len(word) > _WIDTH and line.strip() != "#":
            yield line
            line = f"{indent}#  "
        line += f" {word}"
    yield line


def _targets(own: Sequence[OwnTarget]) -> Iterator[str]:
    if not own:
        return
    lines = ["# None of the named targets (`opwest targets`) is what these objects were made for.", "targets:"]
    for target in own:
        keys = ", ".join(f"{key}: {scalar(str(value)) if key != 'bits' else value}" for key, value in target.keys)
        lines.append(f"  {scalar(target.name)}:")
        lines.append(f"    {{{keys}, kconfig: {MARK}}}" + _remark("the symbols that select it: {CONFIG_...: y}"))
    yield _lines(lines)


def _objects(selection: Selection) -> Iterator[str]:
    yield "# What is linked, per target; entries without a target are compiled for whatever is built."
    yield "objects:"
    for entry in selection.entries:
        yield from _entry(entry)
    if selection.unlisted:
        yield "# Not listed:"
        for name, reason in selection.unlisted.items():
            yield from _comment(f"- {name}: {reason}")


def _entry(entry: Entry) -> Iterator[str]:
    also = f"guessed; fits too: {', '.join(entry.also)}" if entry.also else ""
    first = "  - "
    if also:
        yield from _comment(also, "  ")
    if entry.target is not None:
        yield f"{first}target: {scalar(entry.target)}"
        first = "    "
    files = [scalar(name) for name in entry.files]
    if len(files) == 1 or sum(map(len, files)) + 2 * len(files) < _WIDTH - 14:
        yield f"{first}files: {_list(files)}"
    else:
        yield f"{first}files:"
        yield from (f"      - {name}" for name in files)
    if entry.is_ir and entry.targets == ("",):
        yield f"    targets: [{MARK}]" + _remark("what to compile the IR for: `opwest targets` lists the names")
    elif entry.targets:
        yield f"    targets: {_list(map(scalar, entry.targets))}"
    if entry.state:
        names = list(dict.fromkeys(entry.state))
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        yield from _remarked(
            f"    stateful: {MARK}", f"true, if writable variables are meant: {shown}; else make them const"
        )


def _devices(run: Sketch) -> Iterator[str]:
    if not run.devices:
        return
    lines = ["# What operators take as their last argument; guessed: one for all. `driver: none`, if its driver is not"]
    lines += ["# one of opwest's class (opwest/accelerator.h).", "devices:"]
    for name, handle in run.devices.items():
        if handle == STRUCT_DEVICE:
            lines.append(f"  {name}: {{devicetree: {{nodelabel: {MARK}}}}}")
        else:
            lines.append(f"  {name}: {{handle: {{type: {scalar(handle)}, header: {MARK}, expression: {MARK}}}}}")
    yield _lines(lines)


def _operators(selection: Selection) -> Iterator[str]:
    yield "# What the operators look like from C, arguments in the order of their parameters."
    yield "operators:"
    for operator in selection.operators:
        yield from _operator(operator)
    left = list(selection.left_out.items())
    if left:
        yield "# Functions that do not look like operators:"
        for symbol, reason in left[:_MOST_LEFT_OUT]:
            yield from _comment(f"- {symbol}: {reason}")
        if len(left) > _MOST_LEFT_OUT:
            yield f"# - and {len(left) - _MOST_LEFT_OUT} more"


def _operator(operator: Chosen) -> Iterator[str]:
    signature = operator.signature
    missing = f"not in the files for {', '.join(operator.missing_in)}" if operator.missing_in else ""
    origin = f"from the {signature.origin} of {operator.place}" if signature else f"in {operator.place}"
    if signature is not None and signature.origin == "C":
        origin = f"from {operator.place}"
    yield f"  {scalar(operator.name)}:" + _remark(origin, missing)
    if operator.name != operator.symbol:
        yield f"    symbol: {scalar(operator.symbol)}"
    if signature is None:
        yield f"    returns: {MARK}" + _remark("status (int32_t, 0 when all is well) or void")
        yield f"    args: [{MARK}]" + _remark(
            "{name: x, dtype: int8, shape: [1, 8]}, ...: compile with -g to have them"
        )
        return
    if not signature.returns_status:
        yield "    returns: void"
    device = signature.device
    if device:
        handle = f"handle: {scalar(device.handle)}" if device.handle != STRUCT_DEVICE else ""
        yield from _remarked(f"    device: {{{handle}}}", *device.remarks, _said(device))
    yield "    args:"
    for argument in signature.arguments:
        yield from _remarked(f"      - {_argument(argument)}", *argument.remarks, _said(argument))


def _said(parameter: Parameter) -> str:
    return f"the source says: {parameter.comment}" if parameter.comment else ""


def _argument(argument: Parameter) -> str:
    keys = [f"name: {scalar(argument.name)}", f"dtype: {argument.dtype or MARK}"]
    if argument.role == "scalar":
        keys.append("scalar: true")
    else:
        keys.append(f"shape: {_shape(argument)}")
        if argument.direction != "in":
            keys.append(f"direction: {argument.direction or MARK}")
    return f"{{{', '.join(keys)}}}"


def _shape(argument: Parameter) -> str:
    return MARK if argument.shape is None else _list(map(str, argument.shape))


def _constants(run: Sketch) -> Iterator[str]:
    if not run.constants:
        return
    lines = [
        "# Parameters that stay in flash, guessed by the names of arguments: .npy, .npz with `key: ...`, or raw bytes.",
        "constants:",
    ]
    lines += [f"  {name}: {{file: {MARK}}}" + _remark(end.words) for name, end in run.constants.items()]
    yield _lines(lines)


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
        lines += _remarked(f"  - {{symbol: {scalar(symbol)}, from: {MARK}}}", f"for {shown}", hint)
    yield _lines(lines)


def _run(run: Sketch) -> Iterator[str]:
    yield "# One inference. A name that is neither an input, an output nor a constant is an intermediate tensor."
    yield "run:"
    yield from _interface("inputs", run.inputs, run.open_inputs, run.is_complete)
    yield from _interface("outputs", run.outputs, run.open_outputs, run.is_complete)
    if len(run.steps) > 1:
        yield "  # Each operator once, in the order of the files where no name tells: reorder, repeat or remove them."
    yield "  steps:"
    for step in run.steps:
        device = f", device: {step.device}" if step.device else ""
        remark = f"guessed by name: {', '.join(step.guessed)}" if step.guessed else ""
        yield f"    - {{call: {scalar(step.call)}{device}, args: {_list(map(scalar, step.args))}}}" + _remark(remark)


def _interface(key: str, known: dict[str, Parameter], open_ends: Sequence[End], is_complete: bool) -> Iterator[str]:
    """Yield the inputs or the outputs, with marks where several arguments come in question."""
    if is_complete and not open_ends:
        if not known:
            yield f"  {key}: {{}}"
            return
        yield f"  {key}:"
        for name, argument in known.items():
            yield f"    {scalar(name)}: {{dtype: {argument.dtype or MARK}, shape: {_shape(argument)}}}"
        return
    if open_ends:
        yield from _comment(f"One of these, or several: {', '.join(end.words for end in open_ends)}", "  ")
    dtypes = {end.argument.dtype for end in open_ends}
    dtype = dtypes.pop() if len(dtypes) == 1 and is_complete else None
    yield f"  {key}:"
    yield f"    {MARK}: {{dtype: {dtype or MARK}, shape: {MARK}}}"

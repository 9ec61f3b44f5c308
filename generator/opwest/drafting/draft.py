# SPDX-License-Identifier: Apache-2.0
"""Draft the text of a manifest from files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.drafting.files import Given, read_files
from opwest.drafting.headers import read_headers
from opwest.drafting.selection import Chosen, Entry, Selection, select
from opwest.drafting.signatures import C_ORIGIN, HEADER_ORIGIN, STRUCT_DEVICE, Parameter
from opwest.drafting.sketch import End, Sketch, sketch
from opwest.drafting.skipped import note_skipped
from opwest.manifest import writer
from opwest.manifest.placeholders import MARK, distinct_marks
from opwest.manifest.writer import comment, flow_list, remark, remarked, scalar
from opwest.manifest.yaml_reader import read_yaml
from opwest.model.inputs.targets import OwnTarget
from opwest.model.types.c_names import check_name, fault_of_name
from opwest.objects.facts import CSource
from opwest.objects.targets import named_targets

_HEADER = f"""\
# Drafted by `opwest init`. {MARK} marks missing information: replace all marks before `opwest generate`.
# `opwest check` lists the marks with the accepted values. Verify values marked "guessed". `*x` repeats the value `&x`.
version: 1
"""
_MAX_LEFT_OUT = 100


class _Shapes:
    """The shapes of tensors. An unknown one has one mark, with an anchor if other arguments share it."""

    def __init__(self, run: Sketch) -> None:
        self._run = run
        self._written: set[str] = set()

    def of(self, operator: str, argument: Parameter) -> str | None:
        """Return the shape of an argument; None for a constant, whose file has it."""
        name = self._run.tensors.get((operator, argument.name), "")
        if name in self._run.constants and argument.shape is None and argument.struct is None:
            return None
        return self.tensor(name, argument.shape)

    def tensor(self, name: str, shape: tuple[int, ...] | None = None) -> str:
        """Return the shape of a tensor."""
        seen = self._run.shapes.get(name, [])
        known = shape or next((other for other in seen if other is not None), None)
        if known is not None:
            return writer.shape_of(known)
        if len(seen) < 2 and name not in self._run.inputs and name not in self._run.outputs:
            return MARK
        if name in self._written:
            return f"*{name}"
        self._written.add(name)
        return f"&{name} {MARK}"


def _targets(own: Sequence[OwnTarget]) -> Iterator[str]:
    if not own:
        return
    yield "# No named target (`opwest targets`) matches these objects."
    yield "targets:"
    for target in own:
        keys = {key: scalar(str(value)) if key != "bits" else str(value) for key, value in target.keys}
        yield f"  {scalar(target.name)}:"
        yield f"    {writer.flow_map({**keys, 'kconfig': MARK})}" + remark("its Kconfig symbols: {CONFIG_...: y}")


def _objects(selection: Selection) -> Iterator[str]:
    yield "# Files to link, by target. Entries without a target are compiled for every target."
    yield "objects:"
    for entry in selection.entries:
        yield from _entry(entry)
    if selection.unlisted:
        yield "# Not listed:"
        for name, reason in selection.unlisted.items():
            yield from comment(f"- {name}: {reason}", hanging="  ")


def _signatures(selection: Selection) -> Iterator[str]:
    if not selection.signatures:
        return
    yield "# Files with the prototypes of the operators: `opwest check` compares both. They are not compiled."
    plain = [given.name for given in selection.signatures if not given.include_dirs]
    if len(plain) == len(selection.signatures):
        yield f"signatures: {flow_list(map(scalar, plain))}"
        return
    yield "signatures:"
    yield from (f"  - {scalar(name)}" for name in plain)
    for given in selection.signatures:
        if given.include_dirs:
            keys = {
                "files": flow_list([scalar(given.name)]),
                "include_dirs": flow_list(map(scalar, given.include_dirs)),
            }
            yield f"  - {writer.flow_map(keys)}"


def _entry(entry: Entry) -> Iterator[str]:
    if entry.also:
        yield from comment(f"guessed; also compatible: {', '.join(entry.also)}", "  ", "  ")
    yield from writer.object_entry(entry.files, entry.target)
    if entry.is_ir and entry.targets == ("",):
        yield from writer.key("targets", flow_list([MARK]), "targets to compile the IR for, listed by `opwest targets`")
    elif entry.targets:
        yield from writer.key("targets", flow_list(map(scalar, entry.targets)))
    if entry.include_dirs:
        yield from writer.key("include_dirs", flow_list(map(scalar, entry.include_dirs)), "guessed")
    if entry.state:
        why = f"true if the state is intended: {_some(entry.state)}; else remove it"
        yield from writer.key("stateful", MARK, why)
    if entry.uses:
        names = _some(chain.from_iterable(entry.uses.values()))
        why = f"[{', '.join(entry.uses)}] if these effects are intended: {names}; else remove them"
        yield from writer.key("uses", MARK, why)


def _some(names: Iterable[str], most: int = 5) -> str:
    """Return the first different names."""
    every = list(dict.fromkeys(names))
    return ", ".join(every[:most]) + (", …" if len(every) > most else "")


def _devices(run: Sketch) -> Iterator[str]:
    if not run.devices:
        return
    yield "# The last argument of operators; guessed: one device for all. Add `driver: none` if its driver does not"
    yield "# implement opwest/accelerator.h."
    yield "devices:"
    for name, handle in run.devices.items():
        if handle == STRUCT_DEVICE:
            way = {"devicetree": writer.flow_map({"nodelabel": MARK})}
        else:
            way = {"handle": writer.flow_map({"type": scalar(handle), "header": MARK, "expression": MARK})}
        yield f"  {name}: {writer.flow_map(way)}"


def _operators(selection: Selection, shapes: _Shapes) -> Iterator[str]:
    yield "# The operators, with arguments in the order of the C parameters."
    yield "operators:"
    for operator in selection.operators:
        yield from _operator(operator, shapes)
    left = list(selection.left_out.items())
    if left:
        yield "# Functions that are not operators:"
        for symbol, reason in left[:_MAX_LEFT_OUT]:
            yield from comment(f"- {symbol}: {reason}", hanging="  ")
        if len(left) > _MAX_LEFT_OUT:
            yield f"# - and {len(left) - _MAX_LEFT_OUT} more"


def _operator(operator: Chosen, shapes: _Shapes) -> Iterator[str]:
    signature = operator.signature
    missing = f"not in the files for {', '.join(operator.missing_in)}" if operator.missing_in else ""
    origin = f"from the {signature.origin} of {operator.place}" if signature else f"in {operator.place}"
    if signature is not None and signature.origin in (C_ORIGIN, HEADER_ORIGIN):
        origin = f"from {operator.place}"
    symbol = scalar(operator.symbol) if operator.name != operator.symbol else None
    keys = [*writer.key("symbol", symbol)]
    end = remark(origin, missing)
    if operator.origin is not None:
        foreign = operator.origin
        keys += writer.key("convention", foreign.convention, f"{foreign.tool}: the object {foreign.evidence}")
        keys += writer.key("returns", "void" if foreign.convention == "memref" else None)
        form = "{name: x, dtype: float32, shape: [1, 8]}, ..."
        keys += writer.key("args", flow_list([MARK]), f"the arrays in the order of {foreign.tool}'s parameters: {form}")
    elif signature is None:
        keys += writer.key("returns", MARK, "status (int32_t, 0 on success) or void")
        form = "{name: x, dtype: int8, shape: [1, 8]}, ...; drafted if compiled with -g, or from its header"
        keys += writer.key("args", flow_list([MARK]), form)
    if operator.origin is not None or signature is None:
        yield from writer.operator(operator.name, keys, None, end)
        return
    result = signature.result
    if result is not None:
        guessed = "guessed: no argument is written" if result.dtype == "int32" else ""
        keys += writer.key("returns", writer.flow_map({"name": result.name, "dtype": result.dtype}), guessed)
    else:
        keys += writer.key("returns", None if signature.returns_status else "void")
    device = signature.device
    if device:
        handle = scalar(device.handle) if device.handle != STRUCT_DEVICE else None
        keys += writer.key("device", writer.flow_map({"handle": handle}), *device.remarks, _source_comment(device))
    arguments = [_argument(argument, shapes.of(operator.name, argument)) for argument in signature.arguments]
    yield from writer.operator(operator.name, keys, arguments, end)


def _source_comment(parameter: Parameter) -> str:
    return f"in the source: {parameter.comment}" if parameter.comment else ""


def _argument(argument: Parameter, shape: str | None) -> Iterator[str]:
    return writer.argument(
        argument.name,
        argument.dtype or MARK,
        None if argument.role == "scalar" else shape,
        scalar=argument.role == "scalar",
        direction=argument.direction or MARK,
        align=argument.align if argument.align > 1 else None,
        struct=argument.struct,
        remarks=(*argument.remarks, _source_comment(argument)),
    )


def _constants(run: Sketch) -> Iterator[str]:
    if not run.constants:
        return
    yield "# Constants, guessed from the names of arguments; their .npy or .npz files contain the shapes."
    yield "constants:"
    many = len(run.constants) > 1
    for number, (name, end) in enumerate(run.constants.items()):
        file = MARK if not many else f"&constants {MARK}" if number == 0 else "*constants"
        words = "; an .npz file with all constants, or a file for each" if many and number == 0 else ""
        line = f"  {name}: {writer.flow_map({'file': file, 'key': scalar(name) if many else None})}"
        yield from remarked(line, end.words + words)


def _externals(selection: Selection) -> Iterator[str]:
    if not selection.externals:
        return
    yield "# Undefined symbols of the objects that the C library does not define. `from` describes the provider;"
    yield "# `kconfig: CONFIG_...` adds the option that enables it."
    yield "externals:"
    for symbol, places in selection.externals.items():
        hint = "compile with -fno-stack-protector instead" if symbol.startswith("__stack_chk") else ""
        line = f"  - {writer.flow_map({'symbol': scalar(symbol), 'from': MARK})}"
        yield from remarked(line, f"for {_some(places, 3)}", hint)


def _run(run: Sketch, shapes: _Shapes) -> Iterator[str]:
    yield "# One inference. All names except inputs, outputs and constants are intermediate tensors."
    yield "run:"
    yield from _interface("inputs", run.inputs, run.open_inputs, run.is_complete, shapes)
    yield from _interface("outputs", run.outputs, run.open_outputs, run.is_complete, shapes)
    if run.state:
        yield "  # The content between runs, guessed from structures that operators read and write; zeros at first."
        states = {
            name: {"dtype": "uint8", "shape": shapes.tensor(name, parameter.shape)}
            for name, parameter in run.state.items()
        }
        yield from writer.interface("state", states)
    if len(run.steps) > 1:
        yield "  # Each operator once, ordered by matching tensor names, else by file. Reorder, repeat or remove steps."
    yield "  steps:"
    for step in run.steps:
        guessed = f"guessed by name: {', '.join(step.guessed)}" if step.guessed else ""
        yield from writer.step(step.call, step.args, step.device, remark(guessed))


def _interface(
    key: str, known: dict[str, Parameter], open_ends: Sequence[End], is_complete: bool, shapes: _Shapes
) -> Iterator[str]:
    """Yield the inputs or the outputs, with marks if several arguments are candidates."""
    if is_complete and not open_ends:
        tensors = {
            name: {"dtype": parameter.dtype or MARK, "shape": shapes.tensor(name, parameter.shape)}
            for name, parameter in known.items()
        }
        yield from writer.interface(key, tensors)
        return
    if open_ends:
        yield from comment(f"One or more of: {', '.join(end.words for end in open_ends)}", "  ", hanging="  ")
    dtypes = {end.argument.dtype for end in open_ends}
    dtype = dtypes.pop() if len(dtypes) == 1 and is_complete else None
    yield from writer.interface(key, {MARK: {"dtype": dtype or MARK, "shape": MARK}})


@dataclass(frozen=True)
class Draft:
    """A manifest with marks."""

    text: str
    marks: int
    """The number of marks that `opwest check` finds."""
    operators: tuple[str, ...]
    left_out: dict[str, str]


def draft_manifest(
    paths: Sequence[Path],
    manifest: Path,
    model: str | None,
    targets: Sequence[str],
    faults: Diagnostics,
    patterns: Sequence[str] = (),
) -> Draft:
    """Return a draft for a manifest at `manifest`. Raises OpwestError for unusable files.

    `patterns` select the functions that become operators; without any, all that can be.
    """
    if model is not None and fault_of_name(model):
        check_name("model", model, None, faults)
    for target in targets:
        if target not in named_targets():
            faults.error(f"unknown target {target!r}", hint=f"{nearest(target, named_targets())}")
    faults.raise_if_errors()
    files = read_files(paths, manifest.parent, faults)
    faults.raise_if_errors()
    read_headers(files, manifest.parent, faults)
    faults.raise_if_errors()
    selection = select(files, targets, patterns, faults)
    faults.raise_if_errors()
    if not selection.operators:
        reasons = [f"{symbol}: {reason}" for symbol, reason in list(selection.left_out.items())[:8]]
        reasons += [f"{file}: {reason}" for file, reason in selection.unlisted.items()]
        faults.error(
            "no operator found in the files",
            expected="global functions that take pointers to tensors and return void, a status or a value",
            hint="; ".join(reasons) or _nothing_defined(files),
        )
    faults.raise_if_errors()
    note_skipped(faults, selection.left_out, selection.unlisted)
    name = model or _model_name(manifest)
    run = sketch(selection.operators)
    shapes = _Shapes(run)
    text = writer.document(
        _HEADER.splitlines(),
        [f"# The prefix of the C symbols and the header: {name}_run(), <{name}.h>.", f"model: {scalar(name)}"],
        _targets(selection.own_targets),
        _objects(selection),
        _signatures(selection),
        _devices(run),
        _operators(selection, shapes),
        _constants(run),
        _externals(selection),
        _run(run, shapes),
    )
    parsed = read_yaml(text.encode(), "draft", Diagnostics())
    marks = len(distinct_marks(parsed)[0]) if parsed is not None else 0
    return Draft(text, marks, tuple(o.name for o in selection.operators), selection.left_out)


def _nothing_defined(files: Sequence[Given]) -> str:
    """Return the hint for files without a global function."""
    if any(isinstance(given.item, CSource) and given.item.is_header for given in files):
        return "a header only declares functions: add the archive, the objects or the sources that define them"
    return "the files define no global function"


def _model_name(manifest: Path) -> str:
    """Return a model's name for a manifest: the file's stem, or the directory's name for `manifest.yaml`."""
    for word in (manifest.stem, manifest.absolute().parent.name):
        name = re.sub(r"\W+", "_", word, flags=re.ASCII).strip("_").lower()
        if word != "manifest" and name and fault_of_name(name) is None:
            return name
    return "model"

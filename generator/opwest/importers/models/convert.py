# SPDX-License-Identifier: Apache-2.0
"""The stages of an import: read, check, lower, emit, run a reference, write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opwest.diagnostics import Diagnostics, Location
from opwest.importers.child import Progress
from opwest.importers.faults import fault
from opwest.importers.folder import npz, refuse_occupied, write_folder
from opwest.importers.models.comparison import comparison
from opwest.importers.models.control import resolve_control
from opwest.importers.models.float_io import with_float_io
from opwest.importers.models.graph.check import check_graph
from opwest.importers.models.graph.types import Graph, Rules
from opwest.importers.models.graph.user import uses_of
from opwest.importers.models.hybrid import dequantise_weights
from opwest.importers.models.implementations import implementations
from opwest.importers.models.ir.program import Program, Value
from opwest.importers.models.lower.lower import check_lowering, lower_graph
from opwest.importers.models.manifest import CONSTANTS, SOURCE, Described, manifest_text
from opwest.importers.models.placement import check_layers, placement
from opwest.importers.models.read import FORMATS, format_of, read_file, read_model
from opwest.importers.models.request import Imported, Options
from opwest.importers.models.simplify.folding import Folding
from opwest.importers.models.simplify.simplify import simplify
from opwest.importers.models.snippet import check_used, user_operators
from opwest.importers.models.vectors import Vectors, make_vectors
from opwest.importers.text import identifier
from opwest.records import dataclass


def _silent(_: str) -> None:
    """Ignore progress."""


def import_model(path: Path, folder: Path, options: Options | None = None, progress: Progress = _silent) -> Imported:
    """Import a model file. Raises OpwestError before anything is written."""
    options = options or Options()
    refuse_occupied(folder)
    content, place = read_file(path), str(path)
    found = format_of(content, place)
    progress(f"reading {path.name}, {FORMATS[found]}")
    if options.format not in (None, found):
        raise fault(
            f"the file is {FORMATS[found]}", place, FORMATS[str(options.format)], f"opwest import {found} {path}"
        )
    faults = Diagnostics()
    users = user_operators(options.operators, faults)
    faults.raise_if_errors()
    rules = Rules(dense_rounds_twice=options.rounding == "cmsis-nn", float_requantization=options.exact)
    _check_rounding(options, place)
    graphs = read_model(content, place, rules, users)
    graphs = _selected(graphs, options.signature, place)
    check_used(users, graphs, faults)
    prepared = _prepared(graphs, options, place, faults)
    done = [_convert(graph, content, path, options, progress) for graph in prepared]
    nested = [(f"{one.model}/" if len(done) > 1 else "", one) for one in done]
    if options.arrays is not None:
        arrays = {f"{start}{name}": array for start, one in nested for name, array in one.arrays.items()}
        Path(options.arrays).write_bytes(npz(arrays))
    files = {f"{start}{name}": data for start, one in nested for name, data in one.files.items()}
    progress(f"writing {folder}")
    write_folder(folder, files)
    return Imported(
        folder,
        tuple(one.model for one in done),
        tuple(sorted(files)),
        sum(one.operators for one in done),
        sum(one.steps for one in done),
        sum(one.constant_bytes for one in done),
        tuple(dict.fromkeys(remark for one in done for remark in one.remarks)),
        choices="\n".join(one.choices for one in done),
    )


def _check_rounding(options: Options, place: str) -> None:
    """Refuse what contradicts --rounding cmsis-nn."""
    if options.rounding == "cmsis-nn":
        for name, given in (("--exact", options.exact), ("--compare", options.compare)):
            if given:
                hint = "the format's runtime rounds int8 fully connected layers once"
                raise fault(f"{name} with --rounding cmsis-nn", place, "one of them", hint)


@dataclass(frozen=True)
class _Converted:
    """The files of one signature."""

    model: str
    files: dict[str, bytes]
    operators: int
    steps: int
    constant_bytes: int
    remarks: tuple[str, ...]
    arrays: Mapping[str, Any]
    """The arrays of a comparison."""
    choices: str
    """The table of the variants of operators."""


def _selected(graphs: tuple[Graph, ...], signature: str | None, place: str) -> tuple[Graph, ...]:
    """Return the signature that the options select."""
    if signature is None:
        return graphs
    found = tuple(graph for graph in graphs if graph.name == signature)
    if not found:
        names = ", ".join(graph.name for graph in graphs) or "none"
        raise fault(f"the model has no signature '{signature}'", place, f"one of: {names}")
    return found


def _prepared(graphs: tuple[Graph, ...], options: Options, place: str, faults: Diagnostics) -> tuple[Graph, ...]:
    """Return the checked graphs. Raises OpwestError with the faults of all of them."""
    graphs = tuple(map(resolve_control, graphs))
    where = Location(place)
    if options.dequantise_weights:
        before, graphs = graphs, tuple(map(dequantise_weights, graphs))
        if all(one is other for one, other in zip(before, graphs, strict=True)):
            expected = "a layer with float32 data and int8 weights (dynamic range)"
            faults.error("--dequantise-weights: no layer has int8 weights and float32 data", where, expected=expected)
    if options.float_io:
        graphs = tuple(map(with_float_io, graphs))
        if all(graph.converters is None for graph in graphs):
            expected = "one of int8, uint8, int16 with a scale"
            faults.error("--float-io: no input or output is quantised", where, expected=expected)
    passed = [(graph, check_graph(graph, place, faults, Folding(graph.rules))) for graph in graphs]
    if faults.has_errors:
        for graph, nodes in passed:
            check_lowering(graph, nodes, place, faults)
    faults.raise_if_errors()
    return graphs


def _convert(graph: Graph, content: bytes, path: Path, options: Options, progress: Progress) -> _Converted:
    """Return the files of one signature. Raises OpwestError."""
    faults, place = Diagnostics(), str(path)
    placed = placement(options.place, options.pools)
    # CMSIS-NN has no convolution with a sum: such a layer would be portable.
    has_sums = not options.kernels.startswith("cmsis-nn")
    program = lower_graph(simplify(graph), place, faults, has_sums)
    heading = f"Operators of {path.name}, written by `opwest import`. You can edit this file."
    base, variants, choices = implementations(program, heading, options)
    check_layers(placed, program, [one.emitted for one in (base, *variants)])
    emitted, names = base.emitted, base.names
    if options.vectors:
        progress(f"running a reference on {options.vectors} inputs")
    changed = options.dequantise_weights
    vectors = make_vectors(graph, content, options.vectors, changed) if options.vectors else None
    remarks = graph.remarks
    if vectors is None and options.vectors and any(uses_of(graph.nodes)):
        remarks += ("there are no golden vectors: no runtime of the format runs the operators of --operator",)
    arrays: Mapping[str, Any] = {}
    if options.compare and options.arrays is not None:
        progress(f"running all operators of the reference on {options.compare} inputs")
        arrays = comparison(graph, content, program, names, options.compare, place)
    model = options.model or identifier(path.stem, "model")
    if graph.name:
        model = f"{model}_{identifier(graph.name, 'signature')}"
    origin = f"Imported from {path.name} by `opwest import`."
    described = Described(
        model, origin, remarks, program, base, variants, graph.labels, vectors, placed, options.caller_memory
    )
    files: dict[str, bytes] = {"manifest.yaml": manifest_text(described).encode()}
    for user in dict.fromkeys(step.function.user for step in emitted.steps):
        files.update({} if user is None else user.files)
    for one in (base, *variants):
        if one.emitted.source:
            files[one.path(SOURCE)] = one.emitted.source.encode()
        found = {name: value.content for value, name in one.names.items() if value.content is not None}
        if found:
            files[one.path(CONSTANTS)] = npz(found)
    constants = {name: one.content for one, name in names.items() if one.content is not None}
    if vectors is not None:
        files["vectors.npz"] = npz(_stacked(names, program, vectors))
    return _Converted(
        model,
        files,
        len({step.symbol for step in emitted.steps}),
        len(emitted.steps),
        sum(one.nbytes for one in constants.values()),
        remarks,
        arrays,
        choices,
    )


def _stacked(names: Mapping[Value, str], program: Program, vectors: Vectors) -> dict[str, Any]:
    """Return the vectors by name: the first dimension counts the cases."""
    found = {}
    for values, cases in ((program.inputs, vectors.inputs), (program.outputs, vectors.outputs)):
        for number, value in enumerate(values):
            found[names[value]] = np.stack([case[number] for case in cases])
    return found

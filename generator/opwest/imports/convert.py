# SPDX-License-Identifier: Apache-2.0
"""The stages of an import: read, check, lower, emit, run a reference, write, check what was written, prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.child import Progress, silent
from opwest.compiler.folder import npz, refuse_occupied, write_folder
from opwest.compiler.graph.types import Graph
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.names import identifier, model_name
from opwest.compiler.output.checked import checked
from opwest.compiler.output.manifest import MANIFEST, Described, Implementation, Vectors, manifest_text
from opwest.compiler.output.placement import check_layers, placement
from opwest.compiler.request import Imported, Options
from opwest.compiler.selection.choose import FLASH
from opwest.compiler.selection.implementations import implementations
from opwest.frontends.read import ModelFile
from opwest.imports.comparison import comparison
from opwest.imports.import_json import IMPORT_JSON, import_json_text
from opwest.imports.layers import layers_of
from opwest.imports.prepare import prepare, program_of
from opwest.imports.proof.prove import check_programs, prove
from opwest.imports.vectors import make_vectors


def import_model(path: Path, folder: Path, options: Options | None = None, progress: Progress = silent) -> Imported:
    """Import a model file. Raises OpwestError before anything is written."""
    options = options or Options()
    refuse_occupied(folder)
    prepared = prepare(path, options, progress)
    done = [_convert(graph, prepared.file, str(path), options, progress) for graph in prepared.graphs]
    nested = [(f"{converted.model}/" if len(done) > 1 else "", converted) for converted in done]
    if options.arrays is not None:
        arrays = {f"{start}{name}": array for start, converted in nested for name, array in converted.arrays.items()}
        Path(options.arrays).write_bytes(npz(arrays))
    files = {f"{start}{name}": data for start, converted in nested for name, data in converted.files.items()}
    layers = tuple(
        layers_of(converted.model, f"{start}{MANIFEST}", graph, converted.implementations)
        for graph, (start, converted) in zip(prepared.graphs, nested, strict=True)
    )
    files[IMPORT_JSON] = import_json_text(path, prepared.file.content, folder, options, layers)

    def examine(draft: Path) -> None:
        users = "the operators of --operator" if options.operators else ""
        hint = "import with --no-optimisations; " if options.optimisations else ""
        planned = checked(draft, [f"{start}{MANIFEST}" for start, _ in nested], str(path), users, hint)
        for graph, converted, examinations in zip(prepared.graphs, done, planned, strict=True):
            prove(graph, converted.implementations, examinations, str(path), optimised=options.optimisations)

    progress(f"proving and writing {folder}")
    write_folder(folder, files, examine)
    return Imported(
        folder,
        tuple(converted.model for converted in done),
        tuple(sorted(files)),
        sum(converted.operators for converted in done),
        sum(converted.steps for converted in done),
        sum(converted.constant_bytes for converted in done),
        tuple(dict.fromkeys(remark for converted in done for remark in converted.remarks)),
        choices=tuple({"model": one.model, **one.choices} for one in done if one.choices),
        layers=layers,
    )


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
    choices: Mapping[str, Any]
    """The chosen variants of operators; empty without a choice."""
    implementations: Sequence[Implementation]
    """The base, and the others."""


def _convert(graph: Graph, file: ModelFile, place: str, options: Options, progress: Progress) -> _Converted:
    """Return the files of one signature. Raises OpwestError."""
    content = file.content
    placed = placement(options.place, options.pools)
    program = program_of(graph, options, place)
    heading = f"Operators of {file.origin}, written by `opwest import`. You can edit this file."
    base, variants, choices = implementations(program, heading, options)
    check_programs((base, *variants), place, optimised=options.optimisations)
    check_layers(placed, program, [made.emitted for made in (base, *variants)])
    emitted, names = base.emitted, base.names
    vectors, notes = None, tuple[str, ...]()
    if options.vectors:
        progress(f"running a reference on {options.vectors} inputs")
        vectors, notes = make_vectors(graph, content, options.vectors, options.dequantise_weights)
    remarks = graph.remarks + notes
    arrays: Mapping[str, Any] = {}
    if options.compare and options.arrays is not None:
        progress(f"running all operators of the reference on {options.compare} inputs")
        arrays = comparison(graph, content, program, names, options.compare, place)
    model = options.model or model_name(file.name)
    if graph.name:
        model = f"{model}_{identifier(graph.name, 'signature')}"
    origin = f"Imported from {file.origin} by `opwest import`."
    described = Described(
        *(model, origin, remarks, program, base, variants, graph.labels, vectors, placed, options.caller_memory),
        boards=options.boards,
        flash=None if options.given_flash is None else options.flash,
        optimize="size" if options.optimize == FLASH else None,
    )
    files: dict[str, bytes] = {MANIFEST: manifest_text(described).encode()}
    for user in dict.fromkeys(step.function.user for step in emitted.steps):
        files |= {} if user is None else user.files
    for implementation in (base, *variants):
        files |= implementation.files()
    if vectors is not None:
        files["vectors.npz"] = npz(_stacked(names, program, vectors))
    return _Converted(
        model,
        files,
        len({step.symbol for step in emitted.steps}),
        len(emitted.steps),
        sum(value.content.nbytes for value in names if value.content is not None),
        remarks,
        arrays,
        choices,
        (base, *variants),
    )


def _stacked(names: Mapping[Value, str], program: Program, vectors: Vectors) -> dict[str, Any]:
    """Return the vectors by name: the first dimension counts the cases."""
    sides = ((program.inputs, vectors.inputs), (program.outputs, vectors.outputs))
    return {
        names[value]: np.stack([case[number] for case in cases])
        for values, cases in sides
        for number, value in enumerate(values)
    }

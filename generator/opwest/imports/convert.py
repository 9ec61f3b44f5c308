# SPDX-License-Identifier: Apache-2.0
"""The stages of an import: read, check, lower, emit, run a reference, write, check what was written, prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.child import Progress
from opwest.compiler.folder import npz, refuse_occupied, write_folder
from opwest.compiler.graph.types import Graph
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.names import identifier
from opwest.compiler.output.checked import checked
from opwest.compiler.output.manifest import (
    CONSTANTS,
    MANIFEST,
    SOURCE,
    Described,
    Implementation,
    Vectors,
    manifest_text,
)
from opwest.compiler.output.placement import check_layers, placement
from opwest.compiler.request import Imported, Options
from opwest.compiler.selection.implementations import implementations
from opwest.imports.comparison import comparison
from opwest.imports.import_json import RECORD, record_text
from opwest.imports.prepare import prepare, program_of
from opwest.imports.proof.prove import check_programs, prove
from opwest.imports.vectors import make_vectors


def _silent(_: str) -> None:
    """Ignore progress."""


def import_model(path: Path, folder: Path, options: Options | None = None, progress: Progress = _silent) -> Imported:
    """Import a model file. Raises OpwestError before anything is written."""
    options = options or Options()
    refuse_occupied(folder)
    prepared = prepare(path, options, progress)
    done = [_convert(graph, prepared.content, path, options, progress) for graph in prepared.graphs]
    nested = [(f"{one.model}/" if len(done) > 1 else "", one) for one in done]
    if options.arrays is not None:
        arrays = {f"{start}{name}": array for start, one in nested for name, array in one.arrays.items()}
        Path(options.arrays).write_bytes(npz(arrays))
    files = {f"{start}{name}": data for start, one in nested for name, data in one.files.items()}
    files[RECORD] = record_text(path, prepared.content, folder, options)

    def examine(draft: Path) -> None:
        users = "the operators of --operator" if options.operators else ""
        hint = "import with --no-optimisations; " if options.optimisations else ""
        planned = checked(draft, [f"{start}{MANIFEST}" for start, _ in nested], str(path), users, hint)
        for graph, one, found in zip(prepared.graphs, done, planned, strict=True):
            prove(graph, one.implementations, found, str(path), optimised=options.optimisations)

    progress(f"proving and writing {folder}")
    write_folder(folder, files, examine)
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
    implementations: Sequence[Implementation]
    """The base, and the others."""


def _convert(graph: Graph, content: bytes, path: Path, options: Options, progress: Progress) -> _Converted:
    """Return the files of one signature. Raises OpwestError."""
    placed = placement(options.place, options.pools)
    program = program_of(graph, options, str(path))
    heading = f"Operators of {path.name}, written by `opwest import`. You can edit this file."
    base, variants, choices = implementations(program, heading, options)
    check_programs((base, *variants), str(path), optimised=options.optimisations)
    check_layers(placed, program, [one.emitted for one in (base, *variants)])
    emitted, names = base.emitted, base.names
    if options.vectors:
        progress(f"running a reference on {options.vectors} inputs")
    changed = options.dequantise_weights
    vectors, notes = make_vectors(graph, content, options.vectors, changed) if options.vectors else (None, ())
    remarks = graph.remarks + notes
    arrays: Mapping[str, Any] = {}
    if options.compare and options.arrays is not None:
        progress(f"running all operators of the reference on {options.compare} inputs")
        arrays = comparison(graph, content, program, names, options.compare, str(path))
    model = options.model or identifier(path.stem, "model")
    if graph.name:
        model = f"{model}_{identifier(graph.name, 'signature')}"
    origin = f"Imported from {path.name} by `opwest import`."
    described = Described(
        model, origin, remarks, program, base, variants, graph.labels, vectors, placed, options.caller_memory
    )
    files: dict[str, bytes] = {MANIFEST: manifest_text(described).encode()}
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
        sum(constant.nbytes for constant in constants.values()),
        remarks,
        arrays,
        choices,
        (base, *variants),
    )


def _stacked(names: Mapping[Value, str], program: Program, vectors: Vectors) -> dict[str, Any]:
    """Return the vectors by name: the first dimension counts the cases."""
    found = {}
    for values, cases in ((program.inputs, vectors.inputs), (program.outputs, vectors.outputs)):
        for number, value in enumerate(values):
            found[names[value]] = np.stack([case[number] for case in cases])
    return found

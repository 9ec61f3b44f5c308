# SPDX-License-Identifier: Apache-2.0
"""The stages of an import: run Vela if the file is a model, read, find the meaning, emit, write."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from opwest.base.diagnostics import Diagnostics
from opwest.base.result import counted
from opwest.compiler.child import Progress, silent
from opwest.compiler.faults import fault
from opwest.compiler.folder import refuse_occupied, write_folder
from opwest.compiler.graph.check import check_graph
from opwest.compiler.ir.program import Program
from opwest.compiler.lowering.builder import lower_graph
from opwest.compiler.lowering.control import resolve_control
from opwest.compiler.lowering.passes import with_passes
from opwest.compiler.lowering.simplify import Folding, simplify
from opwest.compiler.names import identifier, model_name
from opwest.compiler.output.checked import checked
from opwest.compiler.output.manifest import MANIFEST, Described, manifest_text, name_values
from opwest.compiler.request import Imported
from opwest.compiler.request import Options as ModelOptions
from opwest.compiler.selection.implementations import implementations
from opwest.frontends.read import ModelFile, read_file, read_model_file
from opwest.frontends.vela.arena import NpuMemory, boards_of, places_in_arena, regions_of, weights_pool, with_copies
from opwest.frontends.vela.compile import compiled
from opwest.frontends.vela.emission import application_of, arenas_of, npu_step, place_views, with_npu
from opwest.frontends.vela.file import FAST, Meaning, VelaFile, meaning_of, read_npz
from opwest.frontends.vela.request import Options
from opwest.frontends.vela.tflite import read_tflite
from opwest.imports.import_json import IMPORT_JSON, import_json_text
from opwest.imports.layers import layers_of
from opwest.imports.proof.prove import check_programs
from opwest.objects.ethos_u.payload import NPUS

_NO_VECTORS = "there are no golden vectors: no runtime of the format runs the subgraphs for the NPU"


def import_vela(path: Path, folder: Path, options: Options | None = None, progress: Progress = silent) -> Imported:
    """Import a file of Vela, or with `npu` a .tflite model. Raises OpwestError before anything is written."""
    options = options or Options()
    refuse_occupied(folder)
    source = read_model_file(path, options.array)
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        file = path
        if source.is_array:
            file = Path(work) / f"{identifier(source.name, 'model')}.tflite"
            file.write_bytes(source.content)
        if options.npu is not None:
            file = compiled(file, Path(work), options, progress)
        return _import(file, source, path, folder, options, progress)


def _import(
    file: Path, source: ModelFile, origin: Path, folder: Path, options: Options, progress: Progress
) -> Imported:
    """Import the file of Vela that `source` is, or was compiled to."""
    place = str(origin)
    progress(f"reading {source.origin if file == origin else file.name}")
    read = _read(file, place)
    meaning = meaning_of(read, place, NPUS[options.npu] if options.npu is not None else None)
    program = _program(read, place)
    heading = f"Operators of {source.origin}, written by `opwest import`. You can edit this file."
    base, variants, choices = implementations(program, heading, ModelOptions(vectors=0, kernels=options.kernels))
    every = (base, *variants)
    check_programs(every, place, optimised=False)
    step = npu_step(read, meaning, place)
    places = places_in_arena(program, [implementation.emitted.steps for implementation in every], read, meaning, place)
    arena = next(value for value in step.values if value.name == "arena")
    place_views(places, arena)
    with_steps = [with_npu(implementation.emitted, read, step) for implementation in every]
    base, *others = (
        replace(implementation, emitted=emitted, names=name_values(program, emitted, step.values))
        for implementation, emitted in zip(every, with_steps, strict=True)
    )
    model = options.model or model_name(source.name.removesuffix("_vela"))
    has_fast, has_processor = FAST in meaning.regions, len(base.emitted.steps) > len(read.calls)
    regions = regions_of(options, has_fast)
    weights = next((value for value in step.values if value.role == "constant"), None)
    boards = boards_of(options)
    remarks = (*read.graph.remarks, *read.remarks, _words(read, meaning), _NO_VECTORS)
    described = Described(
        model,
        f"Imported from {source.origin} by `opwest import`.",
        remarks,
        program,
        base,
        others,
        read.graph.labels,
        None,
        NpuMemory(regions, has_fast, has_processor, weights, weights_pool(options, regions)),
        False,
        boards,
        arenas_of(step),
        application_of(meaning, boards),
    )
    layers = (layers_of(model, MANIFEST, read.graph, (base, *others)),)
    files = {MANIFEST: manifest_text(described).encode(), **step.operator.files}
    files[IMPORT_JSON] = import_json_text(origin, source.content, folder, None, layers)
    for implementation in (base, *others):
        files |= implementation.files()
    progress(f"writing {folder}")
    users = "the programs of the file"
    write_folder(folder, files, lambda draft: checked(draft, [MANIFEST], str(origin), users))
    return Imported(
        folder,
        (model,),
        tuple(sorted(files)),
        len({called.symbol for called in base.emitted.steps}),
        len(base.emitted.steps),
        sum(value.content.nbytes for value in base.names if value.content is not None),
        remarks,
        choices=({"model": model, **choices},) if choices else (),
        layers=layers,
    )


def _read(file: Path, place: str) -> VelaFile:
    """Return the content of a file in either format."""
    content = read_file(file)
    if content[:2] == b"PK":
        return read_npz(file)
    if content[4:8] != b"TFL3":
        raise fault("not a file of Vela", place, "a .tflite file, or an .npz file of --output-format raw")
    return read_tflite(content, place)


def _program(file: VelaFile, place: str) -> Program:
    """Return the operations: those of the processor exact as in an import without NPU. Raises OpwestError."""
    graph = resolve_control(file.graph)
    faults = Diagnostics()
    check_graph(graph, place, faults, Folding(graph.rules))
    faults.raise_if_errors()
    program = with_passes(lower_graph(simplify(graph), place, Diagnostics()))
    with_copies(program, file.calls)
    return program


def _words(file: VelaFile, meaning: Meaning) -> str:
    """Return the remark on what runs where."""
    left = [node.kind for node in file.graph.nodes if node.options.get("use") is None]
    where = f"{counted(len(left), 'operator')} on the processor: {', '.join(sorted(set(left)))}" if left else None
    count = f"{len(file.calls)} subgraph{'s' if len(file.calls) > 1 else ''} for {meaning.npu.name}"
    return f"{count}, {where or 'no operator on the processor'}"

# SPDX-License-Identifier: Apache-2.0
"""The first stages of an import: read, check, simplify, lower."""

from __future__ import annotations

from pathlib import Path

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.child import Progress
from opwest.compiler.faults import fault
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Graph, Rules
from opwest.compiler.ir.program import Program
from opwest.compiler.lowering.builder import check_lowering, lower_graph
from opwest.compiler.lowering.control import resolve_control
from opwest.compiler.lowering.conversions import dequantise_weights, with_float_io
from opwest.compiler.lowering.passes import PASSES, fuse_sums, with_passes
from opwest.compiler.lowering.simplify import Folding, simplify
from opwest.compiler.output.emit import load_plugins
from opwest.compiler.request import Options
from opwest.frontends.formats import FORMATS
from opwest.frontends.read import ModelFile, format_of, read_model, read_model_file
from opwest.imports.snippet import check_used, user_operators

_NPU = "ethos-u"
"""The custom code of subgraphs that Vela has compiled."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model file without faults."""

    file: ModelFile
    graphs: tuple[Graph, ...]
    """One for each signature."""


def prepare(path: Path, options: Options, progress: Progress) -> Prepared:
    """Read and check a model file. Raises OpwestError with all faults."""
    load_plugins()
    file, place = read_model_file(path, options.array), str(path)
    file_format = format_of(file.content, place)
    progress(f"reading {file.origin}, {file_format.noun}")
    if options.format not in (None, file_format.name):
        expected = next(row.noun for row in FORMATS if row.name == options.format)
        raise fault(f"the file is {file_format.noun}", place, expected, f"opwest import {file_format.name} {path}")
    faults = Diagnostics()
    users = user_operators(options.operators, faults)
    faults.raise_if_errors()
    rules = Rules(dense_rounds_twice=options.rounding == "cmsis-nn", float_requantization=options.exact)
    _check_rounding(options, place)
    graphs = _selected(read_model(file.content, place, rules, users), options.signature, place)
    check_used(users, graphs, faults)
    if _NPU not in users and any(_NPU in graph.names for graph in graphs):
        hint = f"opwest import vela {path}"
        text = f"Vela has compiled the model: it has the operator '{_NPU}'"
        raise fault(text, place, "a model for the processor", hint)
    return Prepared(file, _checked(graphs, options, place, faults))


def program_of(graph: Graph, options: Options, place: str) -> Program:
    """Return the operations of a graph. Raises OpwestError."""
    if not options.optimisations:
        return lower_graph(graph, place, Diagnostics())
    # CMSIS-NN has no convolution with a sum: such a layer would be portable.
    has_sums = not options.kernels.startswith("cmsis-nn")
    passes = PASSES if has_sums else [transformation for transformation in PASSES if transformation is not fuse_sums]
    return with_passes(lower_graph(simplify(graph), place, Diagnostics()), passes)


def _check_rounding(options: Options, place: str) -> None:
    """Refuse what contradicts --rounding cmsis-nn."""
    if options.rounding == "cmsis-nn":
        for name, given in (("--exact", options.exact), ("--compare", options.compare)):
            if given:
                hint = "the format's runtime rounds int8 fully connected layers once"
                raise fault(f"{name} with --rounding cmsis-nn", place, "one of them", hint)


def _selected(graphs: tuple[Graph, ...], signature: str | None, place: str) -> tuple[Graph, ...]:
    """Return the signature that the options select."""
    if signature is None:
        return graphs
    selected = tuple(graph for graph in graphs if graph.name == signature)
    if not selected:
        names = ", ".join(graph.name for graph in graphs) or "none"
        raise fault(f"the model has no signature '{signature}'", place, f"one of: {names}")
    return selected


def _checked(graphs: tuple[Graph, ...], options: Options, place: str, faults: Diagnostics) -> tuple[Graph, ...]:
    """Return the checked graphs. Raises OpwestError with the faults of all of them."""
    graphs = tuple(map(resolve_control, graphs))
    where = Location(place)
    if options.dequantise_weights:
        before, graphs = graphs, tuple(map(dequantise_weights, graphs))
        if all(graph is other for graph, other in zip(before, graphs, strict=True)):
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

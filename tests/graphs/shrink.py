# SPDX-License-Identifier: Apache-2.0
"""Find a smaller graph with the same kind of fault, and store it as a regression."""

import io
import json
import time
import zipfile
from pathlib import Path

import numpy as np
from graphs.campaign import FAULTS, Outcome, drawn_case, subject_of
from graphs.drawn import drawn
from models.made import Model
from opwest.base.diagnostics import Diagnostics
from opwest.compiler.graph.check import check_graph
from opwest.compiler.graph.types import Rules
from opwest.compiler.lowering.simplify import Folding
from opwest.compiler.reference.run import outputs_of, run_graph
from opwest.frontends.read import read_model

STORE = Path(__file__).parent / "regressions.zip"
SECONDS = 60


def pruned(model, outputs, inputs=()):
    """Return the part of a model that computes some tensors; those in `inputs` become inputs."""
    graph = model.graph
    given = [*graph.inputs, *inputs]
    live, operators = {id(one) for one in outputs}, []
    for operator in reversed(graph.operators):
        _, read, results, _ = operator
        made = [one for one in results if id(one) in live and not any(one is other for other in given)]
        if made:
            operators.append(operator)
            live.update(id(one) for one in read if one is not None)
    found = Model()
    found.graph.operators = operators[::-1]
    known = {id(one) for _, _, results, _ in operators for one in results} | live
    found.graph.tensors = [one for one in graph.tensors if id(one) in known]
    found.graph.inputs = [one for one in given if id(one) in live]
    found.graph.outputs = list(outputs)
    return found


def smaller(model):
    """Yield models that are parts of a model, the smallest ones first."""
    graph = model.graph
    if len(graph.outputs) > 1:
        yield from (pruned(model, [one]) for one in graph.outputs)
    inner = graph.operators[:-1]
    yield from (pruned(model, [one]) for _, _, results, _ in inner for one in results)
    yield from (pruned(model, graph.outputs, [one]) for _, _, results, _ in reversed(inner) for one in results)


def shrunk(runner, seed, outcome):
    """Return a small TFLite model with its outcome; `outcome` is that of the seed."""
    model, mode = drawn(seed)
    options = dict(outcome.options)
    end = time.monotonic() + SECONDS

    def tried(model, options):
        if not model.graph.inputs or not model.graph.operators:
            return None
        kinds = [kind for kind, *_ in model.graph.operators]
        made = Outcome(seed, "tflite", mode, len(kinds), options, "exact", kinds=kinds)
        try:
            found = runner.judge(made, subject_of(model, seed))
        except Exception:
            return None
        return found if found.outcome == outcome.outcome else None

    best = outcome
    for key in list(options):
        rest = {name: value for name, value in options.items() if name != key}
        found = tried(model, rest)
        if found is not None:
            options, best = rest, found
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for part in smaller(model):
            if len(part.graph.operators) >= len(model.graph.operators) or time.monotonic() > end:
                continue
            found = tried(part, options)
            if found is not None:
                model, best, changed = part, found, True
                break
    return model, best


def store(name, content, options, inputs, expected):
    """Add a regression to the archive: the model, the options of its import, inputs and expected outputs."""
    arrays = io.BytesIO()
    cases = {
        f"{word}{place}": np.stack([case[place] for case in cases])
        for word, cases in (("input", inputs), ("output", expected))
        for place in range(len(cases[0]))
    }
    np.savez(arrays, **cases)
    parts = {"model": content, "options.json": json.dumps(options), "cases.npz": arrays.getvalue()}
    with zipfile.ZipFile(STORE, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for part, data in parts.items():
            archive.writestr(f"{name}/{part}", data)


def stored():
    """Yield the regressions: name, content, options, inputs, outputs."""
    with zipfile.ZipFile(STORE) as archive:
        for name in sorted({one.partition("/")[0] for one in archive.namelist()}):
            content, options, arrays = (
                archive.read(f"{name}/{part}") for part in ("model", "options.json", "cases.npz")
            )
            with np.load(io.BytesIO(arrays)) as data:
                inputs, expected = (
                    list(zip(*(data[key] for key in data.files if key.startswith(word)), strict=True))
                    for word in ("input", "output")
                )
            yield name, content, json.loads(options), inputs, expected


def _expected(subject, format_):
    """Return the results of the runtime, or those of the graph as it was read."""
    if subject.expected is not None:
        return subject.expected
    place = f"made.{format_}"
    [graph] = read_model(subject.content, place, Rules())
    check_graph(graph, place, Diagnostics(), Folding(graph.rules))
    return [outputs_of(graph, run_graph(graph, case)) for case in subject.cases]


def keep(runner, one):
    """Shrink and store the graph of a fault; return a description."""
    outcome = Outcome(**one) if isinstance(one, dict) else one
    assert outcome.outcome in FAULTS
    if outcome.core:  # the model is right on this machine
        return f"seed {outcome.seed}: {outcome.outcome}: {outcome.options}: {outcome.detail}"
    best = outcome
    if outcome.format == "onnx":  # stored as it is
        subject = drawn_case(outcome.seed)[1]()
    else:
        model, best = shrunk(runner, outcome.seed, outcome)
        subject = subject_of(model, outcome.seed)
    store(f"seed_{outcome.seed}", subject.content, best.options, subject.cases, _expected(subject, outcome.format))
    return f"seed {outcome.seed}: {outcome.outcome}: {best.options}, {best.kinds}: {best.detail}"

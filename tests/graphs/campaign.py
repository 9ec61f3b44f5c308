# SPDX-License-Identifier: Apache-2.0
"""One random graph: import it, run it as it is planned, compare it with the runtime of its format."""

import itertools
import shutil
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from graphs import drawing_onnx
from graphs.drawn import drawn
from graphs.isolated import isolated
from graphs.planned import Planned, RefusedError
from models.onnx_support import session
from models.oracle import litert
from opwest.base.diagnostics import OpwestError
from opwest.compiler.emission.function import PROCESSORS, VARIANTS
from opwest.compiler.reference.run import outputs_of, run_graph
from opwest.compiler.request import Options
from opwest.imports import convert

EXACT, WRONG, TRACEBACK, REFUSED, INTERNAL, ORACLE = "exact", "wrong", "traceback", "refused", "internal", "no oracle"
"""The outcomes. internal: the import found its own fault."""
FAULTS = (WRONG, TRACEBACK, INTERNAL)
SHARE_OF_CORES = 0.7
"""The share of graphs that run in QEMU, on one core each."""

_numbers = itertools.count()
"""The numbers of shared libraries."""


@dataclass
class Outcome:
    """The result of one graph."""

    seed: int
    format: str
    mode: str
    operators: int
    options: dict
    outcome: str
    detail: str = ""
    core: str | None = None
    kinds: list = field(default_factory=list)
    reference: str = ""
    """The origin of the expected results: a runtime, or the graph as it was read."""


@dataclass
class Subject:
    """A file with its inputs and the expected outputs; None: those of the graph as it was read."""

    content: bytes
    cases: list
    expected: list | None
    has_floats: bool


def options_of(seed, format_):
    """Return the options of an import, those that differ from the defaults."""
    random = np.random.default_rng([seed, 2])
    found = {}
    if random.random() < 0.45:
        found["optimize"] = str(random.choice(["flash", "ram", "ram"]))
    if random.random() < 0.3:
        found["caller_memory"] = False
    if random.random() < 0.2:
        found["max_ram"] = int(random.integers(100, 6000))
    if random.random() < 0.1:
        found["max_flash"] = int(random.integers(3000, 40000))
    if random.random() < 0.2:
        prefixes = tuple(f"{one}-" for one in PROCESSORS)
        names = sorted({one.name for some in VARIANTS.values() for one in some if one.name.startswith(prefixes)})
        found["prefer"] = [str(random.choice(names)) for _ in range(2)]
    if random.random() < 0.15:
        found["float_io"] = True
    if random.random() < 0.1:
        found["kernels"] = "portable"
    if random.random() < 0.05:
        found["optimisations"] = False
    if format_ == "onnx" and random.random() < 0.5:
        found["exact"] = True
    return found


def cases_of(tensors, seed):
    """Return inputs: both ends of the range, a constant, and random ones twice."""
    random = np.random.default_rng([seed, 3])

    def one(tensor, case):
        shape = tuple(tensor.shape)
        if tensor.dtype == "float32":
            ends = (np.full(shape, -3.0), np.full(shape, 3.0), np.full(shape, 0.5))
            return (ends[case] if case < 3 else random.standard_normal(shape) * 2).astype(np.float32)
        if tensor.dtype == "int32":  # indices
            return random.integers(0, 2, shape).astype(np.int32)
        limits = np.iinfo(tensor.dtype)
        ends = (limits.min, limits.max, int(random.integers(limits.min, limits.max + 1)))
        values = np.full(shape, ends[case]) if case < 3 else random.integers(limits.min, limits.max + 1, shape)
        return values.astype(tensor.dtype)

    return [[one(tensor, case) for tensor in tensors] for case in range(5)]


def subject_of(model, seed):
    """Return the file of a TFLite model with LiteRT's results, None where its kernels abort."""
    content = model.build()
    cases = cases_of(model.graph.inputs, seed)
    dtypes = {one.dtype for one in model.graph.tensors}
    return Subject(content, cases, isolated(litert, content, cases), "float32" in dtypes)


def subject_of_onnx(made, seed, mode, options):
    """Return the file of an ONNX model with onnxruntime's results.

    int8 results that are rounded as in TFLite are those of the graph as it was read, and no runtime has them.
    """
    model = made.model()
    content = model.SerializeToString()
    shapes = [[one.dim_value for one in port.type.tensor_type.shape.dim] for port in model.graph.input]
    cases = cases_of([SimpleNamespace(shape=shape, dtype="float32") for shape in shapes], seed)
    expected = isolated(onnxruntime_results, content, cases)
    if mode != "float32" and not options.get("exact"):
        expected = None
    return Subject(content, cases, expected, True)


def drawn_case(seed):
    """Return the outcome of a seed, as it should be, and a function that makes its subject: each fourth one is ONNX."""
    if seed % 4 == 3:
        made, mode = drawing_onnx.drawn(seed)
        options = options_of(seed, "onnx")
        options.pop("float_io", None)
        if mode == "float32":
            options.pop("exact", None)
        kinds = [one.op_type for one in made.nodes if not one.op_type.endswith("Linear")]
        outcome = Outcome(seed, "onnx", mode, len(kinds), options, EXACT, kinds=kinds)
        return outcome, lambda: subject_of_onnx(made, seed, mode, options)
    model, mode = drawn(seed)
    options = options_of(seed, "tflite")
    if not any(one.scale is not None for one in (*model.graph.inputs, *model.graph.outputs)):
        options.pop("float_io", None)
    kinds = [kind for kind, *_ in model.graph.operators]
    return Outcome(seed, "tflite", mode, len(kinds), options, EXACT, kinds=kinds), lambda: subject_of(model, seed)


def onnxruntime_results(content, cases):
    """Return the results of onnxruntime."""
    found = session(content)
    names = [one.name for one in found.get_inputs()]
    return [found.run(None, dict(zip(names, case, strict=True))) for case in cases]


def equal(wanted, found, has_floats):
    """Whether outputs are equal: float32 within 1e-4 of the greatest one that is finite."""
    if wanted.dtype.kind != "f":
        return np.array_equal(wanted, found.reshape(wanted.shape))
    limit = 1e-4 * max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)))
    return np.allclose(found.reshape(wanted.shape), wanted, 1e-4, limit, equal_nan=True)


class Captured:
    """The graph, the implementations and the plans of the last import."""

    def __init__(self):
        self.graph = self.implementations = self.planned = None
        right = convert.prove

        def prove(graph, implementations, planned, place, **keys):
            self.graph, self.implementations, self.planned = graph, implementations, planned
            right(graph, implementations, planned, place, **keys)

        convert.prove = prove


class Runner:
    """Runs graphs; `images` run variants on cores."""

    def __init__(self, folder, images):
        self.folder, self.images = Path(folder), images
        self.captured = Captured()

    def run(self, seed):
        """Return the outcome of a seed."""
        made, find_subject = drawn_case(seed)
        try:
            subject = find_subject()
        except Exception as error:
            made.outcome, made.detail = ORACLE, str(error)[:200]
            return made
        return self.judge(made, subject)

    def judge(self, made, subject):
        """Import a file, run it, and complete the outcome."""
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        file = work / f"m.{made.format}"
        file.write_bytes(subject.content)
        try:
            convert.import_model(file, work / "out", Options(vectors=0, **made.options))
        except OpwestError as error:
            message = error.diagnostics[0].message
            made.outcome, made.detail = (INTERNAL if "internal error" in message else REFUSED), message[:400]
            return made
        except Exception:
            made.outcome, made.detail = TRACEBACK, traceback.format_exc()[-1500:]
            return made
        cases, expected = subject.cases, subject.expected
        made.reference = "LiteRT" if made.format == "tflite" else "onnxruntime"
        converters = self.captured.graph.converters if made.options.get("float_io") else None
        if converters is not None:
            cases = [_as_floats(converters.inputs, case, True) for case in cases]
        if expected is None:
            made.reference = "the graph as it was read"
            expected = [outputs_of(self.captured.graph, run_graph(self.captured.graph, case)) for case in cases]
        elif converters is not None:
            expected = [_as_floats(converters.outputs, case, False) for case in expected]
        try:
            self._host(work / "out", made, cases, expected, subject.has_floats)
            self._core(work / "out", made, cases, expected)
        except AssertionError as error:
            made.outcome, made.detail = WRONG, str(error)[:1000]
        return made

    def _host(self, folder, made, cases, expected, has_floats):
        base = Planned(self.captured.planned[0], folder)
        base.compile(f"library{next(_numbers)}.so")  # a process loads a library of the same name once
        for number, (case, wanted) in enumerate(zip(cases, expected, strict=True)):
            try:
                found = base.run(case)
            except RefusedError as error:
                raise AssertionError(f"case {number}: {error} returns an error code") from None
            for place, (one, other) in enumerate(zip(wanted, found, strict=True)):
                if not equal(one, other, has_floats):
                    far = np.abs(one.astype(np.float64) - other.reshape(one.shape).astype(np.float64))
                    raise AssertionError(
                        f"host: case {number}, output {place}: {int((far > 0).sum())} of {one.size} differ, "
                        f"by at most {far.max():g}"
                    )

    def _core(self, folder, made, cases, expected):
        random = np.random.default_rng([made.seed, 4])
        integers = all(array.dtype.kind in "iu" for case in (*cases, *expected) for array in case)
        if random.random() >= SHARE_OF_CORES or not self.images or not integers:
            return
        variants = [one for one in self.captured.planned if one.model.variant is not None]
        if not variants:
            return
        found = variants[int(random.integers(0, len(variants)))]
        made.core = found.model.variant.name
        images = self.images[made.core]
        images.add(made.seed, Planned(found, folder), made.core, cases[2:4], expected[2:4])


def _as_floats(converters, case, is_input):
    """Return float32 arrays for quantised ones: each number is exactly that of the integer."""

    def real(node, array):
        if node is None:
            return array
        one = (node.output if is_input else node.input(0)).quantization
        if is_input:
            return ((array.astype(np.float64) - one.zero) * one.scale).astype(np.float32)
        return np.float32(one.scale) * (array.astype(np.int32) - one.zero).astype(np.float32)

    return [real(node, array) for node, array in zip(converters, case, strict=True)]

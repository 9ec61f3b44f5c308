# SPDX-License-Identifier: Apache-2.0
"""The expected results of steps: from a run of the same model on this machine, with the first golden vector."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest import pipeline
from opwest.base.diagnostics import Diagnostic, Diagnostics, OpwestError, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.base.timing import stage
from opwest.bundles.checks import check_vectors
from opwest.bundles.client import BundleClient
from opwest.bundles.link import Fields, Job
from opwest.model.readers.fingerprint import model_hash
from opwest.model.types.dtypes import elements_of
from opwest.model.types.model import Model
from opwest.project.request import Request, of_variant
from opwest.render.bundle import StepResult
from opwest.runs.check_steps import host_results
from opwest.runs.link import LinkError, ModelError
from opwest.runs.progress import StageProgress
from opwest.runs.project_data import required_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def step_results(manifest: Path, model: Model, faults: Diagnostics) -> list[StepResult]:
    """Return the results of all steps that are whole buffers of the workspace. Raises OpwestError.

    The results of views and those in memory of the caller have no place in the descriptor.
    """
    check_vectors(model, faults)
    faults.raise_if_errors()
    with stage("run the steps on this machine"), tempfile.TemporaryDirectory(prefix="opwest-") as temporary:
        project = Path(temporary) / "project"
        pipeline.run(Request((manifest,), project, vendored=False), Diagnostics())
        record = required_record(project)
        row = record["models"][0]
        if model.variant is not None:
            row = next(variant for variant in row["variants"] if variant["variant"] == model.variant.name)
        try:
            results = host_results(project, record, row, _first_case(model))
        except OpwestError as error:
            note = "--steps requires a model that runs on this machine: sources, or objects for it"
            kept = [diagnostic for diagnostic in error.diagnostics if diagnostic.severity == "error"]
            raise OpwestError([*kept, Diagnostic("note", note)]) from error
    return _rows(model, row, results, faults)


def _first_case(model: Model) -> dict[str, NDArray[np.generic]]:
    """Return the inputs of the first golden vector."""
    import numpy as np

    content = dict(model.suite.vectors[0].content)
    inputs = {}
    for tensor in model.inputs:
        own = np.dtype(tensor.type.dtype.numpy)
        array = np.frombuffer(content[tensor.name][: tensor.type.size], own.newbyteorder("<"))
        inputs[tensor.name] = array.astype(own).reshape(tensor.type.shape)
    return inputs


def _rows(
    model: Model, record: dict[str, Any], results: dict[tuple[int, str], NDArray[np.generic]], faults: Diagnostics
) -> list[StepResult]:
    buffers = {buffer.name: index for index, buffer in enumerate(model.buffers)}
    rows = []
    left = 0
    for stop in record["stops"]:
        for write in stop["writes"]:
            name = write["tensor"]
            if name not in buffers:
                left += 1
                continue
            dtype = model.buffers[buffers[name]].type.dtype
            held = elements_of(results[stop["point"], name], dtype)
            assert held is not None, "the results have the dtype of their tensor"
            content = held[0].astype(held[0].dtype.newbyteorder("<")).tobytes()
            rows.append(StepResult(stop["point"], write["step"], buffers[name], dtype, content))
    if left:
        faults.note(
            f"--steps: {left} result{'s' * (left != 1)} of steps left out: views, and tensors in memory of the caller",
            model.location,
        )
    if not rows:
        raise fail(f"--steps: no step of model {model.name!r} writes a whole tensor of the workspace", model.location)
    return rows


@dataclass(frozen=True)
class Expected:
    """The results of a model's steps on this machine, for its first golden vector."""

    model_hash: str
    """In hexadecimal digits."""
    results: tuple[StepResult, ...]
    operators: Sequence[str]
    """The operator of each step."""
    tensors: Sequence[str]
    """The name of each buffer."""


@dataclass(frozen=True)
class StepCheck:
    """The first difference, or None."""

    step: int | None
    operator: str
    tensor: str
    element: int
    count: int
    source: str

    def as_text(self) -> str:
        """Return one line of text."""
        if self.step is None:
            return f"no step differs from {self.source}"
        elements = f"{self.count} element{'' if self.count == 1 else 's'}"
        return (
            f"step {self.step} ({self.operator}) differs from {self.source}: tensor {self.tensor}: {elements}, "
            f"the first one at index {self.element}"
        )

    def as_json(self) -> dict[str, object]:
        """Return the value for JSON output."""
        first = {"step": self.step, "operator": self.operator, "tensor": self.tensor, "at": [self.element]}
        return {"first": None if self.step is None else {**first, "differing": self.count}, "reference": self.source}


def expected_steps(manifest: Path, variant: str | None, faults: Diagnostics) -> Expected:
    """Return the results of steps of a manifest, from a run on this machine. Raises OpwestError."""
    project = pipeline.run(Request((manifest,), None, vendored=False, layout="model"), faults, "render")
    model = of_variant(project.examinations, variant, faults)[0].model
    results = tuple(sorted(step_results(manifest, model, faults), key=lambda result: result.point))
    faults.raise_if_errors()
    steps = [step.operator.name for step in model.steps]
    return Expected(model_hash(model), results, steps, [buffer.name for buffer in model.buffers])


def check_own(client: BundleClient) -> StepCheck:
    """Compare the steps with the results in the bundle."""
    source = "those in the bundle"
    hint = "make it with --steps, or with --observable and give its manifest"
    differs = _difference(client, "the bundle contains no results of steps", hint, Job.STEPS)
    if differs is None:
        return StepCheck(None, "", "", 0, 0, source)
    step, element, count = map(differs.number, ("step", "element", "count"))
    return StepCheck(step, differs.text("operator"), differs.text("tensor"), element, count, source)


def check_sent(client: BundleClient, expected: Expected, progress: StageProgress) -> StepCheck:
    """Send the results of this machine along, in the order of the run; stop at the first difference."""
    source = "those of this machine"
    active = next((slot for slot in client.slots() if "active" in slot.roles), None)
    if active is None or active.model is None:
        raise ModelError(f"{client.device}: the board has no model")
    active_hash = active.model.model_hash.hex()
    if active_hash != expected.model_hash:
        raise ModelError(
            f"{client.device}: the board runs another model or version of it: '{active.model.name}', hash "
            f"{active_hash[:16]}, expected {expected.model_hash[:16]}",
            "give the manifest of the installed bundle",
        )
    unobservable = "the model on the board does not report the ends of its steps"
    hint = "make the bundle with --observable, or with --steps"
    total, sent = sum(len(result.content) for result in expected.results), 0
    for result in expected.results:
        size = max(client.part_size // result.dtype.size, 1) * result.dtype.size
        for offset in range(0, len(result.content), size):
            part = result.content[offset : offset + size]
            arguments = {"point": result.point, "buffer": result.buffer, "offset": offset, "data": part}
            differs = _difference(client, unobservable, hint, Job.PART, **arguments)
            if differs is not None:
                element, count = differs.number("element"), differs.number("count")
                operator, tensor = expected.operators[result.step], expected.tensors[result.buffer]
                progress.end()
                return StepCheck(result.step, operator, tensor, element, count, source)
            sent += len(part)
            progress.part("comparing steps", sent, total)
    return StepCheck(None, "", "", 0, 0, source)


def _difference(client: BundleClient, fault: str, hint: str, job: Job, **arguments: Any) -> Fields | None:
    """Run the golden vector; return the difference, None without one. `fault`: why the job is not supported."""
    done = client.do(job, "the end of the golden vector", **arguments)
    if done.error == "EILSEQ":
        return done.fields
    if done.error == "ENOTSUP":
        raise ModelError(f"{client.device}: {fault}", hint)
    if done.result != 0 and done.error == "ENOENT":
        raise ModelError(f"{client.device}: the board has no model, or the model has no such step")
    if done.result != 0:
        raise LinkError(f"{client.device}: the golden vector failed: {done.error or done.result}")
    return None

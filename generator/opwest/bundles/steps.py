# SPDX-License-Identifier: Apache-2.0
"""The expected results of steps: from a run of the same model on this machine, with the first golden vector."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest import pipeline
from opwest.activity import stage
from opwest.bundles.checks import check_vectors
from opwest.diagnostics import Diagnostic, Diagnostics, OpwestError
from opwest.host.project_data import project_record
from opwest.host.steps import host_results
from opwest.model.elements import elements_of
from opwest.model.model import Model
from opwest.render.bundle import StepResult
from opwest.request import Request

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
        record = project_record(project)
        if record is None:
            raise ValueError("the project has a record")
        row = record["models"][0]
        if model.variant is not None:
            row = next(one for one in row["variants"] if one["variant"] == model.variant.name)
        try:
            found = host_results(project, record, row, _first_case(model))
        except OpwestError as error:
            note = "--steps requires a model that runs on this machine: sources, or objects for it"
            kept = [one for one in error.diagnostics if one.severity == "error"]
            raise OpwestError([*kept, Diagnostic("note", note)]) from error
    return _rows(model, row, found, faults)


def _first_case(model: Model) -> dict[str, NDArray[np.generic]]:
    """Return the inputs of the first golden vector."""
    import numpy as np

    content = dict(model.suite.vectors[0].content)
    found = {}
    for tensor in model.inputs:
        own = np.dtype(tensor.type.dtype.numpy)
        array = np.frombuffer(content[tensor.name][: tensor.type.size], own.newbyteorder("<"))
        found[tensor.name] = array.astype(own).reshape(tensor.type.shape)
    return found


def _rows(
    model: Model, record: dict[str, Any], found: dict[tuple[int, str], NDArray[np.generic]], faults: Diagnostics
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
            held = elements_of(found[stop["point"], name], dtype)
            if held is None:
                raise ValueError("the results have the dtype of their tensor")
            content = held[0].astype(held[0].dtype.newbyteorder("<")).tobytes()
            rows.append(StepResult(stop["point"], write["step"], buffers[name], dtype, content))
    if left:
        faults.note(
            f"--steps: {left} result{'s' * (left != 1)} of steps left out: views, and tensors in memory of the caller",
            model.location,
        )
    if not rows:
        message = f"--steps: no step of model {model.name!r} writes a whole tensor of the workspace"
        raise OpwestError([Diagnostic("error", message, model.location)])
    return rows

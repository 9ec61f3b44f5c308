# SPDX-License-Identifier: Apache-2.0
"""The results of every step of a model, from a run on this machine: `opwest run --board --check-steps`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base.diagnostics import Diagnostic, OpwestError
from opwest.model.types.dtypes import DTYPES
from opwest.model.types.elements import numbers_from
from opwest.runs.arrays import Runs
from opwest.runs.compile import HostCompiler, fail
from opwest.runs.harness import buffer_of, run_harness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


def step_tensors(model: Mapping[str, Any], project: Path) -> dict[str, dict[str, Any]]:
    """Return the tensors that steps write, by name. Raises OpwestError for the record of an earlier opwest."""
    if not {"pools", "results", "stops", "views"} <= model.keys():
        raise fail(
            "the lock has no list of the results of steps",
            project,
            hint="generate the application again: opwest update DIR",
        )
    tensors = {t["name"]: {**t, "place": _place(t["buffer"])} for t in model["results"]}
    tensors |= {t["name"]: {**t, "place": buffer_of(t)} for t in model["tensors"]}
    views = (
        {**v, "place": f"(const uint8_t *)({tensors[v['root']]['place']}) + {v['offset']}"} for v in model["views"]
    )
    tensors |= {view["name"]: view for view in views}
    written = {write["tensor"] for stop in model["stops"] for write in stop["writes"]}
    if unknown := sorted(written - tensors.keys()):
        raise fail(f"the lock is damaged: unknown tensor {unknown[0]!r} in a stop", project)
    return {name: tensor for name, tensor in tensors.items() if name in written}


def _place(buffer: int) -> str:
    return f"pools[buffers[{buffer}].pool] + buffers[{buffer}].offset"


def host_results(
    project: Path,
    record: Mapping[str, Any],
    model: Mapping[str, Any],
    arrays: Mapping[str, Array],
    cmsis_nn: Path | None = None,
) -> dict[tuple[int, str], Array]:
    """Run a model on this machine; return its tensors at the stops of the record, by point and name.

    `arrays` are the inputs by name, `cmsis_nn` the directory of CMSIS-NN.
    Raises OpwestError if the model cannot be built or run here.
    """
    tensors = step_tensors(model, project)
    stops = [
        {"point": stop["point"], "writes": [tensors[write["tensor"]] for write in stop["writes"]]}
        for stop in model["stops"]
    ]
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        compiler = HostCompiler(Path(work), None, check_steps=True)
        try:
            paths, _ = run_harness(
                project, record, model, compiler, Path(work), Runs(arrays), stops=stops, cmsis_nn=cmsis_nn
            )
        except OpwestError as error:
            note = "give the expected results of steps instead: --reference TENSOR=FILE.npy"
            raise OpwestError([*error.diagnostics, Diagnostic("note", note)]) from error
        data = memoryview(paths[-1].read_bytes())
    results = {}
    for stop in stops:
        for tensor in stop["writes"]:
            part, data = data[: tensor["size"]], data[tensor["size"] :]
            if len(part) != tensor["size"]:
                raise fail(f"the host run of model '{model['name']}' ended before point {stop['point']}", project)
            numbers = numbers_from(bytes(part), DTYPES[tensor["dtype"]], tensor["shape"], tensor.get("pitch", 0))
            results[stop["point"], tensor["name"]] = numbers
    return results

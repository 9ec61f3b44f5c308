# SPDX-License-Identifier: Apache-2.0
"""`opwest run --board --check-steps`: stop after every step and compare its results with a reference."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opwest.base.diagnostics import Diagnostic, OpwestError, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.dtypes import DTYPES, numbers_from
from opwest.runs.arrays import Runs
from opwest.runs.compare import Difference, Tolerances, difference
from opwest.runs.compile import HostCompiler
from opwest.runs.harness import buffer_of, run_harness
from opwest.runs.link import REBUILD_HINT, Action, Link, LinkError, Served
from opwest.runs.progress import StageProgress
from opwest.runs.project_data import UPDATE_HINT
from opwest.runs.session import Session, opened

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements as Array


def step_tensors(model: Mapping[str, Any], project: Path) -> dict[str, dict[str, Any]]:
    """Return the tensors that steps write, by name. Raises OpwestError for the record of an earlier opwest."""
    if not {"pools", "results", "stops", "views"} <= model.keys():
        raise fail("the lock has no list of the results of steps", project, hint=UPDATE_HINT)
    tensors = {
        t["name"]: {**t, "place": f"pools[buffers[{t['buffer']}].pool] + buffers[{t['buffer']}].offset"}
        for t in model["results"]
    }
    tensors |= {t["name"]: {**t, "place": buffer_of(t)} for t in model["tensors"]}
    views = (
        {**v, "place": f"(const uint8_t *)({tensors[v['root']]['place']}) + {v['offset']}"} for v in model["views"]
    )
    tensors |= {view["name"]: view for view in views}
    written = {write["tensor"] for stop in model["stops"] for write in stop["writes"]}
    if unknown := sorted(written - tensors.keys()):
        raise fail(f"the lock is damaged: unknown tensor {unknown[0]!r} in a stop", project)
    return {name: tensor for name, tensor in tensors.items() if name in written}


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
            paths, _ = run_harness(project, record, model, compiler, Runs(arrays), stops=stops, cmsis_nn=cmsis_nn)
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


@dataclass(frozen=True)
class Expected:
    """The expected results of steps: `values` by point and tensor."""

    stops: Sequence[Mapping[str, Any]]
    steps: Sequence[str]
    """The operator of each step."""
    values: Mapping[tuple[int, str], Array]
    source: str
    """The origin of the values, as shown to the user."""
    views: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The views among the tensors: dtype, shape, size and the place in their root."""


@dataclass(frozen=True)
class StepDifference:
    """A result of a step that differs from its reference."""

    step: int
    operator: str
    tensor: str
    difference: Difference

    def as_text(self) -> str:
        """Return one line of text."""
        return f"step {self.step} ({self.operator}) differs: tensor {self.tensor}: {self.difference.as_text()}"

    def as_json(self) -> dict[str, Any]:
        """Return the value for JSON output."""
        return {"step": self.step, "operator": self.operator, "tensor": self.tensor, "error": self.difference.as_json()}


@dataclass(frozen=True)
class Checked:
    """The result of a check: the first difference, the number of compared tensors and steps, and of all steps."""

    first: StepDifference | None
    tensors: int
    steps: int
    all_steps: int
    source: str

    def as_text(self) -> str:
        """Return one line of text."""
        if self.first is not None:
            return self.first.as_text()
        steps = f"{self.steps} step{'' if self.steps == 1 else 's'}"
        if self.steps != self.all_steps:
            steps = f"{self.steps} of {self.all_steps} steps"
        equal = "1 result equals" if self.tensors == 1 else f"{self.tensors} results equal"
        return f"no difference in {steps}: {equal} {self.source}"

    def as_json(self) -> dict[str, Any]:
        """Return the value for JSON output."""
        first = self.first and self.first.as_json()
        return {
            "first": first,
            "tensor_count": self.tensors,
            "step_count": self.steps,
            "all_step_count": self.all_steps,
            "reference": self.source,
        }


def expected_results(
    project: Path,
    record: Mapping[str, Any],
    model: Mapping[str, Any],
    inputs: Mapping[str, Array],
    references: Mapping[str, Array],
    cmsis_nn: Path | None = None,
) -> Expected:
    """Return the given references, else the results of a run on this machine. Raises OpwestError.

    A reference is the content after the last step that writes the tensor.
    """
    views = {view["name"]: view for view in model.get("views", ())}
    if references:
        last = {write["tensor"]: stop["point"] for stop in model["stops"] for write in stop["writes"]}
        if unused := sorted(references.keys() - last.keys()):
            text = f"--check-steps cannot compare {unused[0]!r}: a later step may overwrite it before the wait"
            raise fail(text, project, hint="omit its --reference")
        values = {(last[tensor], tensor): array for tensor, array in references.items()}
        return Expected(model["stops"], model["steps"], values, "the given references", views)
    results = host_results(project.absolute(), record, model, inputs, cmsis_nn)
    return Expected(model["stops"], model["steps"], results, "those of the host", views)


def check_steps(
    link: Link,
    model: Served,
    inputs: Mapping[str, Array],
    expected: Expected,
    *,
    tolerances: Tolerances,
    progress: StageProgress,
) -> Checked:
    """Run a model up to each stop and compare its results there; errors within the tolerances are no difference.

    After the first difference the run continues to its end. Raises LinkError, also if the run fails.
    """
    with opened(link, model, progress) as session:
        for index, tensor in enumerate(model.tensors):
            if tensor.role == "input":
                session.send(index, inputs[tensor.name].tobytes())
        checked = _compare(session, expected, tolerances)
        end = link.run_until(model, 0)
        # A step that failed has incomplete results: the failure is the cause.
        if end.result != 0 and (checked.first is None or end.step == checked.first.step):
            raise session.failure(end, Action.RUN)
    return checked


def _compare(session: Session, expected: Expected, tolerances: Tolerances) -> Checked:
    model, device = session.model, session.link.device
    places = {tensor.name: index for index, tensor in reversed(list(enumerate(model.tensors)))}
    seen: set[int] = set()
    count = 0
    for stop in expected.stops:
        point = stop["point"]
        writes = [write for write in stop["writes"] if (point, write["tensor"]) in expected.values]
        if not writes:
            continue
        step = writes[-1]["step"]
        session.progress.show(f"running {model.name} up to step {step} ({expected.steps[step]})")
        report = session.link.run_until(model, point)
        if report.result != 0 and not report.stopped:
            raise session.failure(report, Action.RUN)
        if not report.stopped:
            text = f"{device}: the run of model '{model.name}' ended before point {point}"
            raise LinkError(text, REBUILD_HINT)
        for write in writes:
            name, step = write["tensor"], write["step"]
            view = expected.views.get(name)
            root = view["root"] if view else name
            if root not in places:
                raise LinkError(f"the image on '{device}' has no tensor '{root}'", REBUILD_HINT)
            index = places[root]
            if view:
                data = session.fetch_part(index, name, view["offset"], view["size"])
                actual = numbers_from(data, DTYPES[view["dtype"]], view["shape"], view.get("pitch", 0))
            else:
                actual = session.fetch(index)
            reference = expected.values[point, name]
            if actual.shape != reference.shape:
                shown = f"{list(actual.shape)}, expected {list(reference.shape)}"
                raise LinkError(f"tensor '{name}' of the image on '{device}' has the shape {shown}")
            error = difference(actual, reference, tolerances.of(name))
            seen.add(step)
            count += 1
            if error.beyond:
                first = StepDifference(step, expected.steps[step], name, error)
                return Checked(first, count, len(seen), len(expected.steps), expected.source)
    return Checked(None, count, len(seen), len(expected.steps), expected.source)

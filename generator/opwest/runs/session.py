# SPDX-License-Identifier: Apache-2.0
"""Run a model over a connection: write the inputs, run, read the outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.model.types.dtypes import DTYPES, numbers_from
from opwest.runs.arrays import Runs
from opwest.runs.link import REBUILD_HINT, Action, Link, LinkError, ModelError, Report, Served
from opwest.runs.profile import Profile
from opwest.runs.progress import StageProgress

if TYPE_CHECKING:
    from opwest.model.types.dtypes import Elements as Array


@dataclass(frozen=True)
class Outcome:
    """Outputs by name, and the duration of each run in nanoseconds."""

    outputs: dict[str, Array]
    nanoseconds: tuple[int, ...]
    profile: Profile | None = None


def find_model(models: Sequence[Served], name: str, device: str) -> Served:
    """Return a model of the image by name."""
    for model in models:
        if model.name == name:
            return model
    names = ", ".join(model.name for model in models)
    raise LinkError(f"unknown model {name!r}; the image on '{device}' has: {names}", REBUILD_HINT)


def check_tensors(model: Served, expected: Sequence[Mapping[str, Any]], device: str) -> None:
    """Raise LinkError if the image was built from another version of the model."""
    described = [(t.role, t.name, t.dtype, list(t.shape)) for t in model.tensors if t.role in ("input", "output")]
    required = [(t["role"], t["name"], t["dtype"], list(t["shape"])) for t in expected]
    if described != required:
        shown = ", ".join(f"{role} {name} {dtype} {shape}" for role, name, dtype, shape in described)
        text = f"the image on '{device}' was built from another version of model '{model.name}': it has {shown}"
        raise LinkError(text, REBUILD_HINT)


def run_model(link: Link, model: Served, runs: Runs, *, progress: StageProgress, profile: bool = False) -> Outcome:
    """Run a model on the inputs of `runs`; return the duration of every run, and the last outputs.

    With streams, return the outputs of all runs, with the frames as first dimension.
    """
    with opened(link, model, progress) as session:
        times = []
        kept: list[dict[str, Array]] = []
        for number in range(runs.count):
            # Before every run, because a run may overwrite the memory of its inputs.
            for index, tensor in enumerate(model.tensors):
                if tensor.role == "input":
                    session.send(index, runs.content(tensor.name, number))
            progress.show(f"running {model.name}" + (f", {number + 1} of {runs.count}" if runs.count > 1 else ""))
            times.append(session.act(Action.RUN))
            if runs.streams or number + 1 == runs.count:
                outputs = (i for i, tensor in enumerate(model.tensors) if tensor.role == "output")
                kept.append({model.tensors[i].name: session.fetch(i) for i in outputs})
        results = kept[-1]
        if runs.streams:
            import numpy as np

            results = {name: np.stack([frame[name] for frame in kept]) for name in results}
        measured = link.measures(model) if profile else None
    return Outcome(results, tuple(times), measured)


@contextlib.contextmanager
def opened(link: Link, model: Served, progress: StageProgress) -> Iterator[Session]:
    """Open a model, and close it at the end. Raises ModelError if the model fails."""
    session = Session(link, model, progress)
    session.act(Action.OPEN)
    try:
        yield session
    except ModelError:
        with contextlib.suppress(LinkError):  # report the first error
            link.act(model, Action.CLOSE)
        raise
    session.act(Action.CLOSE)


@dataclass(frozen=True)
class Session:
    """An open model of an image, and the progress of the transfers of its tensors."""

    link: Link
    model: Served
    progress: StageProgress

    def act(self, action: Action) -> int:
        """Open, run or close the model; return the duration in nanoseconds. Raises ModelError for a failure."""
        report = self.link.act(self.model, action)
        if report.result != 0:
            raise self.failure(report, action)
        return report.nanoseconds

    def failure(self, report: Report, action: Action) -> ModelError:
        """Return the error of a failed action."""
        text = f"{self.model.name}_{action.name.lower()} returned {report.error or report.result}"
        if report.step >= 0:
            text += f" in step {report.step} ({report.operator})"
        if report.hook:
            text += f": {report.hook} of device {report.device} returned {report.code}"
        elif report.code:
            text += f": the operator returned {report.code}"
        return ModelError(text, failure_hint(report))

    def send(self, index: int, data: bytes) -> None:
        """Write the content of a tensor."""
        name = self.model.tensors[index].name
        done = 0
        while done < len(data):
            self.progress.part(f"sending {name}", done, len(data))
            written = self.link.write(self.model, index, done, data[done:])
            if not 0 < written <= len(data) - done:
                raise LinkError(
                    f"{self.link.device}: input '{name}': wrote {written} of {counted(len(data) - done, 'byte')}"
                )
            done += written
        self.progress.part(f"sending {name}", done, len(data))

    def fetch(self, index: int) -> Array:
        """Return the content of a tensor."""
        tensor = self.model.tensors[index]
        data = self.fetch_part(index, tensor.name, 0, tensor.size)
        return numbers_from(data, DTYPES[tensor.dtype], tensor.shape)

    def fetch_part(self, index: int, name: str, offset: int, size: int) -> bytes:
        """Return `size` bytes of a tensor from an offset; `name` is shown to the user."""
        tensor = self.model.tensors[index]
        what = f"{self.link.device}: {tensor.role if tensor.size == size else 'result'} '{name}'"
        data = b""
        while len(data) < size:
            self.progress.part(f"fetching {name}", len(data), size)
            part = self.link.read(self.model, index, offset + len(data))
            if not part:
                raise LinkError(f"{what}: read {len(data)} of {counted(size, 'byte')}")
            data += part
        if len(data) > size and tensor.size == size:
            raise LinkError(f"{what}: read {counted(len(data), 'byte')}, expected {size}")
        self.progress.part(f"fetching {name}", size, size)
        return data[:size]


def failure_hint(report: Report) -> str | None:
    """Return the hint for a failed action."""
    if report.error == "EBUSY":
        return "the service needs exclusive use of the device; the application's main() may keep it open"
    return None

# SPDX-License-Identifier: Apache-2.0
"""Run a model over a connection: write the inputs, run, read the outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opwest.base.frozen_dataclass import dataclass
from opwest.model.types.dtypes import DTYPES, numbers_from
from opwest.runs.arrays import Runs
from opwest.runs.link import Action, Link, LinkError, ModelError, Report, Served
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
    raise LinkError(f"unknown model {name!r}; the image on '{device}' has: {names}", "omit --no-build and --no-flash")


def check_tensors(model: Served, expected: Sequence[Mapping[str, Any]], device: str) -> None:
    """Raise LinkError if the image was built from another version of the model."""
    described = [(t.role, t.name, t.dtype, list(t.shape)) for t in model.tensors if t.role in ("input", "output")]
    required = [(t["role"], t["name"], t["dtype"], list(t["shape"])) for t in expected]
    if described != required:
        shown = ", ".join(f"{role} {name} {dtype} {shape}" for role, name, dtype, shape in described)
        raise LinkError(
            f"the image on '{device}' was built from another version of model '{model.name}': it has {shown}",
            "omit --no-build and --no-flash",
        )


def run_model(link: Link, model: Served, runs: Runs, *, progress: StageProgress, profile: bool = False) -> Outcome:
    """Run a model on the inputs of `runs`; return the duration of every run, and the last outputs.

    With streams, return the outputs of all runs, with the frames as first dimension.
    """
    with opened(link, model):
        times = []
        kept: list[dict[str, Array]] = []
        for number in range(runs.count):
            # Before every run, because a run may overwrite the memory of its inputs.
            for index, tensor in enumerate(model.tensors):
                if tensor.role == "input":
                    send(link, model, index, runs.content(tensor.name, number), progress)
            progress.show(f"running {model.name}" + (f", {number + 1} of {runs.count}" if runs.count > 1 else ""))
            times.append(act(link, model, Action.RUN))
            if runs.streams or number + 1 == runs.count:
                outputs = (i for i, tensor in enumerate(model.tensors) if tensor.role == "output")
                kept.append({model.tensors[i].name: fetch(link, model, i, progress) for i in outputs})
        results = _stacked(kept) if runs.streams else kept[-1]
        measured = link.measures(model) if profile else None
    return Outcome(results, tuple(times), measured)


@contextlib.contextmanager
def opened(link: Link, model: Served) -> Iterator[None]:
    """Open a model, and close it at the end. Raises ModelError if the model fails."""
    act(link, model, Action.OPEN)
    try:
        yield
    except ModelError:
        with contextlib.suppress(LinkError):  # report the first error
            link.act(model, Action.CLOSE)
        raise
    act(link, model, Action.CLOSE)


def _stacked(frames: Sequence[dict[str, Array]]) -> dict[str, Array]:
    import numpy as np

    return {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}


def act(link: Link, model: Served, action: Action) -> int:
    """Open, run or close a model; return the duration in nanoseconds. Raises ModelError for a failure."""
    report = link.act(model, action)
    if report.result != 0:
        raise failure(report, model, action)
    return report.nanoseconds


def failure(report: Report, model: Served, action: Action) -> ModelError:
    """Return the error of a failed action."""
    return ModelError(report.fault(model.name, action), failure_hint(report))


def failure_hint(report: Report) -> str | None:
    """Return the hint for a failed action."""
    if report.error == "EBUSY":
        return "the service needs exclusive use of the device; the application's main() may keep it open"
    return None


def send(link: Link, model: Served, index: int, data: bytes, progress: StageProgress) -> None:
    """Write the content of a tensor."""
    name = model.tensors[index].name
    done = 0
    while done < len(data):
        progress.part(f"sending {name}", done, len(data))
        written = link.write(model, index, done, data[done:])
        if not 0 < written <= len(data) - done:
            raise LinkError(f"{link.device}: input '{name}': wrote {written} of {len(data) - done} bytes")
        done += written
    progress.part(f"sending {name}", done, len(data))


def fetch(link: Link, model: Served, index: int, progress: StageProgress) -> Array:
    """Return the content of a tensor."""
    tensor = model.tensors[index]
    data = fetch_part(link, model, index, tensor.name, 0, tensor.size, progress)
    return numbers_from(data, DTYPES[tensor.dtype], tensor.shape)


def fetch_part(
    link: Link, model: Served, index: int, name: str, offset: int, size: int, progress: StageProgress
) -> bytes:
    """Return `size` bytes of a tensor from an offset; `name` is shown to the user."""
    whole = model.tensors[index].size == size
    role = model.tensors[index].role if whole else "result"
    data = b""
    while len(data) < size:
        progress.part(f"fetching {name}", len(data), size)
        part = link.read(model, index, offset + len(data))
        if not part:
            raise LinkError(f"{link.device}: {role} '{name}': read {len(data)} of {size} bytes")
        data += part
    if len(data) > size and whole:
        raise LinkError(f"{link.device}: {role} '{name}': read {len(data)} bytes, expected {size}")
    progress.part(f"fetching {name}", size, size)
    return data[:size]

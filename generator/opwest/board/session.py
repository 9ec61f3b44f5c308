# SPDX-License-Identifier: Apache-2.0
"""One run over a connection: inputs there, outputs back, with progress and the latency of each run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opwest.board.link import Action, Link, LinkError, ModelError, Served
from opwest.board.progress import Progress
from opwest.host.profile import Profile
from opwest.model.dtypes import DTYPES
from opwest.model.elements import numbers_from

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


@dataclass(frozen=True)
class Outcome:
    """Outputs by name, and how long each run took."""

    outputs: dict[str, Array]
    nanoseconds: tuple[int, ...]
    profile: Profile | None = None


def find_model(models: Sequence[Served], wanted: str, device: str) -> Served:
    """Return a model of the image by name."""
    for model in models:
        if model.name == wanted:
            return model
    names = ", ".join(model.name for model in models)
    raise LinkError(
        f"the image on {device} has no model {wanted!r}, but: {names}", "leave out --no-build and --no-flash"
    )


def check_tensors(model: Served, expected: Sequence[Mapping[str, Any]], device: str) -> None:
    """Refuse an image that was made of another state of the model."""
    there = [(t.role, t.name, t.dtype, list(t.shape)) for t in model.tensors]
    here = [(t["role"], t["name"], t["dtype"], list(t["shape"])) for t in expected]
    if there != here:
        shown = ", ".join(f"{role} {name} {dtype} {shape}" for role, name, dtype, shape in there)
        raise LinkError(
            f"the image on {device} was built of another state of model {model.name}: it has {shown}",
            "leave out --no-build and --no-flash",
        )


def run_model(
    link: Link,
    model: Served,
    inputs: Mapping[str, Array],
    *,
    repeat: int,
    progress: Progress,
    profile: bool = False,
) -> Outcome:
    """Run a model `repeat` times on the same inputs; return the outputs of the last run, and what all of them took."""
    _act(link, model, Action.OPEN)
    try:
        times = []
        for number in range(repeat):
            # Each time: a run may use the memory of its inputs for something else.
            for index, tensor in enumerate(model.tensors):
                if tensor.role == "input":
                    _send(link, model, index, inputs[tensor.name].tobytes(), progress)
            progress.show(f"running {model.name}" + (f", {number + 1} of {repeat}" if repeat > 1 else ""))
            times.append(_act(link, model, Action.RUN))
        outputs = {
            tensor.name: _fetch(link, model, index, progress)
            for index, tensor in enumerate(model.tensors)
            if tensor.role == "output"
        }
        measured = link.measures(model) if profile else None
    except ModelError:
        with contextlib.suppress(LinkError):  # the first fault is the one to tell
            link.act(model, Action.CLOSE)
        raise
    _act(link, model, Action.CLOSE)
    return Outcome(outputs, tuple(times), measured)


def _act(link: Link, model: Served, action: Action) -> int:
    report = link.act(model, action)
    if report.result != 0:
        raise ModelError(report.fault(model.name, action), _hint(report.error))
    return report.nanoseconds


def _hint(error: str) -> str | None:
    if error == "EBUSY":
        return "the application's main() may hold the device: the service needs it for itself"
    return None


def _send(link: Link, model: Served, index: int, data: bytes, progress: Progress) -> None:
    name = model.tensors[index].name
    done = 0
    while done < len(data):
        progress.part(f"sending {name}", done, len(data))
        written = link.write(model, index, done, data[done:])
        if not 0 < written <= len(data) - done:
            raise LinkError(f"{link.device}: input {name} was received as {written} of {len(data) - done} bytes")
        done += written
    progress.part(f"sending {name}", done, len(data))


def _fetch(link: Link, model: Served, index: int, progress: Progress) -> Array:
    tensor = model.tensors[index]
    data = b""
    while len(data) < tensor.size:
        progress.part(f"fetching {tensor.name}", len(data), tensor.size)
        part = link.read(model, index, len(data))
        if not part:
            raise LinkError(f"{link.device}: output {tensor.name} ended after {len(data)} of {tensor.size} bytes")
        data += part
    if len(data) > tensor.size:
        raise LinkError(f"{link.device}: output {tensor.name} came with {len(data)} of {tensor.size} bytes")
    progress.part(f"fetching {tensor.name}", len(data), tensor.size)
    return numbers_from(data, DTYPES[tensor.dtype], tensor.shape)

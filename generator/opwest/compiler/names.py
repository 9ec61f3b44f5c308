# SPDX-License-Identifier: Apache-2.0
"""Parts of the manifests that imports write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.manifest import writer
from opwest.model.types.c_names import fault_of_name, reserved_model_name

_GENERIC = re.compile(r"(Stateful)?PartitionedCall(:\d+)?(_\d+)?\Z|Identity(_\d+)?\Z|\Z")


def identifier(text: str, otherwise: str) -> str:
    """Return a C name similar to a name of the model."""
    text = re.sub(r":0\Z", "", text.removeprefix("serving_default_"))
    if _GENERIC.match(text):
        return otherwise
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or otherwise
    if name[0].isdigit() or fault_of_name(name) is not None:
        name = f"{otherwise}_{name}"
    return name[:60]


def model_name(text: str) -> str:
    """Return a name of a model similar to that of its file."""
    name = identifier(text, "model")
    return name if reserved_model_name(name) is None else f"model_{name}"


def free_name(name: str, taken: set[str]) -> str:
    """Return a name, with a number if it is in use, and add it to the names in use."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free)
    return free


@dataclass(frozen=True)
class ObjectFile:
    """A file of operators: an object for a target, or C for all."""

    name: str
    target: str | None = None


def opening(model: str, origin: str, remarks: Iterable[str]) -> Iterator[str]:
    """Yield the head of a manifest: its origin, each remark as a sentence, version and model."""
    yield "# SPDX-License-Identifier: Apache-2.0"
    yield from writer.comment(f"{origin} You can edit it, for example boards, memory pools and names.")
    for remark in remarks:
        yield from writer.comment(f"{remark[:1].upper()}{remark[1:]}.")
    yield "version: 1"
    yield f"model: {writer.scalar(model)}"

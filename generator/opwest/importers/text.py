# SPDX-License-Identifier: Apache-2.0
"""Parts of the manifests that importers write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opwest.model.identifiers import fault_of_name

WIDTH = 118
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
    """A file of operators: for a target, or C for any."""

    name: str
    target: str | None = None


def object_line(one: ObjectFile) -> str:
    """Return an entry of `objects`."""
    target = f"target: {one.target}, " if one.target else ""
    return f"  - {{{target}files: [{one.name}]}}"


def comment(text: str) -> Iterator[str]:
    """Yield a text as lines of a comment."""
    line = "#"
    for word in "".join(c if c.isprintable() else "?" for c in text).split():
        if len(line) + 1 + len(word) > WIDTH:
            yield line
            line = "#"
        line += f" {word}"
    yield line

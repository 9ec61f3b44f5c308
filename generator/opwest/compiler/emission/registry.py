# SPDX-License-Identifier: Apache-2.0
"""The variants of operations: the first one that applies is used, unless the import selects another."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from weakref import WeakKeyDictionary

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call
from opwest.compiler.ir.program import Operation

PROCESSORS = {"mla": ("mla",), "dsp": ("dsp", "mla"), "mve": ("mve", "dsp", "mla")}
"""The classes of processors, and the prefixes of the variants that run on each, the fastest first.

mla: Armv7-M without the DSP extension (Cortex-M3); dsp: with it (M4, M7, M33); mve: the vector extension (M55, M85).
"""
LIBRARY_VARIANTS = {"mla": "none", "dsp": "dsp", "mve": "mve"}
"""By class of processors: the end of the name of a library's variant with its instructions."""
EVERYWHERE = ("portable", "stripes")
"""The variants that run on all processors. An operation has one of them."""
Render = Callable[..., Call | None]
"""From an operation to its call; None if the variant does not apply.

With a parameter `shared` it can also return a function that takes the numbers of the layer from a constant array.
"""


@dataclass(frozen=True)
class Variant:
    """One way to compute an operation."""

    name: str
    """portable: C for every processor; cmsis-nn...: calls of a library; otherwise a class of processors, a hyphen and
    the technique."""
    render: Render
    has_pitch: bool = False
    """Whether it can write results whose rows do not follow each other: `Value.pitch`."""

    def call(self, operation: Operation, shared: bool = False) -> Call | None:
        """Return the call; None if the variant does not apply."""
        if not self.has_pitch and any(one.pitch for one in operation.results):
            return None
        # The search for variants requests each call many times.
        calls = _CALLS.setdefault(operation, {})
        key = (self.render, shared and can_share(self.render))
        if key not in calls:
            calls[key] = self.render(operation, shared=True) if key[1] else self.render(operation)
        return calls[key]


VARIANTS: dict[type, list[Variant]] = {}
"""Importing `emit` fills it."""
_CALLS: WeakKeyDictionary[Operation, dict[tuple[Render, bool], Call | None]] = WeakKeyDictionary()
"""The calls of the operations in use."""


def emits(operation: type, name: str = "portable", *, has_pitch: bool = False) -> Callable[[Render], Render]:
    """Register a variant. `has_pitch`: it writes results with a pitch, too; others do not get them."""

    def register(render: Render) -> Render:
        VARIANTS.setdefault(operation, []).append(Variant(name, render, has_pitch))
        return render

    return register


def can_share(render: Render) -> bool:
    """Whether a variant can take the numbers of a layer from an array."""
    return "shared" in inspect.signature(render).parameters

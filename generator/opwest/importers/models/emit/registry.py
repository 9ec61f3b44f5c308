# SPDX-License-Identifier: Apache-2.0
"""The variants of operations: the first one that applies is used, unless the import selects another."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from opwest.importers.models.emit.function import Call
from opwest.importers.models.ir.program import Operation
from opwest.records import dataclass

PROCESSORS = {"mla": ("mla",), "dsp": ("dsp", "mla"), "mve": ("mve", "dsp", "mla")}
"""The classes of processors, and the prefixes of the variants that run on each, the fastest first.

mla: Armv7-M without the DSP extension (Cortex-M3); dsp: with it (M4, M7, M33); mve: the vector extension (M55, M85).
"""
LIBRARY_VARIANTS = {"mla": "none", "dsp": "dsp", "mve": "mve"}
"""By class of processors: the end of the name of a library's variant with its instructions."""
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


VARIANTS: dict[type, list[Variant]] = {}
"""Importing `emit` fills it."""


def emits(operation: type, name: str = "portable") -> Callable[[Render], Render]:
    """Register a variant."""

    def register(render: Render) -> Render:
        VARIANTS.setdefault(operation, []).append(Variant(name, render))
        return render

    return register


def render(operation: Operation, preferred: str = "portable", shared: bool = False) -> tuple[str, Call]:
    """Return the name of the variant and the call: a preferred variant if one applies, otherwise the portable one."""
    variants = sorted(VARIANTS[type(operation)], key=lambda one: (_rank(one.name, preferred), one.name != "portable"))
    for one in variants:
        call = one.render(operation, shared=True) if shared and can_share(one.render) else one.render(operation)
        if call is not None:
            return one.name, call
    raise AssertionError(f"no variant of {type(operation).__name__}")


def library_variant(library: str, processor: str) -> str:
    """Return the variant that calls a library with the instructions of a class of processors, or `library`."""
    return f"{library}-{LIBRARY_VARIANTS[processor]}" if processor in LIBRARY_VARIANTS else library


def candidates(operation: Operation, processor: str, libraries: Sequence[str] = ()) -> dict[str, Call]:
    """Return the variants that apply on a class of processors, by name: portable, those of the class, of libraries."""
    found: dict[str, Call] = {}
    called = {library_variant(one, processor) for one in libraries if processor in LIBRARY_VARIANTS}
    for one in sorted(VARIANTS[type(operation)], key=lambda one: (one.name != "portable", _rank(one.name, processor))):
        applies = one.name == "portable" or one.name in called or _rank(one.name, processor) <= len(PROCESSORS)
        if one.name not in found and applies:
            call = one.render(operation)
            if call is not None:
                found[one.name] = call
    return found


def _rank(name: str, preferred: str) -> int:
    """Return the place of a variant: the preferred one first, or those of the preferred class of processors."""
    if name == preferred:
        return 0
    for place, prefix in enumerate(PROCESSORS.get(preferred, ())):
        if name.startswith(f"{prefix}-"):
            return 1 + place
    return len(PROCESSORS) + 1


def can_share(render: Render) -> bool:
    """Whether a variant can take the numbers of a layer from an array."""
    return "shared" in inspect.signature(render).parameters

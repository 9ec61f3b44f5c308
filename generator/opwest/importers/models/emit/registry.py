# SPDX-License-Identifier: Apache-2.0
"""The variants of operations: the first one that applies is used, unless the import selects another."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from weakref import WeakKeyDictionary

from opwest.importers.models.emit.function import Call, Function
from opwest.importers.models.ir.program import Operation
from opwest.records import dataclass

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


def render(operation: Operation, preferred: str = "portable", shared: bool = False) -> tuple[str, Call]:
    """Return the name of the variant and the call: a preferred variant if one applies, otherwise the portable one."""
    variants = sorted(VARIANTS[type(operation)], key=lambda one: (_rank(one.name, preferred), one.name != "portable"))
    for one in variants:
        call = one.call(operation, shared)
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
    some = sorted(VARIANTS[type(operation)], key=lambda one: (one.name not in EVERYWHERE, _rank(one.name, processor)))
    for one in some:
        applies = one.name in EVERYWHERE or one.name in called or _rank(one.name, processor) <= len(PROCESSORS)
        if one.name not in found and applies:
            call = one.call(operation)
            if call is not None:
                found[one.name] = call
    return found


def takes_pitch(operation: Operation) -> bool:
    """Whether the portable variant can write results with a pitch."""
    return any(one.name == "portable" and one.has_pitch for one in VARIANTS.get(type(operation), ()))


def _rank(name: str, preferred: str) -> int:
    """Return the place of a variant: the preferred one first, or those of the preferred class of processors."""
    if name == preferred:
        return 0
    for place, prefix in enumerate(PROCESSORS.get(preferred, ())):
        if name.startswith(f"{prefix}-"):
            return 1 + place
    return len(PROCESSORS) + 1


def joint_calls(pairs: Iterable[tuple[Operation, str]]) -> list[tuple[str, Call]]:
    """Return the variant and the call of each operation in a preferred variant.

    Operations that differ only in their numbers share one function.
    """
    some = list(pairs)
    folded = [render(operation, name) for operation, name in some]
    shared = [render(operation, name, shared=True) for operation, name in some]
    distinct: dict[Function, set[Function]] = {}
    for (_, one), (_, other) in zip(folded, shared, strict=True):
        distinct.setdefault(other.function, set()).add(one.function)
    return [
        second if len(distinct[second[1].function]) > 1 else first for first, second in zip(folded, shared, strict=True)
    ]


def can_share(render: Render) -> bool:
    """Whether a variant can take the numbers of a layer from an array."""
    return "shared" in inspect.signature(render).parameters

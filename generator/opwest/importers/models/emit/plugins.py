# SPDX-License-Identifier: Apache-2.0
"""Variants of operators from other Python packages: the entry points `opwest.kernels` (docs/writing-kernels.md)."""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from opwest.diagnostics import Diagnostics, first_line
from opwest.importers.faults import fault
from opwest.importers.models.emit.registry import PROCESSORS, VARIANTS, Variant
from opwest.importers.models.ir.program import Operation

GROUP = "opwest.kernels"


@functools.cache
def load_plugins() -> None:
    """Import the modules of all entry points, which register their variants. Raises OpwestError with all faults."""
    faults = Diagnostics()
    for one in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        before = {kind: list(some) for kind, some in VARIANTS.items()}
        try:
            one.load()
        except Exception as error:
            faults.error(f"cannot load {_shown(one)}: {first_line(error)}", hint=_hint(one))
            VARIANTS.clear()
            VARIANTS.update(before)
            continue
        _check(one, before, faults)
    faults.raise_if_errors()


def _check(plugin: EntryPoint, before: dict[type, list[Variant]], faults: Diagnostics) -> None:
    """Check the variants that an entry point registered; replace them by ones that name it in errors."""
    for kind, variants in VARIANTS.items():
        known = before.get(kind, [])
        if not (isinstance(kind, type) and issubclass(kind, Operation)):
            faults.error(f"{_shown(plugin)}: {kind!r} is no operation", hint="@emits(Convolution, NAME)")
            continue
        for place, one in enumerate(variants):
            if one in known:
                continue
            prefix, _, rest = one.name.partition("-")
            if prefix not in PROCESSORS or not rest:
                expected = f"a class of processors, a hyphen and the technique: {', '.join(PROCESSORS)}-..."
                faults.error(f"{_shown(plugin)}: invalid name of a variant: '{one.name}'", expected=expected)
            elif any(other.name == one.name for other in known):
                faults.error(f"{_shown(plugin)}: a variant '{one.name}' of {kind.__name__} exists", hint="another name")
            variants[place] = Variant(one.name, _guarded(one, plugin), one.has_pitch)


def _guarded(variant: Variant, plugin: EntryPoint) -> Any:
    """Return a function that reports errors of the variant with the name of the package."""

    @functools.wraps(variant.render)
    def render(operation: Operation, **keys: Any) -> Any:
        try:
            return variant.render(operation, **keys)
        except Exception as error:
            layer = operation.label or "a layer"
            what = f"variant '{variant.name}' of {_shown(plugin)} failed for {layer}: {first_line(error)}"
            raise fault(what, hint=_hint(plugin)) from error

    return render


def _shown(plugin: EntryPoint) -> str:
    package = plugin.dist.name if plugin.dist else plugin.value
    return f"package '{package}' (entry point '{plugin.name}' of {GROUP})"


def _hint(plugin: EntryPoint) -> str:
    return f"report it to the authors of '{plugin.dist.name if plugin.dist else plugin.value}', or uninstall it"

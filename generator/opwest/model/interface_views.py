# SPDX-License-Identifier: Apache-2.0
"""Resolve inputs and outputs that are views of an arena: `view_of` in `run.inputs` and `run.outputs`."""

from __future__ import annotations

from opwest.diagnostics import nearest
from opwest.manifest.located import Mapping
from opwest.model.context import Context
from opwest.model.dtypes import TensorType
from opwest.model.model import View


def is_arena(context: Context, name: str) -> bool:
    """Return whether a tensor is an arena, whose content a compiler has planned."""
    entry = context.section("tensors", context.section("run")).get(name)
    return isinstance(entry, Mapping) and entry.get("arena") is True


def interface_views(context: Context, types: dict[str, TensorType]) -> dict[str, View]:
    """Return the inputs and outputs that are views by name; report those that do not fit.

    `types` contains all declared tensors.
    """
    run = context.section("run")
    found: dict[str, View] = {}
    for key in ("inputs", "outputs"):
        what = key.removesuffix("s")
        for name, entry in context.section(key, run).items():
            if "view_of" in entry:
                view = _view(context, f"{what} {name!r}", name, entry, types)
                if view is not None:
                    found[name] = view
            elif "offset" in entry:
                context.faults.error(
                    f"{what} {name!r} has an offset, but is no view",
                    entry.key_location("offset"),
                    expected="'offset' with 'view_of' only",
                )
    return found


def _view(context: Context, what: str, name: str, entry: Mapping, types: dict[str, TensorType]) -> View | None:
    for key in ("pool", "external"):
        if key in entry:
            context.faults.error(
                f"{what} is a view and has {key!r}",
                entry.key_location(key),
                expected="one of the two keys",
                hint="the memory of a view is that of the arena",
            )
    base = entry["view_of"]
    at = entry.value_location("view_of")
    if not is_arena(context, base) or base not in types:
        arenas = [one for one in context.section("tensors", context.section("run")) if is_arena(context, one)]
        context.faults.error(
            f"{what} is a view of {base!r}, which is no arena",
            at,
            expected="a tensor of run.tensors with dtype, shape, and arena: true",
            hint=nearest(base, arenas),
        )
        return None
    whole, type_ = types[base], types[name]
    offset = entry.get("offset", 0) * whole.dtype.size
    align = max(entry.get("align", 1), type_.dtype.size)
    where = entry.value_location("offset") if "offset" in entry else at
    if offset + type_.size > whole.size:
        context.faults.error(
            f"{what} ends at byte {offset + type_.size} of {base!r}, which has {whole.size} bytes",
            where,
            expected="a view inside the arena",
        )
        return None
    if offset % align:
        context.faults.error(
            f"{what} begins at byte {offset} of {base!r}",
            where,
            expected=f"a multiple of {align} bytes, its alignment",
        )
        return None
    return View(name, type_, base, offset, at)

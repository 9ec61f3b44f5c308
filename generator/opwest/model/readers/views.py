# SPDX-License-Identifier: Apache-2.0
"""Resolve views: parts of other tensors, `view_of` in `run.tensors`."""

from __future__ import annotations

from opwest.base.diagnostics import nearest
from opwest.base.result import counted
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, pitch_of, tensor_type
from opwest.model.types.c_names import check_name
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.model import View


def is_arena(context: Context, name: str) -> bool:
    """Return whether a tensor is an arena, whose content a compiler has planned."""
    entry = context.section("tensors", context.run).get(name)
    return isinstance(entry, Mapping) and entry.get("arena") is True


def interface_views(context: Context, types: dict[str, TensorType]) -> dict[str, View]:
    """Return the inputs and outputs that are views by name; report those that do not fit.

    `types` contains all declared tensors.
    """
    run = context.run
    views: dict[str, View] = {}
    for key in ("inputs", "outputs"):
        what = key.removesuffix("s")
        for name, entry in context.section(key, run).items():
            if "view_of" in entry:
                view = _view(context, f"{what} {name!r}", name, entry, types)
                if view is not None:
                    views[name] = view
            elif "offset" in entry:
                context.faults.error(
                    f"{what} {name!r} has an offset, but is no view",
                    entry.key_location("offset"),
                    expected="'offset' with 'view_of' only",
                )
    return views


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
        arenas = [tensor for tensor in context.section("tensors", context.run) if is_arena(context, tensor)]
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
            f"{what} ends at byte {offset + type_.size} of {base!r}, which has {counted(whole.size, 'byte')}",
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
    return View(name, type_, base, offset)


def declared_types(context: Context) -> dict[str, TensorType]:
    """Return the types of intermediate tensors that the manifest declares."""
    section = context.section("tensors", context.run)
    return {
        name: tensor_type(context, entry)
        for name, entry in section.items()
        if "view_of" not in entry and "dtype" in entry and "shape" in entry
    }


class Views:
    """Resolves the views of `run.tensors`.

    `types` contains all declared tensors; `outer` are the inputs and outputs that are views themselves.
    """

    def __init__(self, context: Context, types: dict[str, TensorType], outer: dict[str, View]) -> None:
        self.context = context
        self.faults = context.faults
        self.types = types
        self.section = context.section("tensors", context.run)
        self.views = dict(outer)
        self.failed: set[str] = set()

    def resolve(self) -> dict[str, View]:
        """Return all views by name, `outer` included; report those that do not fit."""
        for name, entry in self.section.items():
            if "view_of" in entry:
                self._view(name)
                continue
            for key, what in (("offset", "an offset"), ("pitch", "a pitch")):
                if key in entry:
                    self.faults.error(
                        f"tensor {name!r} has {what}, but is no view",
                        entry.key_location(key),
                        expected=f"'{key}' with 'view_of' only",
                    )
        return self.views

    def _view(self, name: str) -> None:
        """Resolve a view, after the views that contain it. Without recursion: chains may have any length."""
        chain: dict[str, Mapping] = {}
        base = name
        while base not in self.views and base not in self.failed and "view_of" in self.section.get(base, {}):
            entry = chain[base] = self.section[base]
            self.failed.add(base)  # until it is found
            self._check_keys(base, entry)
            inside, base = base, entry["view_of"]
            if base in chain:
                self.faults.error(
                    f"view {inside!r} is a part of itself: {' of '.join((*chain, base))}",
                    entry.value_location("view_of"),
                    expected="a view of another tensor",
                )
                return
        for view, entry in reversed(chain.items()):
            self._resolve(view, entry)

    def _check_keys(self, name: str, entry: Mapping) -> None:
        check_name("view", name, self.section.key_location(name), self.faults)
        for key in ("pool", "align", "arena"):
            if key in entry:
                self.faults.error(
                    f"view {name!r} has '{key}'",
                    entry.key_location(key),
                    expected=f"'{key}' at the tensor that contains the view",
                )

    def _resolve(self, name: str, entry: Mapping) -> None:
        """Add a view, whose root is no view, unless it or its base has an error."""
        base = entry["view_of"]
        inner = self.views.get(base)
        if inner is not None and inner.type.pitch:
            self.faults.error(
                f"view {name!r} is a part of {base!r}, whose rows do not follow each other",
                entry.value_location("view_of"),
                expected=f"a view of {inner.root!r}",
            )
            return
        type_ = inner.type if inner else self.types.get(base)
        if type_ is None:
            if base not in self.failed:
                self._report_base(name, base, entry)
            return
        view = self._fitted(name, entry, base, type_, inner)
        if view is not None:
            self.views[name] = view

    def _report_base(self, name: str, base: str, entry: Mapping) -> None:
        declared = base in self.section
        hint = nearest(base, self.types)
        if hint is None or declared:
            hint = f"declare dtype and shape of {base!r} under run.tensors"
        self.faults.error(
            f"view {name!r} is a part of {base!r}, whose type is not declared"
            if declared
            else f"undefined tensor {base!r}",
            entry.value_location("view_of"),
            expected="an input, output, constant, state, or a tensor with dtype and shape in run.tensors",
            hint=hint,
        )

    def _fitted(self, name: str, entry: Mapping, base: str, whole: TensorType, inner: View | None) -> View | None:
        """Return a view within the tensor `base` of type `whole`."""
        if "shape" not in entry:
            self.faults.error(f"view {name!r} has no shape", entry.location, expected="shape: [...]")
            return None
        dtype = DTYPES[entry["dtype"]] if "dtype" in entry else whole.dtype
        type_ = TensorType(dtype, tuple(entry["shape"]), pitch_of(self.context, entry))
        start = entry.get("offset", 0) * whole.dtype.size
        if start + type_.size > whole.size:
            self.faults.error(
                f"view {name!r} ends at byte {start + type_.size} of {base!r}, which has {counted(whole.size, 'byte')}",
                entry.value_location("offset" if "offset" in entry else "shape"),
                expected="a view inside the tensor",
                hint=f"the offset counts elements of {base!r}: {whole}",
            )
            return None
        offset = start + (inner.offset if inner else 0)
        if offset % dtype.size:
            self.faults.error(
                f"view {name!r} begins at byte {offset} of {(inner.root if inner else base)!r}",
                entry.value_location("offset"),
                expected=f"a multiple of {counted(dtype.size, 'byte')}, the size of {dtype.name}",
            )
            return None
        return View(name, type_, inner.root if inner else base, offset)

# SPDX-License-Identifier: Apache-2.0
"""The variants of a manifest: each as an ordinary manifest, their targets, and what all have in common with the base.

The tree of a variant has the positions of its parts in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from opwest.base.diagnostics import Diagnostics, Location, PartDiagnostics
from opwest.manifest.located import Items, Mapping, Position
from opwest.model.inputs.context import Context, located_items
from opwest.model.inputs.targets import known_target
from opwest.model.readers.tvmgen import table_of
from opwest.model.types.builds import Target, Variant
from opwest.model.types.c_names import check_names_together
from opwest.model.types.model import Interface, Model, bases, variants_of

REPLACED = ("objects", "signatures", "memory", "operators", "constants", "externals")
"""The keys of a variant that replace those of the manifest."""


class VariantTree(NamedTuple):
    """One variant."""

    name: str
    given: Mapping
    """The entry of `variants`."""
    manifest: Mapping
    """The manifest with the keys of the entry, without `variants`."""
    start: Position
    end: Position | None
    """The part of the file that contains the entry; None: up to its end."""

    @property
    def targets(self) -> Items:
        """The names of the targets, with their positions."""
        targets: Items = self.given["targets"]
        return targets

    def contains(self, location: Location | None) -> bool:
        """Whether a location is in the entry."""
        if location is None or location.file != self.given.file:
            return False
        place = (location.line, location.column)
        return self.start <= place and (self.end is None or place < self.end)


def split_variants(manifest: Mapping) -> tuple[Mapping, list[VariantTree]]:
    """Return the base of a manifest, and its variants.

    Objects with a target are part of the base or of the variant with this target, also if a variant has no `objects`.
    """
    if "variants" not in manifest:
        return manifest, []
    base = manifest.copied()
    del base["variants"]
    variants: Mapping = manifest["variants"]
    ends = sorted([*manifest.keys_at.values(), *variants.keys_at.values()])
    trees = []
    for name, given in variants.items():
        tree = base.copied()
        for key in REPLACED:
            if key in given:
                _replace(tree, key, given)
        if "run" in given:
            tree["run"] = base["run"].copied()
            for key in given["run"]:
                _replace(tree["run"], key, given["run"])
        if "objects" not in given:
            tree["objects"] = _entries(base["objects"], keep=set(given["targets"]))
        start = variants.keys_at[name]
        end = next((place for place in ends if place > start), None)
        trees.append(VariantTree(name, given, tree, start, end))
    inherited = {target for variant in trees if "objects" not in variant.given for target in variant.targets}
    base["objects"] = _entries(base["objects"], drop=inherited)
    return base, trees


def _replace(tree: Mapping, key: str, source: Mapping) -> None:
    tree[key] = source[key]
    tree.keys_at[key], tree.values_at[key] = source.keys_at[key], source.values_at[key]


def _entries(objects: Items, *, keep: Collection[str] | None = None, drop: Collection[str] = ()) -> Items:
    """Return the entries of `objects` without those of other targets."""
    entries = Items(objects.file, objects.start)
    for index, entry in enumerate(objects):
        targets = [entry["target"]] if "target" in entry else entry.get("targets")
        if targets is not None:
            left = [name for name in targets if name not in drop and (keep is None or name in keep)]
            if not left:
                continue
            entry = entry if "target" in entry else _with_targets(entry, left)
        entries.add(entry, objects.items_at[index])
    return entries


def _with_targets(entry: Mapping, names: Collection[str]) -> Mapping:
    """Return an entry for some of its targets only."""
    listed: Items = entry["targets"]
    targets = Items(listed.file, listed.start)
    for name, place in zip(listed, listed.items_at, strict=True):
        if name in names:
            targets.add(name, place)
    copy = entry.copied()
    copy["targets"] = targets
    return copy


def contexts_of(manifest: Mapping, folder: Path, faults: Diagnostics) -> list[Context]:
    """Return the base of a manifest and its variants; report faults of their targets."""
    base, trees = split_variants(manifest)
    if not trees:
        return [Context(base, folder, faults)]
    parts = (base, *(tree.manifest for tree in trees))
    devices = frozenset[str]().union(*map(_devices, parts))
    whole = Context(base, folder, faults, devices_elsewhere=devices)
    _refuse_table(manifest, faults)
    owners: dict[str, tuple[VariantTree, Location]] = {}
    contexts = [whole]
    for tree in trees:
        targets = tuple(_targets(whole, tree, owners))
        own = PartDiagnostics(faults, f"variant {tree.name!r}", tree.contains)
        if tree.manifest["objects"]:
            variant = Variant(tree.name, targets)
            contexts.append(Context(tree.manifest, folder, own, variant, devices))
        else:
            faults.error(
                f"no objects for variant {tree.name!r}: every entry has another target",
                manifest.value_location("objects"),
                expected=f"an entry for {_listed(tree.targets)}, or without 'target'",
            )
        _check_objects(tree, faults)
    _check_base(whole, owners, manifest)
    return contexts if base["objects"] else contexts[1:]


def _devices(manifest: Mapping) -> set[str]:
    """Return the devices of the steps."""
    steps = [inner for step in manifest["run"]["steps"] for inner in step.get("steps", [step])]
    return {step["device"] for step in steps if "device" in step}


def _targets(context: Context, tree: VariantTree, owners: dict[str, tuple[VariantTree, Location]]) -> list[Target]:
    """Return the targets of a variant; report unknown ones, hosts, and targets of an earlier variant."""
    targets = []
    for name, at in located_items(tree.targets):
        target = known_target(context, name, at)
        if target is None:
            continue
        if target.host or ("CONFIG_ARCH_POSIX", "y") in target.kconfig:
            context.faults.error(
                f"variant {tree.name!r} has the host target {name!r}",
                at,
                expected="targets of firmware: hosts and native_sim use the base",
            )
        elif name in owners:
            first, place = owners[name]
            context.faults.error(
                f"target {name!r} is in variants {first.name!r} and {tree.name!r}",
                at,
                expected="each target in one variant",
                hint=f"first listed at line {place.line}",
            )
        else:
            owners[name] = (tree, at)
            targets.append(target)
    return targets


def _check_objects(tree: VariantTree, faults: Diagnostics) -> None:
    """Report objects of a variant for targets that do not use it."""
    for name, at in _named_targets(tree.manifest):
        if name not in tree.targets:
            faults.error(
                f"target {name!r} of these objects is not a target of variant {tree.name!r}",
                at,
                expected=_listed(tree.targets),
            )


def _check_base(base: Context, owners: dict[str, tuple[VariantTree, Location]], manifest: Mapping) -> None:
    """Report objects of the base that no build uses, and a base without objects."""
    for name, at in _named_targets(base.manifest):
        if name in owners:
            owner = owners[name][0].name
            base.faults.error(
                f"target {name!r} of these objects uses variant {owner!r}, which has other objects",
                at,
                expected=f"an entry of 'objects' in variant {owner!r}",
            )
    if not base.manifest["objects"]:
        base.faults.error(
            "no objects for the base: every entry has a target of a variant",
            manifest.value_location("objects"),
            expected="an entry for another target, or without 'target'",
            hint="hosts and native_sim use the base",
        )


def _named_targets(manifest: Mapping) -> list[tuple[str, Location]]:
    """Return the targets that `objects` names."""
    named = []
    for entry in manifest["objects"]:
        if "target" in entry:
            named.append((entry["target"], entry.value_location("target")))
        elif "targets" in entry:
            named += located_items(entry["targets"])
    return named


def _listed(names: Sequence[str]) -> str:
    return " or ".join(names)


def _refuse_table(manifest: Mapping, faults: Diagnostics) -> None:
    """Report a table of operators in microTVM's layout: it is the same in every image."""
    if table_of(manifest) is not None:
        faults.error(
            "a table of operators in a manifest with variants",
            manifest.value_location("compat"),
            expected="no 'table' in 'compat': the operators depend on the target",
        )


def check_variants(models: Sequence[Model], faults: Diagnostics) -> None:
    """Report variants with another interface than their base, and names that clash with those of other models."""
    for base in bases(models):
        for model in variants_of(base, models):
            others = [other for other in bases(models) if other.name != model.name]
            if others:
                check_names_together([model, *others], faults)
            for role, own, of_base in (
                ("input", model.inputs, base.inputs),
                ("output", model.outputs, base.outputs),
            ):
                for tensor, expected in zip(own, of_base, strict=False):
                    _check_interface(model, base, role, tensor, expected, faults)


def _check_interface(
    model: Model, base: Model, role: str, tensor: Interface, expected: Interface, faults: Diagnostics
) -> None:
    """Report an input or output whose buffer is not that of the base."""
    name = model.variant.name if model.variant else ""
    if tensor.placed != expected.placed:
        where = "in the workspace" if tensor.placed else "in a buffer of the caller"
        faults.error(
            f"{role} {tensor.name!r} is {where} in variant {name!r}, but not in the base",
            tensor.location,
            expected="the same place: the application does not depend on the target",
            hint=f"add `pool:` to the {role}",
        )
    elif not tensor.placed and _access(model, tensor) != _access(base, expected):
        faults.error(
            f"devices access {role} {tensor.name!r} in variant {name!r} in another way than in the base",
            tensor.location,
            expected="the same devices and cache lines: the application does not depend on the target",
            hint=f"add `pool:` to the {role}",
        )


def _access(model: Model, tensor: Interface) -> tuple[frozenset[str], int]:
    """Return the devices that access the caller's buffer, and the cache line that it fills."""
    devices = tensor.agents - {"cpu"}
    return devices, max((pool.cache_line or 0 for pool in model.pools), default=0) if devices else 0

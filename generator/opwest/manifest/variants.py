# SPDX-License-Identifier: Apache-2.0
"""The variants of a manifest as trees: each is an ordinary manifest with the positions of its parts in the file."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from opwest.base.diagnostics import Location
from opwest.manifest.located import Items, Mapping, Position

REPLACED = ("objects", "memory", "operators", "constants", "externals")
"""The keys of a variant that replace those of the manifest."""


class VariantTree(NamedTuple):
    """One variant."""

    name: str
    location: Location
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
        trees.append(VariantTree(name, variants.key_location(name), given, tree, start, end))
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

# SPDX-License-Identifier: Apache-2.0
"""How a missing module gets into a west workspace: its manifest can lack the project, or list it in an inactive group.

west's own reader is not used: opwest does not require west, and reads only files that exist.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.zephyr.hardware import named, parse_yaml, path_of_project, read_text

_MAX_DEPTH = 8
"""Limit on the levels of imports: manifests can import each other."""


@dataclass(frozen=True)
class WestManifest:
    """The projects that the manifest of a workspace lists or imports."""

    groups: dict[str, tuple[str, ...]]
    """The groups of each project; a project without groups is always active."""
    own: frozenset[str]
    """The projects of the manifest's repository: `west update NAME` refuses those of imported projects."""
    disabled: frozenset[str]
    """The inactive groups, with the workspace's own configuration."""
    configured: tuple[str, ...] = ()
    """The elements of manifest.group-filter in the workspace's configuration: `west config` replaces all of them."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """The path of each project in the workspace."""
    repository: str = ""
    """The path of the manifest's repository in the workspace."""

    @property
    def places(self) -> list[str]:
        """The paths of the manifest's repository and of the active projects in the workspace."""
        return [self.repository, *(path for name, path in self.paths.items() if not self.inactive_groups(name))]

    def inactive_groups(self, name: str) -> tuple[str, ...]:
        """Return the groups of an inactive project, of which one must be activated; empty for any other project."""
        groups = self.groups.get(name, ())
        return groups if groups and self.disabled.issuperset(groups) else ()

    def ways_to_install(self, names: Sequence[str]) -> dict[str, str]:
        """Return for each module how to install it. The commands for one activate the groups of all."""
        wanted = dict.fromkeys(groups[0] for name in names if (groups := self.inactive_groups(name)))
        kept = [element for element in self.configured if element[1:] not in wanted]
        elements = ",".join([*kept, *(f"+{group}" for group in wanted)])
        ways = {}
        for name in names:
            inactive = self.inactive_groups(name)
            if inactive:
                ways[name] = (
                    f"activate its group {inactive[0]!r}: run `west config manifest.group-filter -- {elements}`, "
                    "then `west update`"
                )
            elif name in self.groups:
                ways[name] = f"run `west update {name}`" if name in self.own else "run `west update`"
            else:
                ways[name] = (
                    f"add {name} to your west.yml (to its name-allowlist, if it has one), then run `west update`"
                )
        return ways


def read_west_manifest(top: Path) -> WestManifest | None:
    """Return the manifest of the workspace at `top`, None if it has none that can be read."""
    config = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        config.read_string(read_text(top / ".west" / "config"))
    except configparser.Error:
        return None
    path = config.get("manifest", "path", fallback="")
    repository = top / path
    reader = _Reader(top)
    filters = reader.read(repository, config.get("manifest", "file", fallback="west.yml")) if path else None
    if filters is None:
        return None
    configured = tuple(_elements(config.get("manifest", "group-filter", fallback="").split(",")))
    disabled: set[str] = set()
    for element in (*filters, *configured):
        (disabled.add if element[0] == "-" else disabled.discard)(element[1:])
    return WestManifest(reader.groups, frozenset(reader.own), frozenset(disabled), configured, reader.paths, path)


class _Reader:
    """Reads a manifest and its imports. The first definition of a project is in effect."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.groups: dict[str, tuple[str, ...]] = {}
        self.paths: dict[str, str] = {}
        self.own: set[str] = set()

    def read(
        self,
        repository: Path,
        file: str,
        depth: int = 0,
        rules: Any = None,
        prefix: str = "",
        *,
        imported: bool = False,
    ) -> list[str] | None:
        """Add the projects of a manifest; return the elements of its group filters, the last for a group in effect.

        `rules` and `prefix` (of paths) are those of the import. Returns None if the file is no manifest.
        """
        content = parse_yaml(read_text(repository / file)) if depth < _MAX_DEPTH else None
        inner = content.get("manifest") if isinstance(content, dict) else None
        if not isinstance(inner, dict):
            return None
        projects = named(inner.get("projects"))
        for project in projects:
            self._add(project, rules, prefix, imported)
        itself = inner.get("self")
        filters: list[str] = []
        for name in _files(repository, itself.get("import") if isinstance(itself, dict) else None):
            filters += self.read(repository, name, depth + 1, rules, prefix, imported=imported) or []
        for project in projects:
            given = project.get("import")
            folder = self.top / prefix / path_of_project(project)
            for name in _files(folder, given):
                inner_rules = given if isinstance(given, dict) else rules
                added = given.get("path-prefix") if isinstance(given, dict) else None
                place = f"{prefix}{added}/" if isinstance(added, str) else prefix
                filters += self.read(folder, name, depth + 1, inner_rules, place, imported=True) or []
        own_filter = inner.get("group-filter")
        return [*filters, *_elements(own_filter if isinstance(own_filter, list) else [])]

    def _add(self, project: dict[str, Any], rules: Any, prefix: str, imported: bool) -> None:
        name, listed = str(project["name"]), project.get("groups")
        if _is_kept(name, rules):
            self.groups.setdefault(name, tuple(str(group) for group in listed) if isinstance(listed, list) else ())
            self.paths.setdefault(name, prefix + path_of_project(project))
            if not imported:
                self.own.add(name)


def _is_kept(name: str, rules: Any) -> bool:
    """Whether an import with these rules contains a project. Patterns of paths are not evaluated."""
    if not isinstance(rules, dict):
        return True
    allowed, blocked = (_listed(rules.get(f"name-{kind}list")) for kind in ("allow", "block"))
    return name in allowed if allowed else name not in blocked


def _files(folder: Path, given: Any) -> Iterator[str]:
    """Yield the manifests that the value of an `import` key names."""
    if given is True:
        yield "west.yml"
        return
    if isinstance(given, dict):
        given = given.get("file", "west.yml")
    for name in _listed(given):
        if (folder / name).is_dir():
            yield from sorted(f"{name}/{file.name}" for file in (folder / name).glob("*.yml"))
        else:
            yield name


def _listed(value: Any) -> list[str]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]


def _elements(given: Sequence[Any]) -> Iterator[str]:
    """Yield the valid elements of a group filter: a sign and a name."""
    for element in given:
        text = element.strip() if isinstance(element, str) else ""
        if len(text) > 1 and text[0] in "+-":
            yield text

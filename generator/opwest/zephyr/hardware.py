# SPDX-License-Identifier: Apache-2.0
"""The SoCs of a Zephyr tree (source: soc.yml, Zephyr's hardware model 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opwest.base.frozen_dataclass import dataclass

_GROUPS = ("family", "series", "socs")
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Soc:
    """A SoC: its CPU clusters, and the directories with its Kconfig files."""

    clusters: tuple[str, ...]
    folders: tuple[Path, ...]


def read_socs(base: Path) -> dict[str, Soc]:
    """Return the SoCs of a tree by name."""
    socs: dict[str, Soc] = {}
    for file in sorted((base / "soc").rglob("soc.yml")):
        for name, clusters in _entries(read_yaml(file), 0):
            old = socs.get(name, Soc((), ()))
            socs[name] = Soc((*old.clusters, *clusters), (*old.folders, file.parent))
    return socs


def _entries(content: Any, depth: int) -> list[tuple[str, tuple[str, ...]]]:
    """Return the SoCs of a file, and those that it extends, each with its clusters."""
    socs = []
    if isinstance(content, dict) and depth < _MAX_DEPTH:
        for group in _GROUPS:
            for entry in content.get(group) or () if isinstance(content.get(group), list) else ():
                if not isinstance(entry, dict):
                    continue
                name = entry.get("name", entry.get("extend"))
                if group == "socs" and isinstance(name, str):
                    socs.append((name, tuple(str(cluster["name"]) for cluster in named(entry.get("cpuclusters")))))
                socs += _entries(entry, depth + 1)
    return socs


def named(entries: Any) -> list[dict[str, Any]]:
    """Return the entries of a list that have a name."""
    listed = entries if isinstance(entries, list) else []
    return [entry for entry in listed if isinstance(entry, dict) and is_name(entry.get("name"))]


def is_name(value: Any) -> bool:
    """Whether a value can be a name; numbers can, within Python's limit on conversion to text."""
    return isinstance(value, str) or (isinstance(value, int) and value.bit_length() < 64)


def path_of_project(project: dict[str, Any]) -> str:
    """Return the path of a project of a west manifest in the workspace: its name by default."""
    return str(project["path"] if is_name(project.get("path")) else project["name"])


def read_yaml(file: Path) -> Any:
    """Return the content of a YAML file of Zephyr, None if it is invalid."""
    return parse_yaml(read_text(file))


def parse_yaml(text: str) -> Any:
    """Return the content of a YAML text, None if it is invalid."""
    import yaml  # `opwest doctor` reports a missing package

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: invalid dates
        return None


def read_text(file: Path) -> str:
    """Return the content of a file; empty if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

# SPDX-License-Identifier: Apache-2.0
"""The runtime as a Zephyr module of a west workspace: whether the workspace lists it, and its version."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from opwest import __version__
from opwest.base.frozen_dataclass import dataclass
from opwest.base.resources import resource
from opwest.zephyr.hardware import read_text

NAME: Final = "opwest"
"""The name of the module in its zephyr/module.yml."""


@dataclass(frozen=True)
class RuntimeModule:
    """The module opwest of a west workspace or of the environment."""

    path: Path
    version: str
    """The version of opwest in a repository, and that of the metadata: `opwest 0.2.0, metadata 8`."""

    @property
    def is_current(self) -> bool:
        """Whether its runtime has the version of this generator."""
        own = _version_of(resource("zephyr_module"))
        return self.version in (own, f"{NAME} {__version__}, {own}")


def workspace_of(output: Path, zephyr_base: Path | None = None) -> Path | None:
    """Return the west workspace of Zephyr's tree, given or in the environment, else that around an application."""
    base = zephyr_base or os.environ.get("ZEPHYR_BASE")
    place = Path(os.path.realpath(base or output))
    return next((folder for folder in (place, *place.parents) if (folder / ".west").is_dir()), None)


def find_runtime_module(workspace: Path | None) -> RuntimeModule | None:
    """Return the module opwest of a build, None if there is none.

    It is in EXTRA_ZEPHYR_MODULES of the environment, or the workspace lists it: the repository of the manifest or a
    project.
    """
    for place in _modules(workspace):
        text = next(filter(None, map(read_text, _files(place))), "")
        if re.search(rf"^name:\s*['\"]?{NAME}['\"]?\s*(?:#.*)?$", text, re.MULTILINE):
            folder = re.search(r"^\s+cmake:\s*['\"]?([^'\"\s#]+)", text, re.MULTILINE)
            version = _version_of(place / (folder[1] if folder else "zephyr"))
            repository = re.search(
                r'^__version__ = "([^"]+)"', read_text(place / "generator/opwest/__init__.py"), re.MULTILINE
            )
            number = f"{NAME} {repository[1]}, " if repository else ""
            return RuntimeModule(place, number + version)
    return None


def _modules(workspace: Path | None) -> Iterator[Path]:
    for name in ("EXTRA_ZEPHYR_MODULES", "ZEPHYR_EXTRA_MODULES"):
        yield from (Path(place) for place in os.environ.get(name, "").split(";") if place)
    if workspace is not None:
        from opwest.zephyr.west_manifest import read_west_manifest

        manifest = read_west_manifest(workspace)
        yield from (workspace / place for place in (manifest.places if manifest is not None else ()))


def _files(place: Path) -> Iterator[Path]:
    for suffix in ("yml", "yaml"):
        yield place / "zephyr" / f"module.{suffix}"


def _version_of(runtime: Path) -> str:
    text = read_text(runtime / "include" / "opwest" / "model.h")
    version = re.search(r"^#define OPWEST_METADATA_VERSION (\d+)", text, re.MULTILINE)
    return f"metadata {version[1]}" if version else "metadata of an unknown version"

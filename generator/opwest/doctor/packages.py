# SPDX-License-Identifier: Apache-2.0
"""The Python packages that opwest requires, from its own metadata, and those that are installed."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opwest.doctor.versions import Requirement, at_least, parse_requirement
from opwest.records import dataclass
from opwest.resources import resource

NAME = "opwest"


@dataclass(frozen=True)
class Package:
    """A required package and its installed version, None if it is missing."""

    requirement: Requirement
    version: str | None

    @property
    def suffices(self) -> bool:
        """Whether it is installed in a version that opwest supports."""
        return self.version is not None and self.requirement.allows(self.version)


@dataclass(frozen=True)
class Declared:
    """What opwest requires: Python, and packages."""

    python: str
    """The oldest version of Python."""
    requirements: tuple[Requirement, ...]

    @property
    def extras(self) -> tuple[str, ...]:
        """The names of all extras."""
        return tuple(dict.fromkeys(one.extra for one in self.requirements if one.extra is not None))

    def of(self, extra: str | None) -> tuple[Requirement, ...]:
        """Return the packages of an extra; those that opwest always requires for None."""
        return tuple(one for one in self.requirements if one.extra == extra)


def declared() -> Declared:
    """Return the requirements of this opwest: of its repository, else of the installed package."""
    project = resource("schemas").parent / "pyproject.toml"
    try:
        return _of_project(tomllib.loads(project.read_text(encoding="utf-8"))["project"])
    except (OSError, ValueError, KeyError, TypeError):
        return _of_metadata()


def _of_project(project: dict[str, Any]) -> Declared:
    found = [parse_requirement(text) for text in project["dependencies"]]
    for extra, texts in project["optional-dependencies"].items():
        found += [parse_requirement(f"{text}; extra == '{extra}'") for text in texts]
    return Declared(project["requires-python"].lstrip(">= "), _others(found))


def _of_metadata() -> Declared:
    try:
        metadata = importlib.metadata.metadata(NAME)
        texts = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return Declared("", ())
    least = str(metadata["Requires-Python"] or "").lstrip(">= ")
    return Declared(least, _others(map(parse_requirement, texts)))


def _others(found: Iterable[Requirement | None]) -> tuple[Requirement, ...]:
    """Return the requirements apart from references to other extras of opwest."""
    return tuple(one for one in found if one is not None and one.name != NAME)


def examined(requirements: Iterable[Requirement]) -> tuple[Package, ...]:
    """Return the requirements with the versions that are installed for this Python."""
    return tuple(Package(one, installed(one.name)) for one in requirements)


def installed(name: str) -> str | None:
    """Return the version of an installed package, None if it is missing."""
    try:
        return importlib.metadata.version(name)
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError):
        return None


def python_suffices(version: str, least: str) -> bool:
    """Whether a version of Python is the oldest supported one or newer."""
    return not least or at_least(version, least)


def is_pipx(prefix: Path) -> bool:
    """Whether the environment of a Python is one of pipx."""
    return "pipx" in prefix.parts

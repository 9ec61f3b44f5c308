# SPDX-License-Identifier: Apache-2.0
"""The Python packages that opwest requires, from its own metadata, and those that are installed."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterable

from opwest.base.frozen_dataclass import dataclass
from opwest.base.resources import resource
from opwest.base.versions import at_least, numbers

_NUMBER = re.compile(r"\d+")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_LIMIT = re.compile(r"\s*(===|[<>=!~]=|[<>])\s*([\w.*+!-]+)\s*")
_EXTRA = re.compile(r"extra\s*==\s*[\"']([\w.-]+)[\"']")


@dataclass(frozen=True)
class Requirement:
    """A package and the versions that suffice."""

    name: str
    extras: tuple[str, ...] = ()
    limits: tuple[tuple[str, str], ...] = ()
    """Operator and version."""
    extra: str | None = None
    """The extra of opwest that contains it; None for a dependency."""

    @property
    def text(self) -> str:
        """The requirement as pip reads it, without its marker."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{self.range}"

    @property
    def range(self) -> str:
        """The limits of the version; empty without limits."""
        return ",".join(f"{operator}{version}" for operator, version in self.limits)

    def allows(self, version: str) -> bool:
        """Whether a version is within the limits."""
        return all(_holds(version, operator, limit) for operator, limit in self.limits)


def parse_requirement(text: str) -> Requirement | None:
    """Return a requirement; None for an invalid one. Of its marker only the extra is read."""
    match = _REQUIREMENT.fullmatch(text.partition("#")[0].strip())
    if match is None:
        return None
    name, extras, limits, marker = match.groups()
    extra = _EXTRA.search(marker or "")
    return Requirement(
        name,
        tuple(part.strip() for part in (extras or "").split(",") if part.strip()),
        tuple(sorted(((o, v) for o, v in _LIMIT.findall(limits)), reverse=True)),
        extra[1] if extra else None,
    )


def _holds(version: str, operator: str, limit: str) -> bool:
    """Whether a version is within a limit (Python's "Version specifiers")."""
    own, wanted = numbers(version), numbers(limit)
    if operator in ("==", "===", "!=") and limit.endswith(".*"):
        prefix = tuple(int(part) for part in _NUMBER.findall(limit))
        padded = (*own, *(0,) * len(prefix))[: len(prefix)]
        return (padded == prefix) != (operator == "!=")
    if operator == "~=":
        prefix = tuple(int(part) for part in _NUMBER.findall(limit))[:-1]
        return own >= wanted and (*own, *(0,) * len(prefix))[: len(prefix)] == prefix
    return {
        "==": own == wanted,
        "===": own == wanted,
        "!=": own != wanted,
        ">=": own >= wanted,
        "<=": own <= wanted,
        ">": own > wanted,
        "<": own < wanted,
    }[operator]


_NAME = "opwest"


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
        extras = (requirement.extra for requirement in self.requirements if requirement.extra is not None)
        return tuple(dict.fromkeys(extras))

    @property
    def dependencies(self) -> tuple[Requirement, ...]:
        """The packages that opwest always requires."""
        return tuple(requirement for requirement in self.requirements if requirement.extra is None)


def declared() -> Declared:
    """Return the requirements of this opwest: of its repository, else of the installed package."""
    try:
        least, texts = _of_project()
    except (OSError, ValueError, KeyError, TypeError):
        least, texts = _of_metadata()
    requirements = map(parse_requirement, texts)
    # Without references to other extras of opwest.
    named = tuple(requirement for requirement in requirements if requirement is not None and requirement.name != _NAME)
    return Declared(least.lstrip(">= "), named)


def _of_project() -> tuple[str, list[str]]:
    """Return the versions of Python and the requirements in pyproject.toml. Raises an exception for an invalid file."""
    file = resource("schemas").parent / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    texts = list(project["dependencies"])
    for extra, names in project["optional-dependencies"].items():
        texts += [f"{name}; extra == '{extra}'" for name in names]
    return project["requires-python"], texts


def _of_metadata() -> tuple[str, list[str]]:
    """Return the versions of Python and the requirements of the installed package; nothing without it."""
    try:
        metadata = importlib.metadata.metadata(_NAME)
        return str(metadata["Requires-Python"] or ""), importlib.metadata.requires(_NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return "", []


def examined(requirements: Iterable[Requirement]) -> tuple[Package, ...]:
    """Return the requirements with the versions that are installed for this Python."""
    return tuple(Package(requirement, installed(requirement.name)) for requirement in requirements)


def installed(name: str) -> str | None:
    """Return the version of an installed package, None if it is missing."""
    try:
        return importlib.metadata.version(name)
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError):
        return None


def python_suffices(version: str, least: str) -> bool:
    """Whether a version of Python is the oldest supported one or newer."""
    return not least or at_least(version, least)

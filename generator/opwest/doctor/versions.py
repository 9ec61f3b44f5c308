# SPDX-License-Identifier: Apache-2.0
"""Version numbers, and the requirements of packages (Python's specification of dependency specifiers, PEP 508)."""

from __future__ import annotations

import re

from opwest.records import dataclass

_NUMBER = re.compile(r"\d+")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_LIMIT = re.compile(r"\s*(===|[<>=!~]=|[<>])\s*([\w.*+!-]+)\s*")
_EXTRA = re.compile(r"extra\s*==\s*[\"']([\w.-]+)[\"']")


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: 4.2.0-rc1 gives (4, 2, 0); trailing zeros are removed."""
    found = re.match(r"v?\d+(?:\.\d+)*", version.strip())
    parts = [int(part) for part in _NUMBER.findall(found[0])] if found else []
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def at_least(version: str, least: str) -> bool:
    """Whether a version is `least` or newer."""
    return numbers(version) >= numbers(least)


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
    found = _REQUIREMENT.fullmatch(text.partition("#")[0].strip())
    if found is None:
        return None
    name, extras, limits, marker = found.groups()
    extra = _EXTRA.search(marker or "")
    return Requirement(
        name,
        tuple(part.strip() for part in (extras or "").split(",") if part.strip()),
        tuple(sorted(((o, v) for o, v in _LIMIT.findall(limits)), reverse=True)),
        extra[1] if extra else None,
    )


def _holds(version: str, operator: str, limit: str) -> bool:
    found, wanted = numbers(version), numbers(limit)
    if operator in ("==", "===", "!=") and limit.endswith(".*"):
        prefix = tuple(int(part) for part in _NUMBER.findall(limit))
        padded = (*found, *(0,) * len(prefix))[: len(prefix)]
        return (padded == prefix) != (operator == "!=")
    if operator == "~=":
        prefix = tuple(int(part) for part in _NUMBER.findall(limit))[:-1]
        return found >= wanted and (*found, *(0,) * len(prefix))[: len(prefix)] == prefix
    return {
        "==": found == wanted,
        "===": found == wanted,
        "!=": found != wanted,
        ">=": found >= wanted,
        "<=": found <= wanted,
        ">": found > wanted,
        "<": found < wanted,
    }[operator]

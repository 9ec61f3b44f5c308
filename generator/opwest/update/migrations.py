# SPDX-License-Identifier: Apache-2.0
"""Bringing a manifest to the version that this opwest reads: one step a version, on the text, comments kept.

There is one version today and so no step. A step goes into MIGRATIONS when the schema gets version 2, together with
SUPPORTED_VERSIONS of `manifest/schema.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwest.diagnostics import Diagnostics
from opwest.manifest.located import Mapping
from opwest.manifest.schema import SUPPORTED_VERSIONS
from opwest.manifest.yaml_reader import read_yaml
from opwest.records import dataclass


@dataclass(frozen=True)
class Migration:
    """One step: from a version to the next one."""

    version: int
    """The version that it starts from."""
    what: str
    """What changes, as a user reads it."""
    apply: Callable[[str, Mapping], str]
    """Takes the text and what it holds, with the place of every value; returns the new text, `version` untouched."""


MIGRATIONS: tuple[Migration, ...] = ()


@dataclass(frozen=True)
class Migrated:
    """A manifest at the version that is read today."""

    content: bytes
    version: int
    """The version that it had."""
    steps: tuple[str, ...]


def migrate(
    content: bytes,
    label: str,
    faults: Diagnostics,
    *,
    migrations: Sequence[Migration] | None = None,
    newest: int = max(SUPPORTED_VERSIONS),
) -> Migrated | None:
    """Return the manifest brought to version `newest`; None where it has that version, or none that can be reached.

    What is at fault with a manifest of today's version, of a newer one, or with broken YAML, loading it says; what
    keeps an older one from being brought up to date is reported here.
    """
    manifest = read_yaml(content, label, Diagnostics())
    first = None if manifest is None else _version(manifest)
    if manifest is None or first is None or first >= newest:
        return None
    steps = {step.version: step for step in (MIGRATIONS if migrations is None else migrations)}
    oldest = newest
    while oldest - 1 in steps:
        oldest -= 1
    if first < oldest:
        faults.error(
            f"the manifest has version {first}, and this opwest knows no way from there to version {newest}",
            manifest.value_location("version"),
            expected=f"version: {newest}" if oldest == newest else f"version: {oldest} to {newest}",
            hint=f"write it anew for version {newest}, which docs/manifest.md describes",
        )
        return None
    text, done = content.decode("utf-8"), []
    for version in range(first, newest):
        step = steps[version]
        moved = _step(step, text, manifest)
        if moved is None:
            faults.error(
                f"the manifest could not be brought from version {version} to {version + 1} ({step.what})",
                manifest.value_location("version"),
                expected=f"a manifest that was good for version {version}",
                hint="nothing was changed; mend it for that version, or write it anew",
            )
            return None
        text, manifest = moved
        done.append(step.what)
    return Migrated(text.encode("utf-8"), first, tuple(done))


def _step(step: Migration, text: str, manifest: Mapping) -> tuple[str, Mapping] | None:
    """Return the text after one step and what it holds, None where that came to nothing."""
    try:
        text = step.apply(text, manifest)
    except (ValueError, LookupError, TypeError, AttributeError):  # the manifest was not what its version says
        return None
    text = _set_version(text, step.version + 1, manifest.file)
    moved = read_yaml(text.encode("utf-8"), manifest.file, Diagnostics())
    return None if moved is None or _version(moved) != step.version + 1 else (text, moved)


def replace_value(text: str, place: tuple[int, int], old: str, new: str) -> str:
    """Replace `old`, which stands at a line and column of `text` (both from 1), and nothing else."""
    lines = text.split("\n")
    line, column = place
    rest = lines[line - 1][column - 1 :]
    if not rest.startswith(old):
        raise ValueError(f"line {line}, column {column} does not begin with {old!r}")
    lines[line - 1] = lines[line - 1][: column - 1] + new + rest[len(old) :]
    return "\n".join(lines)


def _version(manifest: Mapping) -> int | None:
    version = manifest.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _set_version(text: str, version: int, label: str) -> str:
    """Return the text with another version; unchanged where it has no place for one, which is found out after."""
    manifest = read_yaml(text.encode("utf-8"), label, Diagnostics())
    if manifest is None or _version(manifest) is None:
        return text
    place = manifest.value_location("version")
    lines = text.split("\n")
    line = lines[place.line - 1]
    head, rest = line[: place.column - 1], line[place.column - 1 :]
    digits = len(rest) - len(rest.lstrip("+-_0123456789xoabcdefABCDEF"))
    lines[place.line - 1] = f"{head}{version}{rest[digits:]}"
    return "\n".join(lines)

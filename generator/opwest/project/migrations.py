# SPDX-License-Identifier: Apache-2.0
"""Migrate a manifest to the current version: one step per version, on the text, to keep comments.

There is only version 1, without a migration. For version 2, add a step to MIGRATIONS and extend
SUPPORTED_VERSIONS of `manifest/schema.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwest.base.diagnostics import Diagnostics
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.manifest.schema import SUPPORTED_VERSIONS
from opwest.manifest.yaml_reader import read_yaml


@dataclass(frozen=True)
class Migration:
    """A migration from one version to the next."""

    version: int
    """The version that it migrates from."""
    what: str
    """A description of the change for the user."""
    apply: Callable[[str, Mapping], str]
    """Returns the new text for the old text and its located data; does not change `version`."""


MIGRATIONS: tuple[Migration, ...] = ()


@dataclass(frozen=True)
class Migrated:
    """A manifest migrated to the current version."""

    content: bytes
    version: int
    """Its original version."""
    steps: tuple[str, ...]


def migrate(
    content: bytes,
    label: str,
    faults: Diagnostics,
    *,
    migrations: Sequence[Migration] | None = None,
    newest: int = max(SUPPORTED_VERSIONS),
) -> Migrated | None:
    """Return the manifest migrated to version `newest`; None if it has that version or cannot be migrated.

    Failed migrations are reported here; invalid YAML and newer versions are reported when the manifest is loaded.
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
            f"no migration of the manifest from version {first} to version {newest}",
            manifest.value_location("version"),
            expected=f"version: {newest}" if oldest == newest else f"version: {oldest} to {newest}",
            hint=f"rewrite it for version {newest} (docs/manifest.md)",
        )
        return None
    text, done = content.decode("utf-8"), []
    for version in range(first, newest):
        step = steps[version]
        migrated = _step(step, text, manifest)
        if migrated is None:
            faults.error(
                f"cannot migrate the manifest from version {version} to {version + 1} ({step.what})",
                manifest.value_location("version"),
                expected=f"a valid manifest of version {version}",
                hint="correct it for that version, or rewrite it; the file is unchanged",
            )
            return None
        text, manifest = migrated
        done.append(step.what)
    return Migrated(text.encode("utf-8"), first, tuple(done))


def _step(step: Migration, text: str, manifest: Mapping) -> tuple[str, Mapping] | None:
    """Return the text after one step and its data, None if the step failed."""
    try:
        text = step.apply(text, manifest)
    except (ValueError, LookupError, TypeError, AttributeError):  # the manifest does not conform to its version
        return None
    text = _set_version(text, step.version + 1, manifest.file)
    migrated = read_yaml(text.encode("utf-8"), manifest.file, Diagnostics())
    return None if migrated is None or _version(migrated) != step.version + 1 else (text, migrated)


def _version(manifest: Mapping) -> int | None:
    version = manifest.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _set_version(text: str, version: int, label: str) -> str:
    """Return the text with another version, unchanged if it has none (the caller detects this)."""
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

# SPDX-License-Identifier: Apache-2.0
"""The origin of a project: `.opwest/origin.json`.

It records the relative paths from the project to its manifests and template, so that a repository with both can
be cloned anywhere, and the options of the command line. It is separate from the lock, whose content does not
depend on paths. It belongs in version control.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from opwest.base.commands import quoted
from opwest.base.diagnostics import Diagnostic, Diagnostics, Location, OpwestError, fail
from opwest.base.files import ProjectFile
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import relative
from opwest.project import disk
from opwest.project.lock import to_json

ORIGIN: Final = PurePosixPath(disk.ORIGIN)
FORMAT: Final = 1


@dataclass(frozen=True)
class Origin:
    """The sources of a project, with paths relative to the working directory."""

    manifests: tuple[Path, ...]
    template: Path | None = None
    boards: tuple[str, ...] = ()
    zephyr_version: str | None = None
    targets: tuple[str, ...] = ()
    """The targets of the metadata, from the command line."""

    def file(self, project: Path) -> ProjectFile:
        """Return the origin file of a project."""
        value: dict[str, Any] = {
            "format": FORMAT,
            "manifests": [_relative(path, project) for path in self.manifests],
            "template": None if self.template is None else _relative(self.template, project),
            "boards": list(self.boards),
            "zephyr_version": self.zephyr_version,
            **({"targets": list(self.targets)} if self.targets else {}),
        }
        return ProjectFile(ORIGIN, to_json(value), "local")


def read_origin(project: Path) -> Origin | None:
    """Return the origin of a project, None if an older version of opwest generated it."""
    place = project / ORIGIN
    try:
        content = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _broken(place, error.strerror or str(error)) from None
    try:
        return _parse(json.loads(content), project)
    except (ValueError, RecursionError) as error:
        raise _broken(place, str(error)) from None


def _parse(value: object, project: Path) -> Origin:
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if value.get("format") != FORMAT:
        raise ValueError(f"'format' is {value.get('format')!r}, not {FORMAT}")
    manifests = _texts(value, "manifests")
    if not manifests:
        raise ValueError("'manifests' is empty")
    template, version = value.get("template"), value.get("zephyr_version")
    if not all(value is None or _is_text(value) for value in (template, version)):
        raise ValueError("'template' or 'zephyr_version' is not a string")
    return Origin(
        tuple(_opened(name, project) for name in manifests),
        None if template is None else _opened(template, project),
        _texts(value, "boards"),
        version,
        _texts(value, "targets"),
    )


def _texts(value: dict[str, Any], key: str) -> tuple[str, ...]:
    items = value.get(key, [])
    if not isinstance(items, list) or not all(_is_text(item) for item in items):
        raise ValueError(f"{key!r} is not a list of strings")
    return tuple(items)


def _is_text(value: object) -> bool:
    """Whether a value is a string that is valid as a path."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold
        return False


def _relative(path: Path, project: Path) -> str:
    """Return the relative path from a project to a file, with symbolic links resolved."""
    target = os.path.join(os.path.realpath(path.parent), path.name) if path.name else os.path.realpath(path)  # noqa: PTH118
    return relative(target, os.path.realpath(project))


def _opened(name: str, project: Path) -> Path:
    """Return a recorded path relative to the working directory, normalized for messages."""
    path = Path(os.path.realpath(project)) / name
    normalized = Path(os.path.normpath(path))
    try:
        short = Path(os.path.relpath(normalized))
    except ValueError:
        return normalized
    return short if len(short.parts) <= len(normalized.parts) and ".." not in short.parts else normalized


def missing_manifests(manifests: Sequence[Path], project: Path) -> Diagnostic | None:
    """Return the error for missing manifests."""
    # Unlike pathlib's, this returns False for invalid paths, such as too long ones.
    missing = [path for path in manifests if not os.path.exists(path)]  # noqa: PTH110
    if not missing:
        return None
    names = ", ".join(str(path) for path in missing)
    given = (Path("PATH", path.name) if path in missing else path for path in manifests)
    again = " ".join(f"--manifest {quoted(str(path))}" for path in given)
    what = "manifest" if len(missing) == 1 else "manifests"
    return Diagnostic(
        "error",
        f"{what} not found: {names}",
        Location(str(project / ORIGIN)),
        expected="the path of the manifest" + ("s" if len(manifests) > 1 else ""),
        hint=f"specify the new path once: opwest update {quoted(str(project))} {again}",
    )


def warn_of_dropped_template(origin: Origin, project: Path, faults: Diagnostics) -> None:
    """Warn about a project generated with a template and now without it."""
    try:
        before = read_origin(project)
    except OpwestError:
        return
    if before is not None and before.template is not None and origin.template is None:
        faults.warning(
            f"the project was generated with the template {before.template}, and is now generated without it",
            Location(str(project)),
            hint=f"repeat --template {before.template}, or use `opwest update {quoted(str(project))}`",
        )


def _broken(place: Path, reason: str) -> OpwestError:
    hint = "delete it and specify the manifests: opwest update DIR --manifest FILE"
    return fail(f"the file is damaged: {reason}", place, hint=hint)

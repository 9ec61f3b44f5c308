# SPDX-License-Identifier: Apache-2.0
"""Where a project came from: `.opwest/origin.json`.

The lock is the same wherever a project is generated; this file is not part of that. It holds paths from the project to
its manifests and its template, relative, so that a repository with both can be cloned anywhere, and what the command
line said beside them. It belongs into version control.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from opwest.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.write import ProjectFile
from opwest.write.lock import to_json

ORIGIN: Final = PurePosixPath(".opwest/origin.json")
FORMAT: Final = 1


@dataclass(frozen=True)
class Origin:
    """What a project is made from, with paths as they can be opened from here."""

    manifests: tuple[Path, ...]
    template: Path | None = None
    boards: tuple[str, ...] = ()
    zephyr_version: str | None = None

    def file(self, project: Path) -> ProjectFile:
        """Return the file that remembers this in a project."""
        value: dict[str, Any] = {
            "format": FORMAT,
            "manifests": [_relative(path, project) for path in self.manifests],
            "template": None if self.template is None else _relative(self.template, project),
            "boards": list(self.boards),
            "zephyr_version": self.zephyr_version,
        }
        return ProjectFile(ORIGIN, to_json(value), "local")


def read_origin(project: Path) -> Origin | None:
    """Return the origin of a project, None where an older opwest noted none."""
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
        raise ValueError("it is not a JSON object")
    if value.get("format") != FORMAT:
        raise ValueError(f"its format is {value.get('format')!r}, not {FORMAT}")
    manifests = _texts(value, "manifests")
    if not manifests:
        raise ValueError("'manifests' is empty")
    template, version = value.get("template"), value.get("zephyr_version")
    if not all(value is None or _is_text(value) for value in (template, version)):
        raise ValueError("'template' and 'zephyr_version' are not text")
    return Origin(
        tuple(_opened(name, project) for name in manifests),
        None if template is None else _opened(template, project),
        _texts(value, "boards"),
        version,
    )


def _texts(value: dict[str, Any], key: str) -> tuple[str, ...]:
    items = value.get(key, [])
    if not isinstance(items, list) or not all(_is_text(item) for item in items):
        raise ValueError(f"{key!r} is not a list of text")
    return tuple(items)


def _is_text(value: object) -> bool:
    """Whether a value is text that can be a path."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold
        return False


def _relative(path: Path, project: Path) -> str:
    """Return the way from a project to a file, through real folders, as the system walks them."""
    target = os.path.join(os.path.realpath(path.parent), path.name) if path.name else os.path.realpath(path)  # noqa: PTH118
    try:
        return Path(os.path.relpath(target, os.path.realpath(project))).as_posix()
    except ValueError:  # on another drive
        return Path(target).as_posix()


def _opened(name: str, project: Path) -> Path:
    """Return a remembered path as one from here; what can be shortened is, since it is shown in messages."""
    path = Path(os.path.realpath(project)) / name
    here = Path(os.path.normpath(path))
    try:
        short = Path(os.path.relpath(here))
    except ValueError:
        return here
    return short if len(short.parts) <= len(here.parts) and ".." not in short.parts else here


def moved(manifests: Sequence[Path], project: Path) -> Diagnostic | None:
    """Return what to say where manifests are no longer where they were."""
    # Unlike pathlib's, this takes a path that can't be, as one too long, for one where nothing is.
    missing = [path for path in manifests if not os.path.exists(path)]  # noqa: PTH110
    if not missing:
        return None
    names = ", ".join(str(path) for path in missing)
    again = " ".join(f"--manifest {path.name if path in missing else path}" for path in manifests)
    what = "the manifest is" if len(missing) == 1 else "manifests are"
    return Diagnostic(
        "error",
        f"{what} no longer where the project was made from: {names}",
        Location(str(project / ORIGIN)),
        expected="the path from the project to its manifest" + ("s" if len(manifests) > 1 else ""),
        hint=f"say where they are now, once: opwest update {shlex.quote(str(project))} {again}",
    )


def warn_of_dropped_template(origin: Origin, project: Path, faults: Diagnostics) -> None:
    """Say that a project that was made with a template is made again without it."""
    try:
        before = read_origin(project)
    except OpwestError:
        return
    if before is not None and before.template is not None and origin.template is None:
        faults.warning(
            f"the project was made with the template {before.template}, and is now made without",
            Location(str(project)),
            hint=f"give --template {before.template} again; `opwest update {shlex.quote(str(project))}` remembers it",
        )


def _broken(place: Path, reason: str) -> OpwestError:
    hint = "delete it, and name the manifests: opwest update DIR --manifest FILE"
    return OpwestError([Diagnostic("error", f"the file is damaged: {reason}", Location(str(place)), hint=hint)])

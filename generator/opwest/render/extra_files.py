# SPDX-License-Identifier: Apache-2.0
"""Files that a template directory adds to a project. The user owns them, as all of the application."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from opwest.files import ProjectFile
from opwest.model.c_names import CNames
from opwest.model.model import Model
from opwest.render.application import application_name
from opwest.system.paths import folded
from opwest.templates import EXTRA, SUFFIX, is_extra

if TYPE_CHECKING:
    from opwest.render.templates.user import UserRenderer

_OPWESTS = ("models", "modules", ".opwest")


def extra_files(
    renderer: UserRenderer, models: Sequence[Model], others: Iterable[ProjectFile], *, vendored: bool
) -> list[ProjectFile]:
    """Return the files rendered from extra/; report paths that conflict with `others`."""
    user = renderer.user
    rows = _rows(models, vendored=vendored)
    contents = {name: content for name, content in user.copies.items() if is_extra(name)}
    contents |= {name: renderer.render(name, rows) for name in user.templates if is_extra(name)}
    taken = _Taken(others)
    files = []
    for name in sorted(contents):
        path = name.removeprefix(EXTRA)
        if name in user.templates:
            path = path.removesuffix(SUFFIX)
        if path.split("/")[0] in _OPWESTS:
            what = f"'{path.split('/')[0]}/' is owned by opwest: templates cannot add files to it"
            renderer.faults.error(what, user.place(name), expected="a path in another directory")
        elif clash := taken.clash(path):
            known = f"{path}{SUFFIX}" in renderer.known
            renderer.faults.error(
                f"path {path!r} conflicts with {clash}",
                user.place(name),
                expected="a unique path",
                hint=f"to replace that file, name the template {path}{SUFFIX}" if known else None,
            )
        else:
            taken.add(path)
            files.append(ProjectFile(PurePosixPath(path), contents[name], "user"))
    return files


class _Taken:
    """The paths of a project, compared as on a case-insensitive file system."""

    def __init__(self, files: Iterable[ProjectFile]) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        for file in files:
            self.add(str(file.path))

    def add(self, path: str) -> None:
        self._files[folded(path)] = path
        for parent in _parents(path):
            self._folders.setdefault(folded(parent), parent)

    def clash(self, path: str) -> str | None:
        """Return the existing path that conflicts with a path or with one of its directories."""
        if found := self._files.get(folded(path)):
            return f"file {found!r}"
        if found := self._folders.get(folded(path)):
            return f"directory {found!r}"
        for parent in _parents(path):
            if found := self._files.get(folded(parent)):
                return f"file {found!r}"
            if (found := self._folders.get(folded(parent), parent)) != parent:
                return f"directory {found!r}"
        return None


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(path).parents][:-1]


def _rows(models: Sequence[Model], *, vendored: bool) -> dict[str, Any]:
    """Return the project's values for templates of extra/."""
    return {
        "application": application_name(models),
        "vendored": vendored,
        "boards": list(dict.fromkeys(board for model in models for board in model.boards)),
        "models": [
            {
                "name": model.name,
                "description": model.description,
                "macro": CNames(model.name).macro,
                "kconfig": CNames(model.name).kconfig,
                "boards": list(model.boards),
            }
            for model in models
        ],
    }

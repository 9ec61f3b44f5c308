# SPDX-License-Identifier: Apache-2.0
"""The files of a model in Model Library Format, from a tar file or its unpacked directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.compiler.faults import fault
from opwest.frontends.mlf.tar import KEPT_BYTES, MEMBER_BYTES, MEMBERS, read_tar
from opwest.project.disk import system_faults

_FOLDERS = ("codegen/host/", "src/", "parameters/", "executor-config/")
_METADATA = "metadata.json"
_LAYOUT = "metadata.json or a directory codegen/host, as written by TVM's export_model_library_format"


@dataclass(frozen=True)
class Library:
    """The files found, by their names in the format: `codegen/host/src/default_lib0.c`."""

    path: Path
    files: Mapping[str, bytes]

    def place(self, name: str) -> str:
        """Return a file's location for messages."""
        return str(self.path / name) if self.path.is_dir() else f"{self.path}({name})"

    def under(self, folder: str, *suffixes: str) -> list[str]:
        """Return the names in a directory with one of these suffixes, with numbers sorted by value."""
        found = [n for n in self.files if n.startswith(folder) and (not suffixes or n.endswith(suffixes))]
        return sorted(found, key=lambda n: (len(n), n))


def read_library(path: Path) -> Library:
    """Return the files of a tar or a directory. Raises OpwestError."""
    files = _folder(path) if path.is_dir() else read_tar(path, _maybe_relevant)
    root = _root(files)
    if root is None:
        raise fault("no model in Model Library Format", str(path), _LAYOUT)
    kept = {n[len(root) :]: c for n, c in files.items() if n.startswith(root) and _is_relevant(n[len(root) :])}
    return Library(path, kept)


def _is_relevant(name: str) -> bool:
    return name == _METADATA or name.startswith(_FOLDERS)


def _maybe_relevant(name: str) -> bool:
    """Return whether a member of a tar can be part of the model, in any root directory; TVM's runtime is not."""
    parts = name.split("/")
    return "runtime" not in parts and any(_is_relevant("/".join(parts[start:])) for start in range(min(len(parts), 4)))


def _root(files: Mapping[str, bytes]) -> str | None:
    """Return the prefix of the format's names; None if they are missing."""
    roots = set()
    for name in files:
        if name == _METADATA or name.endswith(f"/{_METADATA}"):
            roots.add(name[: -len(_METADATA)])
        before, found, _ = name.partition("codegen/host/")
        if found and (not before or before.endswith("/")):
            roots.add(before)
    return min(roots, key=lambda r: (r.count("/"), r)) if roots else None


def _folder(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    kept = count = 0
    with system_faults(path, "cannot read the directory"):
        for name in (_METADATA, *_FOLDERS):
            for file in _walk(path, path / name):
                count += 1
                size = file.stat().st_size
                kept += size
                if count > MEMBERS or size > MEMBER_BYTES or kept > KEPT_BYTES:
                    limits = f"at most {MEMBERS} files, {MEMBER_BYTES} bytes each, {KEPT_BYTES} together"
                    raise fault("the directory is too large for a model", str(file), limits)
                found[spelled(file.relative_to(path))] = file.read_bytes()
    return found


def _walk(root: Path, start: Path) -> list[Path]:
    """Return the files under a path; links and devices are errors, so that no other files are read."""
    if not start.exists() and not start.is_symlink():
        return []
    found, pending = [], [start]
    while pending:
        one = pending.pop()
        mode = os.lstat(one).st_mode
        if stat.S_ISDIR(mode):
            pending += sorted(one.iterdir())
        elif stat.S_ISREG(mode):
            found.append(one)
        else:
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "neither a file nor a directory"
            raise fault(f"{spelled(one.relative_to(root))!r} is {kind}", str(one), "only files and directories")
        if len(found) + len(pending) > MEMBERS:
            raise fault("the directory has too many files for a model", str(root), f"at most {MEMBERS}")
    return found

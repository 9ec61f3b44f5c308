# SPDX-License-Identifier: Apache-2.0
"""Paths in emitted and recorded files: with forward slashes on every host, so that the files are the same on each."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path, PurePath, PureWindowsPath

_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.IGNORECASE)
"""Devices of MS-DOS, with any suffix (Microsoft Learn, Naming Files, Paths, and Namespaces)."""
_CHARACTERS = re.compile(r'[<>:"|?*\x00-\x1f]')


def spelled(path: PurePath) -> str:
    """Return a path as manifests, CMake, C, linker scripts, devicetree, JSON and YAML contain it."""
    return path.as_posix()


def relative(target: str | PurePath, folder: str | PurePath) -> str:
    """Return the path from a directory to a file; an absolute path if they are on different drives of Windows."""
    try:
        return spelled(Path(os.path.relpath(target, folder)))
    except ValueError:
        return spelled(Path(target))


def joined(folder: Path, path: str) -> str:
    """Return the place of a path with forward slashes in a directory; a Path takes ten times as long to make."""
    return f"{folder}{os.sep}{path if os.sep == '/' else path.replace('/', os.sep)}"


def in_make(path: PurePath) -> str:
    """Return a path in the syntax of make that ninja and CMake read too."""
    return re.sub(r"([ #])", r"\\\1", spelled(path).replace("$", "$$"))


def cmake_option(name: str, path: PurePath) -> str:
    """Return the option of CMake that sets a variable to a path. CMake would read backslashes as escapes."""
    return f"-D{name}={spelled(path)}"


def is_portable(name: str) -> bool:
    """Whether a path is relative on every host: without a root, a drive of Windows and backslashes."""
    return not PureWindowsPath(name).anchor and "\\" not in name


def folded(path: str) -> str:
    """Return a key that is equal for paths that some file systems do not distinguish."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def collisions(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of paths of a directory, or of their parents, that some file systems do not distinguish."""
    spelling: dict[str, str] = {}
    for name in _with_parents(paths):
        other = spelling.setdefault(folded(name), name)
        if other != name:
            yield other, name


def refused_by_windows(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths of a directory, or of their parents, that Windows does not permit, and the reason."""
    for name in _with_parents(paths):
        if reason := fault_on_windows(name.rpartition("/")[2]):
            yield name, reason


def fault_on_windows(name: str) -> str | None:
    """Return why Windows does not permit the name of a file or directory; None if it does."""
    if _RESERVED.fullmatch(name.rstrip(" .")):
        return f"'{re.split('[.]', name)[0]}' is the name of a device"
    if name.endswith((" ", ".")):
        return "its last character is a space or a dot"
    if character := _CHARACTERS.search(name):
        return f"it contains {character[0]!r}"
    return None


def _with_parents(paths: Iterable[str]) -> list[str]:
    """Return each path once, after its directories."""
    names: dict[str, None] = {}
    for path in sorted(paths):
        names.update(dict.fromkeys(accumulate(path.split("/"), "{}/{}".format)))
    return list(names)

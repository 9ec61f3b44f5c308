# SPDX-License-Identifier: Apache-2.0
"""Paths in emitted and recorded files: with forward slashes on every host, so that the files are the same on each."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath, PureWindowsPath


def spelled(path: PurePath) -> str:
    """Return a path as manifests, CMake, C, linker scripts, devicetree, JSON and YAML contain it."""
    return path.as_posix()


def relative(target: str | PurePath, folder: str | PurePath) -> str:
    """Return the path from a directory to a file; an absolute path if they are on different drives of Windows."""
    try:
        return spelled(Path(os.path.relpath(target, folder)))
    except ValueError:
        return spelled(Path(target))


def in_make(path: PurePath) -> str:
    """Return a path in the syntax of make that ninja and CMake read too."""
    return re.sub(r"([ #])", r"\\\1", spelled(path).replace("$", "$$"))


def cmake_option(name: str, path: PurePath) -> str:
    """Return the option of CMake that sets a variable to a path. CMake would read backslashes as escapes."""
    return f"-D{name}={spelled(path)}"


def is_portable(name: str) -> bool:
    """Whether a path is relative on every host: without a root, a drive of Windows and backslashes."""
    return not PureWindowsPath(name).anchor and "\\" not in name

# SPDX-License-Identifier: Apache-2.0
"""The files of a project before writing: their owners, and the rules for their paths."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Literal

from opwest.base.frozen_dataclass import dataclass

Owner = Literal["generator", "user", "copy", "local"]


@dataclass(frozen=True)
class ProjectFile:
    """One file to write. A file of owner `user` is written once; later versions are merged.

    `copy`: a copy of a user's file outside the project; changes are made there, so that copies are never merged.
    `local`: an internal file that depends on the location of the project; the lock does not contain it.
    """

    path: PurePosixPath
    content: bytes
    owner: Owner


def with_lf(content: bytes) -> bytes:
    """Return a text whose lines all end with CR LF with LF instead; other content unchanged.

    git on Windows writes such files (core.autocrlf). They are neither edited nor another model.
    """
    ends = content.count(b"\r\n")
    if not ends or ends != content.count(b"\n") or b"\0" in content:
        return content
    return content.replace(b"\r\n", b"\n")


def is_inside(path: object) -> bool:
    """Whether `path` is the normalised relative path of a file in the project directory."""
    if not isinstance(path, str) or "\0" in path or "\\" in path:
        return False
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold
        return False
    return all(part not in ("", ".", "..") for part in path.split("/"))


_CAN_BE_IN_USE = os.name == "nt"
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between the attempts."""


def retried(operation: Callable[[], object]) -> None:
    """Replace, rename or delete a file.

    Windows refuses this while a virus scanner, an indexer or an editor has the file open, mostly for an instant;
    other systems do not. Raises the last PermissionError.
    """
    for pause in _PAUSES if _CAN_BE_IN_USE else ():
        try:
            operation()
        except PermissionError:
            time.sleep(pause)
        else:
            return
    operation()

# SPDX-License-Identifier: Apache-2.0
"""The files of a project, before they are written: whose they are, and which paths they can have."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

Owner = Literal["generator", "user", "copy", "local"]


@dataclass(frozen=True)
class ProjectFile:
    """One file to write; a user's file is written once and from then on only merged.

    A copy is a user's file, too, but one that the user has elsewhere: a merge would only repeat the user's own changes.
    A local file is opwest's own and says where the project lies: the lock, which is the same everywhere, has nothing
    of it.
    """

    path: PurePosixPath
    content: bytes
    owner: Owner


def folded(path: str) -> str:
    """Return what two paths share that some file systems cannot tell apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def is_inside(path: object) -> bool:
    """Whether `path` is text that names something in the project folder, in its shortest spelling."""
    if not isinstance(path, str) or "\0" in path or "\\" in path:
        return False
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold
        return False
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and str(pure) == path

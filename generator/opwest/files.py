# SPDX-License-Identifier: Apache-2.0
"""The files of a project before they are written: their owners and valid paths."""

from __future__ import annotations

import os
import unicodedata
from pathlib import PurePosixPath
from typing import Literal

from opwest.records import dataclass

Owner = Literal["generator", "user", "copy", "local"]


@dataclass(frozen=True)
class ProjectFile:
    """One file to write. A user's file is written once; later changes are merged.

    A copy is a user's file whose original is elsewhere; a merge would only repeat the user's changes.
    A local file belongs to opwest and contains paths of this machine. The lock, equal on all machines, omits it.
    """

    path: PurePosixPath
    content: bytes
    owner: Owner


def folded(path: str) -> str:
    """Return a key that is equal for paths that some file systems do not distinguish."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def is_inside(path: object) -> bool:
    """Whether `path` is text that names an entry of the project directory, in its shortest form."""
    if not isinstance(path, str) or "\0" in path or "\\" in path:
        return False
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # an unpaired surrogate, which JSON permits
        return False
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and str(pure) == path

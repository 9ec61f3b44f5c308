# SPDX-License-Identifier: Apache-2.0
"""The paths of a project on all hosts: names that differ only in case, and names that Windows reserves."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from opwest.diagnostics import Diagnostics
from opwest.files import ProjectFile, folded

_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.IGNORECASE)
"""Devices of MS-DOS, with any suffix (Microsoft Learn, Naming Files, Paths, and Namespaces)."""
_CHARACTERS = re.compile(r'[<>:"|?*\x00-\x1f]')


def check_portable(files: Sequence[ProjectFile], faults: Diagnostics) -> None:
    """Report paths that some file systems do not distinguish, and names that Windows does not permit.

    The latter are errors on Windows, and warnings elsewhere.
    """
    spelling: dict[str, str] = {}
    reported: set[str] = set()
    for path in sorted(str(file.path) for file in files):
        for name in _with_parents(path):
            other = spelling.setdefault(folded(name), name)
            if other != name and name not in reported:
                reported.add(name)
                faults.error(
                    f"the files '{other}' and '{name}' of the project differ only in case",
                    expected="names that differ in more than case: Windows and macOS ignore it",
                    hint="rename one of the files that the manifest names",
                )
            if name not in reported and (reason := fault_on_windows(PurePosixPath(name).name)):
                reported.add(name)
                report = faults.error if os.name == "nt" else faults.warning
                report(f"Windows does not permit the file name '{name}': {reason}", hint="rename the file or the model")


def fault_on_windows(name: str) -> str | None:
    """Return why Windows does not permit the name of a file or directory; None if it does."""
    if _RESERVED.fullmatch(name.rstrip(" .")):
        return f"'{re.split('[.]', name)[0]}' is the name of a device"
    if name.endswith((" ", ".")):
        return "its last character is a space or a dot"
    if found := _CHARACTERS.search(name):
        return f"it contains {found[0]!r}"
    return None


def _with_parents(path: str) -> list[str]:
    """Return a path and its directories, the outermost first."""
    pure = PurePosixPath(path)
    return [*(str(parent) for parent in reversed(pure.parents)), path][1:]

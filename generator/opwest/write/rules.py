# SPDX-License-Identifier: Apache-2.0
"""The common part of the rules for opwest's files and for user's files."""

from __future__ import annotations

from pathlib import Path

from opwest.diagnostics import Diagnostics, Location
from opwest.system.paths import folded, spelled

from . import disk
from .changes import Plan
from .lock import Lock, is_digest


class Rules:
    """An incomplete plan: the state of the lock and the disk, the changes and the errors so far."""

    def __init__(self, directory: Path, old: Lock) -> None:
        self.directory = directory
        self.old = old
        self.plan = Plan()
        self.faults = Diagnostics()
        self._removed: dict[str, str] = {}

    def is_same(self, path: str, found: str | None, *digests: str | None) -> bool:
        """Whether the file at `path`, with the checksum `found`, has one of the contents, with any line ends."""
        if not is_digest(found):
            return False
        return found in digests or disk.digest_with_lf(self.directory / path) in digests

    def write(self, path: str, found: str | None, content: bytes) -> None:
        """Plan to write a file, and count it in the summary."""
        self.plan.add(path, found, content)
        self.plan.written.append(path)

    def remove(self, path: str, found: str) -> None:
        """Plan to remove a file that is no longer generated."""
        self.plan.add(path, found, None)
        self.plan.removed.append(path)
        self._removed[folded(path)] = path

    def write_own(self, path: str, content: bytes) -> None:
        """Plan to write an internal file of opwest, replacing any existing file."""
        found = disk.look(self.directory, path)
        if self.is_same(path, found, disk.digest(content)):
            return
        if found is None or is_digest(found):
            self.plan.add(path, found, content)
        else:
            self.fault(path, f"{found} in place of an internal file of opwest", "delete it and run opwest again")

    def remove_own(self, path: str) -> None:
        """Plan to remove an internal file of opwest."""
        found = disk.look(self.directory, path)
        if is_digest(found):
            self.plan.add(path, found, None)

    def is_renamed_in_case(self, path: str) -> bool:
        """Report a file to be written whose name differs only in case from a file to be removed."""
        old = self._removed.get(folded(path))
        place = self.directory / path
        if old is None or not place.exists() or not place.samefile(self.directory / old):
            return False
        message = f"the new name {path} differs only in case, which this file system does not distinguish"
        self.fault(old, message, "delete the file and generate again")
        return True

    def write_over(self, path: str, found: str, content: bytes) -> None:
        """Plan a write over an entry other than a file: an error, unless this generation removes the entry."""
        blocker = disk.obstacle(self.directory, path)
        removed = set(self.plan.removed)
        if found == disk.FOLDER and self._is_emptied(path, removed):
            self.write(path, None, content)
        elif found == disk.FOLDER:
            self.fault(path, "a directory in place of a generated file", "move or rename the directory")
        elif found == disk.BELOW_FILE and blocker and blocker[0] in removed:
            self.write(path, None, content)
        elif found == disk.BELOW_FILE and blocker:
            self.fault(blocker[0], f"a file in place of a directory (for {path})", "move or rename the file")
        elif found == disk.BEHIND_LINK and blocker:
            self.fault(
                blocker[0],
                f"opwest does not write through a symbolic link (for {path})",
                "replace the link with a directory",
            )
        elif found == disk.LINK:
            hint = "delete the link and generate again"
            self.fault(path, "opwest does not write through a symbolic link", hint)
        else:
            self.fault(path, "a special file in place of a generated file", "move or rename it")

    def _is_emptied(self, folder: str, removed: set[str]) -> bool:
        """Whether `folder` is not empty, and empty without the files `removed`."""
        expected = removed | {parent for path in removed for parent in disk.parents(path)}
        inside = {spelled(entry.relative_to(self.directory)) for entry in (self.directory / folder).rglob("*")}
        return bool(inside) and inside <= expected

    def fault(self, path: str, message: str, hint: str) -> None:
        """Report the reason why a file cannot be written."""
        self.faults.error(message, Location(str(self.directory / path)), hint=hint)

# SPDX-License-Identifier: Apache-2.0
"""The rules for the user's files.

`.opwest/base/<path>.base` contains the base of a user's file: the generated content when the file was written or
last merged. `generate` never changes a user's file again, nor its base; `update` merges and replaces the base.
The suffix prevents twister, west and editors from using the base as a project file.
"""

from __future__ import annotations

from typing import Final

from . import disk
from .changes import Merging
from .lock import is_digest
from .rules import Rules

BASE: Final = f"{disk.OWN}/base"
BESIDE: Final = ".opwest-new"

_NOTHING: Final = (None, disk.BELOW_FILE)


def base_path(path: str) -> str:
    """Return the path of the base of a user's file."""
    return f"{BASE}/{path}.base"


class UserFiles:
    """Plans the user's files one at a time, and collects their entries for the new lock."""

    def __init__(self, rules: Rules, merging: Merging | None) -> None:
        self._rules = rules
        self._plan = rules.plan
        self._old = rules.old
        self._merging = merging
        self.user = set(rules.old.user)
        self.bases: dict[str, str] = {}
        self.deleted: set[str] = set()

    def wanted(self, path: str, content: bytes) -> None:
        """Plan a user's file of this generation."""
        found = disk.look(self._rules.directory, path)
        known, handed_over = path in self._old.user, path in self._old.files
        if known and found in _NOTHING:
            self._stays_deleted(path)
        elif not known and not handed_over:
            self._new(path, found, content)
        elif found == disk.digest(content):
            self._adopt(path, content)
            self._plan.kept.append(path)
        elif found is None or (handed_over and found == self._old.files[path]):
            self._rules.write(path, found, content)
            self._adopt(path, content)
        elif not is_digest(found):
            self._no_file(path, found, content, known=known)
        elif self._merging is None:
            self._keep(path, content)
        else:
            self._update(path, content, self._merging)

    def unwanted(self, path: str) -> None:
        """Plan a user's file of an earlier generation that is no longer generated."""
        found = disk.look(self._rules.directory, path)
        if self._merging is None or found in _NOTHING:
            self._carry(path)
        elif found == self._old.bases.get(path):
            self._rules.remove(path, found)
            self.user.discard(path)
        else:
            self._plan.remark("released", path)
            self.user.discard(path)

    def settle(self) -> None:
        """Plan the removal of unused bases."""
        for path in sorted(set(self._old.bases) - set(self.bases)):
            self._rules.remove_own(base_path(path))

    def _new(self, path: str, found: str | None, content: bytes) -> None:
        if found is None:
            self._rules.write(path, None, content)
            self._adopt(path, content)
        elif is_digest(found) or found == disk.LINK or (self._rules.directory / path).is_file():
            self._plan.kept.append(path)
            if found != disk.digest(content) and self._merging:
                self._plan.remark("foreign", path)
        else:
            self._rules.in_the_way(path, found, content)
            self._adopt(path, content)

    def _no_file(self, path: str, found: str, content: bytes, *, known: bool) -> None:
        if known or found == disk.LINK or (self._rules.directory / path).is_file():
            self._plan.kept.append(path)
            self.user.add(path)
            self._carry(path)
            if self._merging and self._old.bases.get(path) != disk.digest(content):
                self._plan.remark("linked", path)
        else:
            self._rules.in_the_way(path, found, content)
            self._adopt(path, content)

    def _stays_deleted(self, path: str) -> None:
        self._carry(path)
        if self._merging and path not in self._old.deleted:
            self._plan.remark("deleted", path, other=base_path(path) if path in self.bases else None)
            self.deleted.add(path)

    def _keep(self, path: str, content: bytes) -> None:
        """Keep a file, with a remark if the new content differs from its base."""
        self._plan.kept.append(path)
        self.user.add(path)
        self._carry(path)
        if path in self.bases and self.bases[path] != disk.digest(content):
            self._plan.remark("stale", path)

    def _update(self, path: str, content: bytes, merging: Merging) -> None:
        yours = (self._rules.directory / path).read_bytes()
        found, base, new = disk.digest(yours), self._old.bases.get(path), disk.digest(content)
        self.user.add(path)
        if lines := merging.markers(yours):
            self._plan.remark("unresolved", path, lines=lines)
            self._plan.kept.append(path)
            self._carry(path)
        elif found == base:
            self._rules.write(path, found, content)
            self._adopt(path, content)
        elif base == new:
            self._plan.kept.append(path)
            self._carry(path)
        elif base is None or (before := self._read_base(path, base)) is None:
            self._plan.kept.append(path)
            self._plan.remark("unknown", path, other=base_path(path))
            self._adopt(path, content)
        else:
            self._merge(path, before, yours, content, merging)

    def _merge(self, path: str, before: bytes, yours: bytes, content: bytes, merging: Merging) -> None:
        merged = merging.merge(before, yours, content)
        if merged is None:
            self._plan.kept.append(path)
            self._plan.remark("beside", path, other=self._write_beside(path, content))
        elif merged.content == yours:
            self._plan.kept.append(path)
        else:
            self._plan.add(path, disk.digest(yours), merged.content)
            self._plan.merged.append(path)
            if merged.conflicts:
                self._plan.remark("conflict", path, lines=merged.conflicts)
        self._adopt(path, content)

    def _write_beside(self, path: str, content: bytes) -> str:
        """Plan to write a file under an unused name; return the name."""
        number = 1
        while True:
            other = f"{path}{BESIDE}{number if number > 1 else ''}"
            found = disk.look(self._rules.directory, other)
            if found is None:
                self._rules.write(other, None, content)
            if found in (None, disk.digest(content)):
                return other
            number += 1

    def _adopt(self, path: str, content: bytes) -> None:
        """Record that the user's file includes the new content."""
        self.user.add(path)
        self.bases[path] = disk.digest(content)
        self._rules.write_own(base_path(path), content)

    def _carry(self, path: str) -> None:
        """Keep the recorded state of a file."""
        base = self._old.bases.get(path)
        if base is not None and disk.look(self._rules.directory, base_path(path)) == base:
            self.bases[path] = base
        if path in self._old.deleted and disk.look(self._rules.directory, path) in _NOTHING:
            self.deleted.add(path)

    def _read_base(self, path: str, base: str) -> bytes | None:
        """Return the base of a file, None if it is missing or was changed."""
        if disk.look(self._rules.directory, base_path(path)) != base:
            return None
        return (self._rules.directory / base_path(path)).read_bytes()

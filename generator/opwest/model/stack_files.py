# SPDX-License-Identifier: Apache-2.0
"""Read `stack_usage` of an entry of `objects`: the compiler's `.su` files for its functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from opwest.diagnostics import Location, nearest
from opwest.manifest.located import Mapping
from opwest.model.context import Context, located_items
from opwest.objects.facts import Member, ObjectError
from opwest.objects.stack import StackEntry, read_su
from opwest.records import dataclass

_SHOWN = 5


@dataclass
class StackFiles:
    """The `.su` files of one entry."""

    functions: dict[str, StackEntry] = field(default_factory=dict)
    """The union of all files; for functions of one name, the larger entry."""
    _files: list[tuple[str, Location, frozenset[str]]] = field(default_factory=list)

    def check(self, context: Context, members: Iterable[Member]) -> None:
        """Warn about functions absent from the entry's objects: the files belong to other objects."""
        if not self._files:
            return
        known = {s.name for member in members for s in member.symbols if s.section == "code"}
        known |= {re.sub(r"\.\d+$", "", name) for name in known}
        for file, at, names in self._files:
            foreign = sorted(names - known)
            if foreign:
                listed = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
                context.faults.warning(
                    f"{file} lists functions that are in no object of this entry: {listed}",
                    at,
                    expected="the .su files of these objects",
                    hint=nearest(foreign[0], known),
                )


def read_stack_files(context: Context, entry: Mapping) -> StackFiles:
    """Return the content of the `.su` files of an entry; report unusable files."""
    found = StackFiles()
    if "stack_usage" in entry and "target" not in entry:
        context.faults.error(
            "'stack_usage' requires 'target'",
            entry.key_location("stack_usage"),
            expected="target: the target of the objects",
            hint="C sources and LLVM IR are compiled once per target, with different frame sizes",
        )
        return found
    for file, at in located_items(context.items("stack_usage", entry)):
        path = context.regular_file(file, at, "a .su file written by a compiler")
        if path is None:
            continue
        try:
            entries = read_su(path)
        except ObjectError as error:
            message = f"{file}: {error.message.removeprefix(path.name).lstrip(': ')}"
            context.faults.error(message, at, expected=error.expected, hint=error.hint)
            continue
        found._files.append((file, at, frozenset(entries)))
        for name, one in entries.items():
            old = found.functions.get(name)
            if old is None or (one.exact, -one.bytes) < (old.exact, -old.bytes):
                found.functions[name] = one
    return found

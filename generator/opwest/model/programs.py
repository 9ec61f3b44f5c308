# SPDX-License-Identifier: Apache-2.0
"""The programs of accelerators: the files that devices, operators and steps name."""

from __future__ import annotations

from pathlib import PurePosixPath

from opwest.diagnostics import Location
from opwest.manifest.located import Mapping
from opwest.model.context import Context
from opwest.model.devices import Program


class Programs:
    """The programs of a manifest; every file is read once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._by_file: dict[str, Program | None] = {}
        self._by_name: dict[str, Program] = {}

    def of(self, entry: Mapping, owner: str) -> Program | None:
        """Return the program of the device, operator or step `entry`; None if it names none.

        Report a file that cannot be read, an empty one, and two files with one name.
        """
        if "program" not in entry:
            return None
        file: str = entry["program"]
        if file not in self._by_file:
            self._by_file[file] = self._read(file, entry.value_location("program"), owner)
        return self._by_file[file]

    def _read(self, file: str, at: Location, owner: str) -> Program | None:
        faults = self.context.faults
        path = self.context.regular_file(file, at, f"the program of the {owner}")
        if path is None:
            return None
        program = Program(PurePosixPath(file).stem, file, path.read_bytes())
        if not program.content:
            faults.error(f"program {file!r} is empty", at, expected=f"the program of the {owner}")
        other = self._by_name.setdefault(program.name, program)
        if other.content != program.content:
            faults.error(
                f"programs {other.file!r} and {file!r} have the same name {program.name!r}",
                at,
                expected="unique file names without suffix",
                hint="operators refer to programs by this name",
            )
        return other

# SPDX-License-Identifier: Apache-2.0
"""Files of LLVM IR in `objects`. What reads and compiles them is imported only where there are some."""

from __future__ import annotations

from pathlib import Path

from opwest.diagnostics import Location
from opwest.manifest.located import Mapping
from opwest.records import dataclass

SUFFIXES = (".ll", ".bc")


@dataclass(frozen=True)
class IrFile:
    """A file of IR, with what the manifest says of it."""

    name: str
    path: Path
    location: Location
    entry: Mapping


def is_ir(path: Path) -> bool:
    """Return whether a file of `objects` is LLVM IR.

    Its name decides: bitcode in a file called .o comes from -flto, and a linker's plugin would have to compile it.
    """
    return path.suffix in SUFFIXES

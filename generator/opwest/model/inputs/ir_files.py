# SPDX-License-Identifier: Apache-2.0
"""Files of LLVM IR in `objects`; the code that reads them is imported on first use."""

from __future__ import annotations

from pathlib import Path

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping

SUFFIXES = (".ll", ".bc")


@dataclass(frozen=True)
class IrFile:
    """A file of IR with its keys in the manifest."""

    name: str
    path: Path
    location: Location
    entry: Mapping


def is_ir(path: Path) -> bool:
    """Return whether a file of `objects` is LLVM IR.

    The suffix decides: bitcode in an .o file is the output of -flto, which requires a linker plugin.
    """
    return path.suffix in SUFFIXES

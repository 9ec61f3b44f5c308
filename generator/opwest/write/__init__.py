# SPDX-License-Identifier: Apache-2.0
"""Write projects atomically: after an interruption, either the new or the old project is complete."""

from .changes import Merged, Merging, Remark
from .writer import (
    FileChange,
    Preview,
    WriteResult,
    preview_project,
    read_record,
    recover,
    write_project,
)

__all__ = [
    "FileChange",
    "Merged",
    "Merging",
    "Preview",
    "Remark",
    "WriteResult",
    "preview_project",
    "read_record",
    "recover",
    "write_project",
]

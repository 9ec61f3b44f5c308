# SPDX-License-Identifier: Apache-2.0
"""Writing: the only layer that changes files. The whole new project or the whole old one, never a mixture."""

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

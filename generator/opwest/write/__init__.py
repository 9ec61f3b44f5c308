# SPDX-License-Identifier: Apache-2.0
"""Writing: the only layer that changes files. The whole new project or the whole old one, never a mixture."""

from .project import ProjectFile, WriteResult, read_record, recover, write_project

__all__ = ["ProjectFile", "WriteResult", "read_record", "recover", "write_project"]

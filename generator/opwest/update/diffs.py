# SPDX-License-Identifier: Apache-2.0
"""Format changes as a unified diff for `patch -p1` and `git apply`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from opwest.write import FileChange
from opwest.write.bases import decoded

_OWN = ".opwest/"


def unified(changes: Sequence[FileChange]) -> str:
    """Return the diff of all files outside .opwest/, sorted by path."""
    shown = sorted((c for c in changes if not c.path.startswith(_OWN)), key=lambda change: change.path)
    return "".join(line for change in shown for line in of_file(change.path, change.old, change.new))


def of_file(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Yield the lines of the diff of one file."""
    before, after = ("" if content is None else decoded(content) for content in (old, new))
    end = "\t" if " " in path else ""  # where the name ends, for `patch`
    names = ("/dev/null" if old is None else f"a/{path}{end}", "/dev/null" if new is None else f"b/{path}{end}")
    if before is None or after is None:
        yield f"Binary files {names[0].rstrip()} and {names[1].rstrip()} differ\n"
        return
    yield f"diff --git a/{path} b/{path}\n"
    if old is None:
        yield "new file mode 100644\n"
    if new is None:
        yield "deleted file mode 100644\n"
    for line in difflib.unified_diff(_lines(before), _lines(after), *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Return the lines with their line endings; only newlines end a line, not form feeds."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])

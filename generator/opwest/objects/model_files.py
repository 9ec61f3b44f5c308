# SPDX-License-Identifier: Apache-2.0
"""What a file or a directory with a model is: a kind that `opwest import` reads, a C source with arrays, or another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

from opwest.base import commands
from opwest.objects.model_kinds import KINDS, Identified, Seen, kind_of_content

UNKNOWN = Identified(None, None)
SUFFIXES = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".ino")
"""Of the names of sources with arrays. The content decides."""
_MAX_SOURCE = 1 << 25
_SOURCE = re.compile(r"/[*/]|#[ \t]*(?:include|if|ifdef|ifndef|pragma|define)\b")


def identify(path: Path) -> Identified:
    """Return what a file or a directory is. A file that cannot be read is unknown."""
    try:
        if path.is_dir():
            from opwest.objects.foreign_models import foreign_directory

            return foreign_directory(path) or Identified("mlf", "a directory in microTVM's Model Library Format")
        if not path.is_file():  # the content of a pipe can be read only once
            return Identified(None, "a pipe or a device", "save its content in a file") if path.exists() else UNKNOWN
        with path.open("rb") as stream:
            return identify_content(stream, path)
    except OSError:
        return UNKNOWN


def way_of(path: Path) -> str | None:
    """Return what a file is and how it becomes a manifest, for one in place of another; None for unknown ones."""
    found = identify(path) if path.is_file() else UNKNOWN
    if found.kind is not None:
        return f"the file is {found.what}: opwest import {commands.quoted(str(path))} -o DIR"
    return f"the file is {found.what}: {found.hint}" if found.what and found.hint else None


def identify_content(stream: BinaryIO, path: Path) -> Identified:
    """Return what an open file is; `path` is its name in commands."""
    seen = Seen(stream, path.name)
    row = next((row for row in KINDS if row.is_kind(seen)), None)
    if row is not None:
        return Identified(row.name, row.noun)
    from opwest.objects.foreign_models import foreign_file  # the imports of most files need no other rules

    return foreign_file(seen, path) or _of_source(seen, path) or UNKNOWN


def _of_source(seen: Seen, path: Path) -> Identified | None:
    """Return the kind of the first model in the arrays of a C source; of one without models, that it is a source."""
    if seen.text is None:
        return None
    from opwest.objects.c_arrays import c_arrays
    from opwest.objects.facts import ObjectError

    seen.stream.seek(0)
    try:
        arrays = c_arrays(seen.stream.read(_MAX_SOURCE + 1))
    except ObjectError:
        return None
    kind = next(filter(None, (kind_of_content(array.content) for array in arrays)), None)
    if kind is not None:
        return Identified(kind, "a C source with a model")
    if not arrays and path.suffix not in SUFFIXES and not _SOURCE.match(seen.text):
        return None
    hint = f"opwest init {commands.quoted(str(path))} drafts a manifest for its operators"
    return Identified(None, "a C source without a model", hint)

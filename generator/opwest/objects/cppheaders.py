# SPDX-License-Identifier: Apache-2.0
"""Read a C++ source with the headers that it includes in quotes or from given directories.

A header can declare an entry point `extern "C"`, and define functions and classes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from opwest.objects.cppsource import read_cpp_source, with_headers
from opwest.objects.csource import LARGEST_SOURCE
from opwest.objects.facts import CSource, ObjectError

_MOST_HEADERS = 1000


def read_with_headers(path: Path, content: bytes, include_dirs: Sequence[Path] = ()) -> CSource:
    """Return the facts about a C++ source and the headers in its directories; raise ObjectError as `read_cpp_source`.

    A header in quotes is searched for in the directory of the including file, then every header in `include_dirs`.
    Headers that are not found are left out.
    """
    source = read_cpp_source(path, content)
    found: dict[str, CSource] = {os.path.normpath(path): source}
    waiting = [source]
    while waiting and len(found) <= _MOST_HEADERS:
        one = waiting.pop(0)
        for name in one.includes:
            folders = [*([one.path.parent] if name in one.local_includes else []), *include_dirs]
            for place in (os.path.normpath(folder / name) for folder in folders):
                if place in found:
                    break
                header = _read(Path(place))
                if header is not None:
                    found[place] = header
                    waiting.append(header)
                    break
    return with_headers(source, list(found.values())[1:])


def _read(path: Path) -> CSource | None:
    """Return a header; None if it is not readable, or not text."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_SOURCE:
            return None
        return read_cpp_source(path, path.read_bytes())
    except (OSError, ValueError, RuntimeError, ObjectError):  # the compiler reports it
        return None

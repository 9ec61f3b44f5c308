# SPDX-License-Identifier: Apache-2.0
"""Read a C++ source with the headers that it includes in quotes.

A header can declare an entry point `extern "C"`, and define functions and classes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from opwest.objects.cppsource import read_cpp_source, with_headers
from opwest.objects.csource import LARGEST_SOURCE
from opwest.objects.facts import CSource, ObjectError

_MOST_HEADERS = 1000


def read_with_headers(path: Path, content: bytes) -> CSource:
    """Return the facts about a C++ source and the headers in its directories; raise ObjectError as `read_cpp_source`.

    A header is searched for in the directory of the including file. Headers that are not found are left out.
    """
    source = read_cpp_source(path, content)
    found: dict[str, CSource] = {os.path.normpath(path): source}
    waiting = [source]
    while waiting and len(found) <= _MOST_HEADERS:
        one = waiting.pop(0)
        for name in one.local_includes:
            place = os.path.normpath(one.path.parent / name)
            header = _read(Path(place)) if place not in found else None
            if header is not None:
                found[place] = header
                waiting.append(header)
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

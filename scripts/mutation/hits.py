# SPDX-License-Identifier: Apache-2.0
"""What probes call: it records the current test, also in child processes, in the directory of OPWEST_REACH."""

from __future__ import annotations

import os
import sys
from typing import Any

_FOLDER = os.environ.get("OPWEST_REACH", "")
_CONTEXT = "OPWEST_REACH_CONTEXT"
_BUILDERS = ("west", "cmake", "ninja", "twister", "make")
_open, _write, _close, _fsdecode = os.open, os.write, os.close, os.fsdecode
_context = os.environ.get(_CONTEXT, "")
_seen: set[int | str] = set()


def enter(context: str) -> str:
    """Attribute what follows, in this process and in its children, to a context; return the one before."""
    global _context
    before, _context = _context, context
    os.environ[_CONTEXT] = context
    _seen.clear()
    return before


def hit(*reached: int | str) -> None:
    """Record the number of a mutant, or the name of a file of C, in the current context."""
    for one in reached:
        if one not in _seen:
            _seen.add(one)
            if _FOLDER:
                line = f"{one}\t{_context.encode('unicode_escape').decode()}\n".encode()
                file = _open(f"{_FOLDER}/hits", os.O_WRONLY | os.O_APPEND)
                _write(file, line)
                _close(file)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Record the files of C that a compiler is called with; a build of an application can compile each of them."""
    if event == "subprocess.Popen":
        words = [_fsdecode(word) for word in [arguments[0] or "", *(arguments[1] or [])] if word is not None]
        if any(word.rsplit("/", 1)[-1] in _BUILDERS for word in words[:4]):
            hit("*")
        hit(*(word.rsplit("/", 1)[-1] for word in words if word.endswith((".c", ".h"))))


if _FOLDER:
    sys.addaudithook(_audit)

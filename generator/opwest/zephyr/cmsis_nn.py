# SPDX-License-Identifier: Apache-2.0
"""The directory of CMSIS-NN, Zephyr's module, and its sources that operators need: for runs on a host and in QEMU."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from opwest.diagnostics import Diagnostic, Location, OpwestError
from opwest.objects.csource import read_c_source
from opwest.objects.facts import CSource, ObjectError
from opwest.zephyr.workspace import find_workspace

VARIABLE = "CMSIS_NN"
"""The environment variable with the directory."""
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"][\w./]*arm_nn\w*\.h[>\"]", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_EXPECTED = "a directory with Include/arm_nnfunctions.h and Source/"


def uses_cmsis_nn(sources: Iterable[Path]) -> bool:
    """Whether sources of operators include CMSIS-NN."""
    return any(_INCLUDE.search(path.read_bytes()) for path in sources)


def find_cmsis_nn(given: Path | None, model: str, project: Path) -> Path:
    """Return the directory of CMSIS-NN: `given`, $CMSIS_NN, or the module of the Zephyr workspace.

    Raises OpwestError, with the ways to specify it, if there is none.
    """
    named = given or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if named is not None:
        return checked_cmsis_nn(named, "--cmsis-nn" if given else f"${VARIABLE}")
    workspace = find_workspace()
    module = workspace.top / "modules" / "lib" / "cmsis-nn" if workspace is not None else None
    if module is not None and _is_cmsis_nn(module):
        return module
    raise _fail(
        f"the operators of model '{model}' call CMSIS-NN, which is not part of the application",
        project,
        f"--cmsis-nn DIR or ${VARIABLE}: {_EXPECTED}",
        "in a Zephyr workspace it is modules/lib/cmsis-nn (west update cmsis-nn); set ZEPHYR_BASE to use it",
    )


def checked_cmsis_nn(named: Path, where: str = "--cmsis-nn") -> Path:
    """Return a directory that the user names in an option or a variable. Raises OpwestError if it is not CMSIS-NN."""
    if not _is_cmsis_nn(named):
        raise _fail(f"{where}: '{named}' is not CMSIS-NN", None, _EXPECTED)
    return named


def required_sources(root: Path, users: Iterable[Path]) -> list[Path]:
    """Return the sources of CMSIS-NN that define what `users` call, directly or through other sources.

    A word that a source contains counts as a use, so that no preprocessor is needed.
    """
    contents = {path: path.read_bytes() for path in sorted((root / "Source").rglob("*.c"))}
    owners: dict[bytes, Path] = {}
    for path, content in contents.items():
        source = _read(path, content)
        for name in (*(f.name for f in source.c_functions), *source.globals):
            owners.setdefault(name.encode(), path)
    # Inline functions of the headers can call others.
    headers = [_read(path, path.read_bytes()) for path in sorted((root / "Include").rglob("*.h"))]
    inline = {name.encode() for header in headers for name in header.calls}
    found: dict[Path, None] = {}
    waiting = [inline, *(set(_WORD.findall(path.read_bytes())) for path in users)]
    while waiting:
        for name in sorted(waiting.pop() & owners.keys()):
            path = owners[name]
            if path not in found:
                found[path] = None
                waiting.append(set(_WORD.findall(contents[path])))
    return list(found)


def _read(path: Path, content: bytes) -> CSource:
    try:
        return read_c_source(path, content)
    except ObjectError as fault:
        raise _fail(fault.message, path, fault.expected) from fault


def _is_cmsis_nn(folder: Path) -> bool:
    return (folder / "Include" / "arm_nnfunctions.h").is_file() and (folder / "Source").is_dir()


def _fail(message: str, where: Path | None, expected: str | None, hint: str | None = None) -> OpwestError:
    location = Location(str(where)) if where is not None else None
    return OpwestError([Diagnostic("error", message, location, expected, hint)])

# SPDX-License-Identifier: Apache-2.0
"""Errors of imports."""

from __future__ import annotations

import importlib
import importlib.util
import traceback
from collections.abc import Iterable

import opwest
from opwest import __version__
from opwest.diagnostics import Diagnostic, Location, OpwestError


def fault(message: str, place: str | None = None, expected: str | None = None, hint: str | None = None) -> OpwestError:
    """Return an error about a file, or about a module in memory."""
    return OpwestError([Diagnostic("error", message, Location(place) if place else None, expected, hint)])


REPORT = f"report this error with the model file and the version, opwest {__version__}"
"""What to do about an internal error."""


def internal(error: BaseException, place: str | None) -> OpwestError | None:
    """Return the error of an exception of opwest's own code; None if a package that parses files has raised it.

    numpy raises for wrong operands of its caller: the innermost frame outside of numpy decides.
    """
    frames = [
        (str(frame.f_globals.get("__name__", "")), line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    frames = [one for one in frames if one[0].split(".")[0] != "numpy"]
    if not frames or frames[-1][0].split(".")[0] != opwest.__name__:
        return None
    module, line = frames[-1]
    where = f"{module}:{line}"
    text = first_line(error)
    kind = type(error).__name__
    shown = kind if text == kind else f"{kind}: {text}"
    return fault(f"internal error: {shown}, at {where}", place, hint=REPORT)


def first_line(error: BaseException) -> str:
    """Return the message of an exception in one line; its type if there is none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def require_packages(packages: Iterable[tuple[str, str]], purpose: str, install: str) -> None:
    """Raise OpwestError if one of the packages, (module, name on PyPI), is not installed or cannot be loaded."""
    missing, broken = [], []
    for module, name in packages:
        if importlib.util.find_spec(module) is None:
            missing.append(name)
            continue
        try:
            importlib.import_module(module)
        except (ImportError, OSError, RuntimeError) as error:
            broken.append(f"cannot load package '{name}': {first_line(error)}")
    if missing:
        what = " and ".join(missing)
        verb = "is" if len(missing) == 1 else "are"
        raise fault(f"{purpose} require {what}, which {verb} not installed", hint=install)
    if broken:
        raise fault("; ".join(broken), hint=install)

# SPDX-License-Identifier: Apache-2.0
"""Errors of imports."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable

from opwest import __version__
from opwest.base.diagnostics import Diagnostic, Location, OpwestError, first_line, frames_of, internal_error, is_own


def fault(message: str, place: str | None = None, expected: str | None = None, hint: str | None = None) -> OpwestError:
    """Return an error about a file, or about a module in memory."""
    return OpwestError([Diagnostic("error", message, Location(place) if place else None, expected, hint)])


REPORT = f"report this error with the model file and the version, opwest {__version__}"
"""What to do about an internal error."""


def internal(error: BaseException, place: str | None) -> OpwestError | None:
    """Return the error of an exception of opwest's own code; None if a package that parses files has raised it.

    numpy raises for wrong operands of its caller: the innermost frame outside of numpy decides.
    """
    modules = [module for module, _ in frames_of(error) if module.split(".")[0] != "numpy"]
    if not modules or not is_own(modules[-1]):
        return None
    return OpwestError([internal_error(error, Location(place) if place else None, hint=REPORT)])


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

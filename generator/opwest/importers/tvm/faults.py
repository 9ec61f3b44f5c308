# SPDX-License-Identifier: Apache-2.0
"""Errors of TVM as messages for users."""

from __future__ import annotations

from collections.abc import Iterable

from opwest.importers.faults import fault, require_packages
from opwest.system import commands

__all__ = ["APACHE_TVM", "fault", "last_line", "require", "require_version"]

INSTALL = commands.pip_install("opwest[tvm]")


def last_line(error: BaseException) -> str:
    """Return the last line of an exception: TVM's messages begin with a trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def require(packages: Iterable[tuple[str, str]]) -> None:
    """Raise OpwestError if one of the packages, (module, name on PyPI), is not installed or cannot be loaded."""
    require_packages(packages, "imports through TVM", INSTALL)
    require_version()


def require_version() -> None:
    """Raise OpwestError if TVM lacks the passes that the importer calls."""
    import tvm

    if not str(tvm.__version__).startswith(f"{_VERSION}."):
        raise fault(f"TVM {tvm.__version__} is installed", None, f"apache-tvm {_VERSION}", INSTALL)


_VERSION = "0.27"
APACHE_TVM = ("tvm", "apache-tvm")

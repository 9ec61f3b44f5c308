# SPDX-License-Identifier: Apache-2.0
"""A Relax module, the packages that its import requires, and TVM's errors."""

from __future__ import annotations

from typing import Any

from opwest.base import commands
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault, require_packages

_INSTALL = commands.pip_install("opwest[tvm]")
_VERSION = "0.27"


@dataclass(frozen=True)
class Source:
    """A Relax module before it is lowered, and the names of its inputs and outputs, in their order."""

    module: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Empty: numbered names."""


def last_line(error: BaseException) -> str:
    """Return the last line of an exception: TVM's messages begin with a trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def require_tvm() -> None:
    """Raise OpwestError if TVM is not installed, cannot be loaded, or lacks the passes that the importer calls."""
    require_packages([("tvm", "apache-tvm")], "imports through TVM", _INSTALL)
    import tvm

    if not str(tvm.__version__).startswith(f"{_VERSION}."):
        raise fault(f"TVM {tvm.__version__} is installed", None, f"apache-tvm {_VERSION}", _INSTALL)

# SPDX-License-Identifier: Apache-2.0
"""A Relax module, the packages that its import requires, and TVM's errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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


@contextlib.contextmanager
def reported(text: str) -> Iterator[None]:
    """Report an exception of TVM: its messages begin with a trace, the last line is the reason. Raises OpwestError."""
    try:
        yield
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[-1][:300] if lines else type(error).__name__
        raise fault(f"{text}: {reason}") from None


def require_tvm() -> None:
    """Raise OpwestError if TVM is not installed, cannot be loaded, or lacks the passes that the importer calls."""
    require_packages([("tvm", "apache-tvm")], "imports through TVM", _INSTALL)
    import tvm

    if not str(tvm.__version__).startswith(f"{_VERSION}."):
        raise fault(f"TVM {tvm.__version__} is installed", None, f"apache-tvm {_VERSION}", _INSTALL)

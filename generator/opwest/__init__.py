# SPDX-License-Identifier: Apache-2.0
"""opwest: compiled operators and a device manifest in, a complete Zephyr application out.

The functions do what the commands of the same names do. They return frozen results, and raise OpwestError with all
diagnostics. Each is imported on its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opwest.api.bundle import BundleResult, bundle
    from opwest.api.check import CheckResult, check
    from opwest.api.generate import GenerateResult, generate
    from opwest.api.import_model import ImportResult, import_model
    from opwest.api.quantise import QuantiseResult, quantise
    from opwest.api.report import ReportResult, report
    from opwest.api.run import RunResult, run
    from opwest.api.tune import TuneResult, tune
    from opwest.api.update import ProjectUpdate, UpdateResult, update
    from opwest.base.diagnostics import Diagnostic, Location, OpwestError

__version__ = "0.2.0"

_PLACES = {
    "opwest.api.bundle": ("bundle", "BundleResult"),
    "opwest.api.check": ("check", "CheckResult"),
    "opwest.api.generate": ("generate", "GenerateResult"),
    "opwest.api.import_model": ("import_model", "ImportResult"),
    "opwest.api.quantise": ("quantise", "QuantiseResult"),
    "opwest.api.report": ("report", "ReportResult"),
    "opwest.api.run": ("run", "RunResult"),
    "opwest.api.tune": ("tune", "TuneResult"),
    "opwest.api.update": ("update", "ProjectUpdate", "UpdateResult"),
    "opwest.base.diagnostics": ("Diagnostic", "Location", "OpwestError"),
}
"""The public names by their modules."""

__all__ = [
    "BundleResult",
    "CheckResult",
    "Diagnostic",
    "GenerateResult",
    "ImportResult",
    "Location",
    "OpwestError",
    "ProjectUpdate",
    "QuantiseResult",
    "ReportResult",
    "RunResult",
    "TuneResult",
    "UpdateResult",
    "bundle",
    "check",
    "generate",
    "import_model",
    "quantise",
    "report",
    "run",
    "tune",
    "update",
]


def __getattr__(name: str) -> object:
    """Import a public name on its first use."""
    for place, names in _PLACES.items():
        if name in names:
            import importlib

            value: object = getattr(importlib.import_module(place), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

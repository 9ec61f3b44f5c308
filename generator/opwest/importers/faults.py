# SPDX-License-Identifier: Apache-2.0
"""Errors of imports."""

from __future__ import annotations

from opwest.diagnostics import Diagnostic, Location, OpwestError


def fault(message: str, place: str | None = None, expected: str | None = None, hint: str | None = None) -> OpwestError:
    """Return an error about a file, or about a module in memory."""
    return OpwestError([Diagnostic("error", message, Location(place) if place else None, expected, hint)])

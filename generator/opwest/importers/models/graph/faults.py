# SPDX-License-Identifier: Apache-2.0
"""Refusals: what a model contains that cannot be imported, and what to do."""

from __future__ import annotations

from opwest.diagnostics import Location


class Unsupported(Exception):  # noqa: N818 - a reason, collected for all operators of a file
    """The reason why an operator cannot be imported; the caller adds the operator and the file."""

    def __init__(
        self, reason: str, expected: str | None = None, hint: str | None = None, location: Location | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.expected = expected
        self.hint = hint
        self.location = location
        """The place in a file of the user; None: in the model."""


class Damaged(Exception):  # noqa: N818
    """The reason why a file is not a model: contradictory or impossible content."""

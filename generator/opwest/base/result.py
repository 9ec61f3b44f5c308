# SPDX-License-Identifier: Apache-2.0
"""The result of a command: text for people, values for programs, an exit code."""

from __future__ import annotations

from typing import Any

from opwest.base.frozen_dataclass import dataclass


@dataclass(frozen=True)
class Result:
    """The result of a command, for people and for programs."""

    as_text: str
    as_json: Any
    status: int = 0
    """The exit code of a successful command."""
    is_content: bool = False
    """Whether the text is a file that was requested on standard output."""

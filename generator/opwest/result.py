# SPDX-License-Identifier: Apache-2.0
"""What a command returns: text for people, values for programs, an exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """What a command reports, for people and for programs."""

    as_text: str
    as_json: Any
    status: int = 0
    """The exit code where nothing is at fault."""

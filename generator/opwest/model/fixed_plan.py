# SPDX-License-Identifier: Apache-2.0
"""The offsets of buffers as the manifest gives them: `run.offsets`."""

from __future__ import annotations

from opwest.diagnostics import Location
from opwest.records import dataclass


@dataclass(frozen=True, slots=True)
class FixedOffset:
    """The offset of a buffer, bytes, as the manifest gives it."""

    buffer: str
    offset: int
    location: Location


@dataclass(frozen=True, slots=True)
class FixedPool:
    """The offsets that the manifest gives in one pool, or a table of them that the planning reads."""

    pool: str
    location: Location
    offsets: tuple[FixedOffset, ...] = ()
    table: str | None = None
    """The text of a table in MiniMalloc's format."""
    file: str = ""
    """The path of the table."""


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """The offsets that the manifest gives."""

    location: Location
    pools: tuple[FixedPool, ...]

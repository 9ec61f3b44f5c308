# SPDX-License-Identifier: Apache-2.0
"""The known properties of the Zephyr that builds an application."""

from __future__ import annotations

from opwest.records import dataclass
from opwest.zephyr.version import Version
from opwest.zephyr.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ZephyrOptions:
    """The requested boards, and the version and workspace of Zephyr; None if unknown."""

    boards: tuple[str, ...] = ()
    version: Version | None = None
    workspace: Workspace | None = None

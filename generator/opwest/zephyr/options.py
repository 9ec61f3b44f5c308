# SPDX-License-Identifier: Apache-2.0
"""What is known of the Zephyr that will build."""

from __future__ import annotations

from dataclasses import dataclass

from opwest.zephyr.version import Version
from opwest.zephyr.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ZephyrOptions:
    """What is known of the Zephyr that will build: boards asked for, its version, its workspace."""

    boards: tuple[str, ...] = ()
    version: Version | None = None
    workspace: Workspace | None = None

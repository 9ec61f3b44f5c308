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

    @property
    def known_version(self) -> Version | None:
        """The requested version, else that of the workspace."""
        return self.version or (self.workspace.version if self.workspace is not None else None)

# SPDX-License-Identifier: Apache-2.0
"""The names of microTVM's C interface of a model."""

from __future__ import annotations

from opwest.diagnostics import Location
from opwest.records import dataclass


@dataclass(frozen=True, slots=True)
class Tvmgen:
    """microTVM's C interface of a model: `tvmgen_<module>.h`."""

    module: str
    names: tuple[tuple[str, str], ...]
    """Inputs, outputs and devices whose member has another name, with that name."""
    pools: tuple[str, ...]
    """The members of struct tvmgen_<module>_workspace_pools; without one, the memory is static."""
    location: Location

    @property
    def prefix(self) -> str:
        """The prefix of functions and structures; that of macros in upper case."""
        return f"tvmgen_{self.module}"

    def size_macro(self, member: str) -> str:
        """The size of an input or output."""
        return f"{self.prefix}_{member}_SIZE".upper()

    def pool_macro(self, member: str) -> str:
        """The prefix of the macros of a pool of the caller."""
        return f"{self.prefix}_{member}_WORKSPACE_POOL".upper()

    @property
    def workspace_macro(self) -> str:
        """The size of the workspace."""
        return f"{self.prefix}_WORKSPACE_SIZE".upper()

    def member(self, name: str) -> str:
        """Return the member of an input, output or device."""
        return dict(self.names).get(name, name)

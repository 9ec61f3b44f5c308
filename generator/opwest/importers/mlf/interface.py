# SPDX-License-Identifier: Apache-2.0
"""microTVM's C interface of an import: the names in `tvmgen_<module>.h` for the manifest's key `compat.tvmgen`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwest.importers.faults import fault
from opwest.importers.mlf.draft import Draft
from opwest.importers.mlf.metadata import Metadata
from opwest.importers.mlf.ports import same_name
from opwest.importers.mlf.wrapper import Header
from opwest.manifest import writer
from opwest.records import dataclass


@dataclass(frozen=True)
class Interface:
    """The module, the members with other names than in the manifest, the pools of the caller."""

    module: str
    names: tuple[tuple[str, str], ...]
    pools: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the manifest."""
        yield "compat:"
        yield "  tvmgen:"
        yield f"    module: {writer.scalar(self.module)}"
        if self.names:
            yield "    names:"
            yield from (f"      {writer.scalar(name)}: {writer.scalar(member)}" for name, member in self.names)
        if self.pools:
            yield f"    workspace_pools: [{', '.join(map(writer.scalar, self.pools))}]"


def interface_of(draft: Draft, header: Header, metadata: Metadata, place: str) -> Interface:
    """Return the names of the interface, from the header, otherwise from metadata.json. Raises OpwestError."""
    if header.unsupported:
        raise fault(
            f"--compat tvmgen does not support {header.unsupported} in tvmgen_{metadata.module}.h",
            place,
            "structures of inputs, outputs, devices and workspaces",
        )
    inputs = header.inputs or tuple(port.name for port in metadata.inputs)
    outputs = header.outputs or tuple(port.name for port in metadata.outputs)
    groups = (
        ([one.name for one in draft.inputs], inputs),
        ([one.name for one in draft.outputs], outputs),
        (draft.devices, header.devices),
    )
    names = tuple(pair for own, members in groups for pair in _pairs(own, members))
    return Interface(metadata.module, names, header.pools)


def _pairs(own: Sequence[str], members: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names with the members of another name: those of equal position among the names without a member."""
    plain = ["".join(c if c.isascii() and c.isalnum() else "_" for c in member) for member in members]
    rest = [member for member in plain if not any(same_name(member, name) for name in own)]
    for name in own:
        if not any(same_name(member, name) for member in plain) and rest:
            yield name, rest.pop(0)

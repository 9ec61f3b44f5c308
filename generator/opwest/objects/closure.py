# SPDX-License-Identifier: Apache-2.0
"""Select the archive members that a linker would extract for a set of functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opwest.objects.facts import Member


def needed_members(members: Sequence[Member], roots: Iterable[str]) -> list[Member]:
    """Return the members that are linked for `roots`, in the order given.

    Loose objects are always linked. A member is extracted if it is the first to define a symbol that is
    still undefined. As with `ld`, weak references extract no member.
    """
    providers: dict[str, int] = {}
    for index, member in enumerate(members):
        for name in member.defined:
            current = providers.get(name)
            if current is None or (member.loose and not members[current].loose):
                providers[name] = index
    taken: set[int] = set()
    satisfied: set[str] = set()
    symbols = list(dict.fromkeys(roots))

    def take(index: int) -> None:
        taken.add(index)
        satisfied.update(members[index].defined)
        symbols.extend(members[index].undefined_strong)

    for index, member in enumerate(members):
        if member.loose:
            take(index)
    for name in symbols:  # grows during the loop
        provider = providers.get(name)
        if name not in satisfied and provider is not None and provider not in taken:
            take(provider)
    return [member for index, member in enumerate(members) if index in taken]

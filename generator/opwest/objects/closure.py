# SPDX-License-Identifier: Apache-2.0
"""Which members of archives a linker would take for a set of functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opwest.objects.facts import Member


def needed_members(members: Sequence[Member], roots: Iterable[str]) -> list[Member]:
    """Return the members that are linked for `roots`, in the order given.

    Loose objects are always linked. A member of an archive is taken for a symbol that is needed and
    not defined yet; the first that defines it wins. Weak references take no member, as with `ld`.
    """
    providers: dict[str, int] = {}
    for index, member in enumerate(members):
        for name in member.defined:
            current = providers.get(name)
            if current is None or (member.loose and not members[current].loose):
                providers[name] = index
    taken: set[int] = set()
    satisfied: set[str] = set()
    wanted = list(dict.fromkeys(roots))

    def take(index: int) -> None:
        taken.add(index)
        satisfied.update(members[index].defined)
        wanted.extend(members[index].undefined_strong)

    for index, member in enumerate(members):
        if member.loose:
            take(index)
    for name in wanted:  # grows while members are taken
        provider = providers.get(name)
        if name not in satisfied and provider is not None and provider not in taken:
            take(provider)
    return [member for index, member in enumerate(members) if index in taken]

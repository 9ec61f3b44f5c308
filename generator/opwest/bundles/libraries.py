# SPDX-License-Identifier: Apache-2.0
"""The libraries of a toolchain: which member defines a symbol, and functions of libm without errno."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from opwest.objects.facts import Member, ObjectError
from opwest.objects.inspect import read_member

_ARCHIVE, _HEADER = b"!<arch>\n", 60
_ERRNO = ("__errno", "errno", "__errno_location")
"""The symbols through which C libraries write errno: newlib, picolibc, glibc."""


class Library:
    """An archive with a symbol table; members are read on use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = path.read_bytes()
        self._places = dict(_symbol_table(self._data))
        self._members: dict[int, Member | None] = {}

    def member(self, symbol: str) -> Member | None:
        """Return the member that defines a symbol."""
        place = self._places.get(symbol)
        if place is None:
            return None
        if place not in self._members:
            self._members[place] = self._read(place)
        return self._members[place]

    def _read(self, place: int) -> Member | None:
        header = self._data[place : place + _HEADER]
        try:
            size = int(header[48:58])
            return read_member(header[:16].decode("ascii", "replace").rstrip(" /"), self._content(place, size))
        except (ValueError, ObjectError):
            return None

    def _content(self, place: int, size: int) -> bytes:
        return self._data[place + _HEADER : place + _HEADER + size]


def _symbol_table(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield symbols and the places of the headers of their members (the table of GNU ar); the first one counts."""
    if not data.startswith(_ARCHIVE) or data[8:24].rstrip() != b"/":
        return
    size = int(data[56:66])
    table = data[68 : 68 + size]
    (count,) = struct.unpack_from(">I", table)
    places = struct.unpack_from(f">{count}I", table, 4)
    names = table[4 + 4 * count :].split(b"\0")
    for name, place in reversed(list(zip(names, places, strict=False))):  # the first definition replaces later ones
        yield name.decode("ascii", "replace"), place


def _has(member: Member, symbol: str) -> bool:
    """Whether a member contains a symbol, also a local one."""
    return any(one.name == symbol and one.section != "undefined" for one in member.symbols)


class Libraries:
    """The libraries of a link, in order."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = libraries

    def find(self, symbol: str) -> Member | None:
        """Return the member that the linker takes for a symbol."""
        return next((found for one in self._libraries if (found := one.member(symbol)) is not None), None)

    def without_errno(self, needed: Iterable[str], own: Iterable[str]) -> dict[str, str]:
        """Return replacements of functions that write errno: the function that they call, by name.

        `needed` are undefined symbols, `own` those that the image defines.
        """
        found: dict[str, str] = {}
        seen = set(own)
        pending = list(needed)
        while pending:
            symbol = pending.pop()
            if symbol in seen:
                continue
            seen.add(symbol)
            member = self.find(symbol)
            if member is None:
                continue
            plain = f"__ieee754_{symbol}"
            if any(name in _ERRNO for name in member.undefined) and self.find(plain) is not None:
                found[symbol] = plain
                pending.append(plain)
            else:
                pending += member.undefined_strong
        return dict(sorted(found.items()))

    def path_to(self, wanted: str, roots: Iterable[str], defined: Mapping[str, object]) -> list[str] | None:
        """Return the shortest chain of symbols from one of `roots` to `wanted`, through members of libraries.

        `defined` are the symbols that objects define, where chains end.
        """
        queue = [[root] for root in dict.fromkeys(roots)]
        seen = {chain[0] for chain in queue}
        for chain in queue:  # grows during the loop
            member = self.find(chain[-1]) if chain[-1] not in defined else None
            if chain[-1] == wanted or (member is not None and _has(member, wanted)):
                return chain if chain[-1] == wanted else [*chain, wanted]
            if member is None:
                continue
            for name in member.undefined_strong:
                if name not in seen:
                    seen.add(name)
                    queue.append([*chain, name])
        return None

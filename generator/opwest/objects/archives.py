# SPDX-License-Identifier: Apache-2.0
"""Static libraries (`.a`): the members in order, GNU and BSD long names resolved."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Sequence

import arpy

from opwest.objects.facts import Member, ObjectError

_AGAIN = "the archive is damaged or incomplete: rebuild it or copy it again"
_HEADER = 60
_FILE_TYPES = (arpy.HEADER_BSD, arpy.HEADER_GNU, arpy.HEADER_NORMAL)
_ARPY_ERRORS = (arpy.ArchiveFormatError, arpy.ArchiveAccessError, ValueError, OverflowError, struct.error)
_SYMBOL_TABLES = ("__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64", "__.SYMDEF_64 SORTED")


def _damaged(message: str) -> ObjectError:
    return ObjectError(message, "a complete archive", _AGAIN)


def _headers(archive: arpy.Archive, size: int) -> Iterator[arpy.ArchiveFileHeader]:
    """Yield the headers of files and tables, each checked before the next is read.

    arpy accepts negative sizes, with which its position would never reach the end of the file.
    """
    position = 8
    while position < size:
        header = archive.read_next_header()
        if header is None:
            return
        start = header.file_offset
        if start is None or header.size < 0 or start < position + _HEADER:
            raise _damaged(f"invalid size of the archive member at byte {position}")
        if start + header.size > size:
            raise _damaged(
                f"truncated: the archive member at byte {position} ends at byte {start + header.size}, "
                f"the file has {size}"
            )
        yield header
        position = archive.next_header_offset


def archive_members(content: bytes) -> list[tuple[str, bytes]]:
    """Return the name and content of each member, symbol tables left out, in archive order."""
    members = []
    try:
        archive = arpy.Archive(fileobj=io.BytesIO(content))
        for header in _headers(archive, len(content)):
            if header.type not in _FILE_TYPES or header.name is None:
                continue
            # BSD pads long names with NUL bytes.
            name = header.name.rstrip(b"\0").decode("utf-8", "backslashreplace")
            if name in _SYMBOL_TABLES:
                continue
            start = header.file_offset or 0
            members.append((name, content[start : start + header.size]))
    except _ARPY_ERRORS as fault:
        raise _damaged(f"cannot read the archive: {fault}") from fault
    if not members:
        raise ObjectError(
            "the archive is empty", "an archive with at least one object", "add objects: `ar rcs lib.a *.o`"
        )
    return members


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

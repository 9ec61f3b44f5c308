# SPDX-License-Identifier: Apache-2.0
"""Map files of linkers: the object file of each input section in an image, as hostile input.

Formats: that of GNU ld (binutils, "Command-line Options", -M and -Map), and that of LLVM's lld (-Map).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.facts import ObjectError

_GNU: Final = "Linker script and memory map"
_LLD: Final = re.compile(r"\s+VMA\s+LMA\s+Size\s+Align\s+Out\s+In\s+Symbol")
_MOST_LINES: Final = 1 << 22
_PLACE: Final = r"0x([0-9a-f]{1,16})\s+0x([0-9a-f]{1,16})"
_OUTPUT: Final = re.compile(rf"(\S+)(?:\s+{_PLACE}(?:\s+load address.*)?)?")
_INPUT: Final = re.compile(rf" (\S+)(?:\s+{_PLACE}(?:\s+(\S.*))?)?")
_NEXT: Final = re.compile(rf"\s+{_PLACE}(?:\s+(\S.*))?")
_FILL: Final = re.compile(rf" \*fill\*\s+{_PLACE}\s*\S*")
_LLD_ROW: Final = re.compile(r"\s*([0-9a-f]{1,16})\s+([0-9a-f]{1,16})\s+([0-9a-f]{1,16})\s+\d+ (\s*)(\S.*)")
_LLD_INPUT: Final = re.compile(r"(.+):\((.+)\)")
_LLD_COLUMN: Final = 8
"""The width of the indentation of input sections; output sections have none, symbols twice this width."""
_MEMBER: Final = re.compile(r"(.+?)\(([^()]+)\)")


@dataclass(frozen=True, slots=True)
class Piece:
    """An input section in an image."""

    output: str
    """The output section."""
    name: str
    """The input section, such as `.text.main`."""
    address: int
    """In a relocatable image: the offset in the output section."""
    size: int
    file: str
    """The object file as in the map; of an archive: `PATH(MEMBER)`."""
    fill: int = 0
    """The bytes before it that the linker inserted for its alignment."""

    @property
    def archive(self) -> str:
        """The name of the archive without its directory; empty for an object file."""
        match = _MEMBER.fullmatch(self.file)
        return base_name(match[1]) if match else ""

    @property
    def member(self) -> str:
        """The name of the object file without its directory."""
        match = _MEMBER.fullmatch(self.file)
        return base_name(match[2] if match else self.file)


@dataclass(frozen=True, slots=True)
class LinkMap:
    """The content of a map file."""

    pieces: tuple[Piece, ...]
    """All input sections with bytes, in the order of the file."""
    outputs: Mapping[str, tuple[int, int]]
    """The address and the size of each output section."""


def base_name(path: str) -> str:
    """Return the last part of a path of any system."""
    return re.split(r"[/\\]", path)[-1]


def read_map(text: str) -> LinkMap:
    """Return the content of a map file. Raises ObjectError for another file."""
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise ObjectError(f"{len(lines)} lines, expected at most {_MOST_LINES}")
    if lines and _LLD.fullmatch(lines[0].rstrip()):
        return _read_lld(lines[1:])
    if _GNU not in lines:
        raise ObjectError("not a map file of GNU ld or lld")
    start = lines.index(_GNU)
    outputs: dict[str, tuple[int, int]] = {}
    pieces = tuple(_gnu_pieces(lines[start + 1 :], outputs))
    return LinkMap(pieces, outputs)


def _gnu_pieces(lines: list[str], outputs: dict[str, tuple[int, int]]) -> Iterator[Piece]:
    """Yield the input sections; a name that is too long for its column is in a line of its own."""
    output = ""
    pending: tuple[str, bool] | None = None
    fill = 0
    for line in lines:
        name, is_input = pending or ("", False)
        pending = None
        if not line.strip():
            continue
        if name and (match := _NEXT.fullmatch(line)):
            place, size, file = match.groups()
        elif match := _FILL.fullmatch(line):
            fill += int(match[2], 16)
            continue
        elif line[0] != " " and (match := _OUTPUT.fullmatch(line.rstrip())):
            name, place, size, file, is_input = match[1], match[2], match[3], None, False
            output, fill = name, 0
        elif line[0] == " " and line[1:2] not in (" ", "*") and (match := _INPUT.fullmatch(line.rstrip())):
            name, place, size, file = match.groups()
            is_input = True
        else:
            continue
        if place is None:
            pending = name, is_input
        elif not is_input:
            outputs.setdefault(name, (int(place, 16), int(size, 16)))
        elif file is not None and int(size, 16) and output != "/DISCARD/":
            yield Piece(output, name, int(place, 16), int(size, 16), file.rstrip(), fill)
            fill = 0


def _read_lld(lines: list[str]) -> LinkMap:
    output, end = "", 0
    outputs: dict[str, tuple[int, int]] = {}
    pieces: list[Piece] = []
    for line in lines:
        match = _LLD_ROW.fullmatch(line.rstrip())
        if match is None:
            continue
        address, size = int(match[1], 16), int(match[3], 16)
        if not match[4]:
            output, end = match[5], address
            outputs.setdefault(output, (address, size))
        elif len(match[4]) == _LLD_COLUMN and size and (parts := _LLD_INPUT.fullmatch(match[5])):
            fill = address - end if pieces and pieces[-1].output == output and address > end else 0
            pieces.append(Piece(output, parts[2], address, size, parts[1], fill))
            end = address + size
    return LinkMap(tuple(pieces), outputs)

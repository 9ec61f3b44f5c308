# SPDX-License-Identifier: Apache-2.0
"""Signatures of the functions that C and C++ sources define and headers declare, with the comments on parameters."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import PurePosixPath

from opwest.drafting.signatures import C_ORIGIN, HEADER_ORIGIN, Comment, Direction, Signature, from_types
from opwest.objects.c_preprocessor import PREDEFINED, Preprocessor, Reader
from opwest.objects.c_prototypes import Prototype, read_declarations
from opwest.objects.c_types import ANY_MODEL
from opwest.objects.facts import CFunction, CSource

_CPP_TYPE = re.compile(rb"\b(?:struct|union|class)\s+([A-Za-z_]\w*)\s*[{:]")
_STOP = re.compile(rb"[;}]")
_MAX_REMARK_LENGTH = 60
_UNREADABLE = "line {} is not readable without a compiler: compile it with -g, and draft its object"


_HEADER_FOLDERS = ("", "include", "inc", "Include")


def include_dirs(file: PurePosixPath, content: bytes, read: Reader) -> list[PurePosixPath]:
    """Return the directories of the headers that a file includes, as far as they are above the file or beside these."""
    above = [parent / name for parent in file.parents for name in _HEADER_FOLDERS]
    folders: list[PurePosixPath] = []
    while True:
        preprocessor = Preprocessor(read, folders)
        preprocessor.define(PREDEFINED)
        try:
            preprocessor.add(file, content)
        except RecursionError:
            return folders
        unfound = preprocessor.result().unfound
        others = [one for one in above if one not in folders]
        better = next((one for one in others if any(read(one / name) is not None for name in unfound)), None)
        if better is None:
            return folders
        folders.append(better)


def from_source(
    file: PurePosixPath, source: CSource, read: Reader, folders: Sequence[PurePosixPath] = ()
) -> dict[str, Signature]:
    """Return the signatures of the functions that a source defines, by name.

    `read` returns the content of headers, `folders` are their directories.

    Functions of branches that a default build leaves out are read alone, as all those in C++.
    """
    functions = {function.name: function for function in source.c_functions}
    if source.language == "C++":
        tags = {match[1].decode() for match in _CPP_TYPE.finditer(source.text)}
        text = "".join(f"typedef struct {tag} {tag};\n" for tag in sorted(tags))
        unsized = frozenset(chain(tags, (f"struct {tag}" for tag in tags)))
    else:
        text, unsized = source.text.decode("utf-8", "replace"), frozenset()
    known = _read(file, text, read, folders)
    absent = [function for name, function in functions.items() if name not in known]
    if absent:
        text = "\n".join([text, *map(_prototype, absent)])
        known = _read(file, text, read, folders)
    comments = _Comments(source.text)
    found: dict[str, Signature] = {}
    for name, function in functions.items():
        one = known.get(name)
        if one is None:
            found[name] = Signature(
                C_ORIGIN,
                unfit=f"line {function.line} is not readable without a compiler: compile it with -g, draft its object",
            )
        else:
            sizes = one.structures | unsized
            found[name] = from_types(C_ORIGIN, one.signature, one.shapes, comments.of(function.line), sizes)
    return found


def _read(file: PurePosixPath, text: str, read: Reader, folders: Sequence[PurePosixPath]) -> Mapping[str, Prototype]:
    return read_declarations({file: text.encode()}, read, ANY_MODEL, folders=folders).functions


def _prototype(function: CFunction) -> str:
    """Return the declaration of a function, as written."""
    nothing = "..." if function.parameters is None else "void"
    parameters = ", ".join(p.text for p in function.parameter_types) or nothing
    return f"{function.returns} {function.name}({parameters});"


def from_header(prototypes: Mapping[str, Prototype], contents: Mapping[str, bytes]) -> dict[str, Signature]:
    """Return the signatures of the functions that headers declare; `contents` are those of files by name."""
    comments = {name: _Comments(content) for name, content in contents.items()}
    found: dict[str, Signature] = {}
    for name, one in prototypes.items():
        above = comments[one.place.file].of(one.place.line) if one.place.file in comments else {}
        found[name] = from_types(HEADER_ORIGIN, one.signature, one.shapes, above, one.structures)
    return found


class _Comments:
    """The comments of a source; each byte is searched once, however many functions there are."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._lines = [0, *(match.end() for match in re.finditer(rb"\n", content))]
        self._starts = [match.start() for match in re.finditer(rb"/\*\*", content)]
        self._comment = cache(self._find_comment)

    def of(self, line: int) -> dict[str, Comment]:
        """Return the descriptions of parameters in the comment before a line, counted from 1, by name."""
        place = self._lines[min(line, len(self._lines)) - 1]
        index = bisect_left(self._starts, place) - 1
        if index < 0:
            return {}
        comment = self._comment(index)
        if comment is None or not comment[0] <= place <= comment[1]:  # not closed, or of another declaration
            return {}
        return comment[2]

    def _find_comment(self, index: int) -> tuple[int, int, dict[str, Comment]] | None:
        """Return the end of a comment, the end of the declaration after it, and its descriptions; None without an end.

        The search ends where the next comment of this form begins.
        """
        begin = self._starts[index]
        limit = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._content)
        end = self._content.find(b"*/", begin, limit)
        if end < 0:
            return None
        stop = _STOP.search(self._content, end, limit)
        comment = self._content[begin:end].decode("utf-8", "replace")
        return end + 2, stop.start() if stop else limit, _descriptions(comment)


_DIRECTIONS: dict[str, Direction] = {"in": "in", "out": "out", "in,out": "inout", "out,in": "inout", "inout": "inout"}


def _descriptions(comment: str) -> dict[str, Comment]:
    """Return the descriptions of parameters in a comment, by name."""
    plain = " ".join(re.sub(r"^\s*/?\*+", "", line).strip() or "\n" for line in comment.split("\n"))
    descriptions = {}
    for direction, name, words in re.findall(r"[@\\]param(?:\[([\w, ]*)\])?\s+(\w+)\s+([^@\\\n]+)", plain):
        comment = "".join(c for c in " ".join(words.split()) if c.isprintable())
        text = comment if len(comment) <= _MAX_REMARK_LENGTH else f"{comment[:_MAX_REMARK_LENGTH]}…"
        descriptions[name] = Comment(text, _DIRECTIONS.get(direction.replace(" ", "").lower()))
    return descriptions

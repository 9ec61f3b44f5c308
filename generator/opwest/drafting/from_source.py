# SPDX-License-Identifier: Apache-2.0
"""Signatures from C sources, with the comments of parameters (`@param`, `\\param`)."""

from __future__ import annotations

import re
from bisect import bisect_left

from opwest.drafting.signatures import STRUCT_DEVICE, Access, Parameter, Signature, finished
from opwest.model.types.dtypes import dtype_of_c
from opwest.objects.facts import CFunction, CParameter, CSource

ORIGIN = "C"
_DIMENSIONS = re.compile(r"\[(?:static)?(\d+)\]")
_STRUCT = re.compile(r"struct [A-Za-z_][A-Za-z0-9_]*")
_TAG = re.compile(rb"\b(?:struct|union)\s+([A-Za-z_]\w*)\s*\{")
_TYPEDEF = re.compile(rb"\}\s*([A-Za-z_]\w*)\s*;")
_STOP = re.compile(rb"[;}]")
_LONGEST_REMARK = 60


def from_source(source: CSource) -> dict[str, Signature]:
    """Return the signatures of the functions that a C source defines, by name."""
    text = _Text(source.text)
    return {function.name: _signature(function, text) for function in source.c_functions}


class _Text:
    """The structures and comments of a source; each byte is searched once, however many functions there are."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._lines = [0, *(found.end() for found in re.finditer(rb"\n", content))]
        self._starts = [found.start() for found in re.finditer(rb"/\*\*", content)]
        self._comments: dict[int, tuple[int, int, dict[str, str]] | None] = {}
        self._structs = {
            pattern: {found[1].decode() for found in re.finditer(pattern, content)} for pattern in (_TAG, _TYPEDEF)
        }

    def struct(self, base: str) -> str | None:
        """Return the tag or typedef of a structure that the source defines."""
        name = base.removeprefix("struct ").removeprefix("union ")
        return name if name in self._structs[_TAG if name != base else _TYPEDEF] else None

    def comments(self, line: int) -> dict[str, str]:
        """Return the descriptions of parameters in the comment before a line, counted from 1, by name."""
        place = self._lines[min(line, len(self._lines)) - 1]
        index = bisect_left(self._starts, place) - 1
        if index < 0:
            return {}
        if index not in self._comments:
            self._comments[index] = self._comment(index)
        found = self._comments[index]
        if found is None or not found[0] <= place <= found[1]:  # not closed, or the comment of another declaration
            return {}
        return found[2]

    def _comment(self, index: int) -> tuple[int, int, dict[str, str]] | None:
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


def _signature(function: CFunction, text: _Text) -> Signature:
    """Return the signature of a function."""
    unfit = None
    if function.parameters is None:
        unfit = "variable arguments"
    is_status = function.returns in ("void", "unknown") or _is_status(function.returns)
    value = None if is_status else _dtype(_unqualified(function.returns))
    if not is_status and value is None:
        unfit = unfit or f"return type {function.returns}, expected void or a number"
    comments = text.comments(function.line)
    parameters = []
    last = len(function.parameter_types) - 1
    for index, seen in enumerate(function.parameter_types):
        one = _parameter(seen, comments.get(seen.name), text, is_last=index == last)
        if isinstance(one, str):
            unfit = unfit or f"parameter {index + 1} is {one}"
        else:
            parameters.append(one)
    return finished(Signature(ORIGIN, tuple(parameters), function.returns != "void", value, unfit))


def _unqualified(written: str) -> str:
    return " ".join(word for word in written.split() if word not in ("const", "volatile"))


def _is_status(written: str) -> bool:
    """Whether a result may be a status; unknown typedefs are accepted."""
    name = _unqualified(written)
    if "*" in name or name.startswith(("struct ", "union ")):
        return False
    dtype = _dtype(name)
    return dtype in ("int32", "uint32") or (dtype is None and name not in ("long", "unsigned long", "long long"))


def _parameter(seen: CParameter, comment: str | None, source: _Text, *, is_last: bool) -> Parameter | str:
    """Return the parameter, or a description of an unsupported one."""
    text = seen.text.replace(" ", "")
    if ")(" in text:
        return f"a pointer to a function (`{seen.text}`)"
    stars = text.count("*")
    if stars > 1 or (stars == 1 and "[" in text and "(*" not in text):
        return f"a pointer to a pointer (`{seen.text}`)"
    if not seen.base:
        return f"not readable without a compiler (`{seen.text}`)"
    access: Access = "reads" if _points_to_const(seen.text) else "both"
    struct = source.struct(seen.base)
    if struct is not None and seen.pointers:
        remarks: tuple[str, ...] = (f"shape: [SIZE] and align: those of `{seen.base}`; drafted if compiled with -g",)
        return Parameter(seen.name, "tensor", "uint8", access=access, struct=struct, remarks=remarks, comment=comment)
    if seen.base.startswith(("struct ", "union ")):
        if seen.pointers == 0:
            return f"a structure (`{seen.text}`)"
        if not is_last or not _STRUCT.fullmatch(seen.base):
            return f"a pointer to a structure (`{seen.text}`)"
        const = "const " if _points_to_const(seen.text) else ""
        handle = STRUCT_DEVICE if seen.base == "struct device" else f"{const}{seen.base} *"
        return Parameter(seen.name, "device", handle=handle, comment=comment)
    dtype = _dtype(seen.base)
    remarks = () if dtype else (f"`{seen.base}` in C",)
    if seen.pointers == 0:
        return Parameter(seen.name, "scalar", dtype, remarks=remarks, comment=comment)
    return Parameter(seen.name, "tensor", dtype, _shape(text), access, remarks=remarks, comment=comment)


def _points_to_const(text: str) -> bool:
    return "const" in re.split(r"[*\[]", text)[0].split()


def _dtype(base: str) -> str | None:
    """Return the dtype of a C type; None if it depends on the target."""
    known = dtype_of_c(base)
    return known.name if known else None


def _shape(text: str) -> tuple[int, ...] | None:
    """Return the dimensions of an array; None if one is missing or not a number."""
    brackets = text.count("[")
    sizes = _DIMENSIONS.findall(text)
    if not brackets or "*" in text or len(sizes) != brackets:
        return None
    shape = tuple(int(size) for size in sizes)
    return shape if len(shape) <= 16 and all(0 < size < 1 << 31 for size in shape) else None


def _descriptions(comment: str) -> dict[str, str]:
    """Return the descriptions of parameters in a comment, by name."""
    plain = " ".join(re.sub(r"^\s*/?\*+", "", line).strip() or "\n" for line in comment.split("\n"))
    found = {}
    for name, words in re.findall(r"[@\\]param(?:\[[\w,]*\])?\s+(\w+)\s+([^@\\\n]+)", plain):
        comment = "".join(c for c in " ".join(words.split()) if c.isprintable())
        found[name] = comment if len(comment) <= _LONGEST_REMARK else f"{comment[:_LONGEST_REMARK]}…"
    return found

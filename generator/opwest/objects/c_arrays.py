# SPDX-License-Identifier: Apache-2.0
"""The constant arrays of a C or C++ source, as bytes: models and other files that a converter wrote as C.

A list of literals is one token, so that the 300,000 numbers of a model take a fraction of a second and no syntax tree.
The words around it are those of ISO C 6.7 and C++ [dcl.init]: attributes, macros and namespaces are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.c_expressions import evaluate
from opwest.objects.c_literals import ListError, bytes_of_list, bytes_of_strings, width_of_list
from opwest.objects.c_masking import RAW_STRING, TOKENS, Token, dead_regions
from opwest.objects.c_source import check_text
from opwest.objects.facts import ObjectError

_COMMENT = rb"//[^\n]*+|/\*.*?\*/"
_LITERALS = rb"(?:[\s\w,+-]++|'(?:[^'\\\n]|\\.)++'|\([\w\s+-]*+\)|" + _COMMENT + rb")*+"
"""Numbers, characters and casts, separated by commas and comments."""
_TOKEN = re.compile(rb"(?P<list>\{" + _LITERALS + rb"(?:\}|\Z))|" + RAW_STRING + TOKENS, re.VERBOSE | re.DOTALL)
_ALONE = re.compile(rb"\s*(?:[+-]?\d\w*+\s*,\s*){15,}+(?:[+-]?\d\w*+\s*)?", re.DOTALL)
"""A file that is a list without a declaration, as `xxd -i` prints for its standard input."""
_MAYBE = re.compile(rb"[=>\w]\s*\{|=\s*(?:u8|[uUL])?R?\"")
_DEFINE = re.compile(rb"#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]*)")
_INCLUDED = re.compile(rb"#[ \t]*(include|embed)[ \t]*[<\"]([^>\"\n]*)")
_ENDS = frozenset((b";", b"{", b"}"))
_MAX_CAST = 16
"""The most words of a cast before a string."""
_MAX_TOKENS = 1 << 20
"""The most words besides the lists."""
_WIDTHS = {
    **dict.fromkeys(b"char byte u8 s8 i8 uchar BYTE UINT8 INT8 uint8 int8 bool _Bool".split(), 1),
    **dict.fromkeys(b"short ushort WORD".split(), 2),
    **dict.fromkeys(b"int unsigned signed long uint DWORD".split(), 4),
}
"""Bytes of an element by the words of its type, for processors of 32 bits."""
_WIDTH = re.compile(rb"(?:.*\D)?(8|16|32|64)(?:_t)?\Z", re.DOTALL)
_OTHER_TYPES = frozenset(b"float double struct union enum class".split())
_CLASSES = frozenset((b"array", b"vector", b"span"))
_LENGTHS = ("len", "length", "size", "bytes", "sz", "datasize", "datalen")


@dataclass(frozen=True)
class CArray:
    """An array with an initialiser, or a pointer to a string."""

    name: str
    line: int
    content: bytes
    """In the order of a processor with the least significant byte first."""
    problem: str | None = None
    """Why the content is unknown, or why the array is no whole file: a clause."""
    way_out: str | None = None
    """What to do about it, in the imperative."""


@dataclass(frozen=True)
class _Head:
    """The declaration before an initialiser."""

    name: str
    width: int | None
    """Bytes of an element; None: the type is unknown."""
    size: int | None
    """The declared number of elements; None: that of the initialiser, or unknown."""
    start: int


def may_have_arrays(start: bytes) -> bool:
    """Whether a text, or its start, can contain an array with an initialiser, or be a list of numbers."""
    return b"\0" not in start and (_MAYBE.search(start) is not None or _ALONE.match(start) is not None)


def c_arrays(content: bytes) -> list[CArray]:
    """Return the arrays of integers and the strings of a source, in their order. Raises ObjectError if it is no text.

    Code after `#if 0` is left out. Arrays of other elements are not arrays of bytes, and are left out.
    """
    check_text(content, "C")
    if _ALONE.fullmatch(content):
        return [CArray("", 1, bytes_of_list(content, None))]
    tokens = _compiled(_tokens(content))
    numbers = list(_numbers(tokens))
    return list(_checked(_arrays(tokens, dict(numbers), content), numbers))


def _tokens(content: bytes) -> list[Token]:
    tokens: list[Token] = []
    for match in _TOKEN.finditer(content):
        if match.lastgroup not in ("space", "comment"):
            tokens.append(Token(match.lastgroup or "other", match.group(), match.start(), match.end()))
            if len(tokens) > _MAX_TOKENS:
                raise ObjectError(f"the source has more than {_MAX_TOKENS} words besides its arrays")
    return tokens


def _compiled(tokens: list[Token]) -> list[Token]:
    """Return the tokens that a compiler can read: not those after `#if 0`."""
    kept: list[Token] = []
    dead = sorted(dead_regions(tokens, cplusplus=True), reverse=True)
    end = 0
    for token in tokens:
        while dead and dead[-1][0] <= token.start:
            end = max(end, dead.pop()[1])
        if token.start >= end:
            kept.append(token)
    return kept


def _numbers(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """Yield the constants of a source by name: object-like macros, and variables with an initialiser."""
    words = (b"", b"", b"")
    for token in tokens:
        if token.kind == "directive":
            if definition := _DEFINE.match(token.text):
                value = evaluate([definition[2].decode("latin-1").strip()])
                if value is not None:
                    yield definition[1].decode("latin-1"), value
            continue
        words = (*words[1:], token.text)
        if words[1] == b"=" and words[2][:1].isdigit() and words[0][:1].isalpha():
            value = evaluate([words[2].decode("latin-1")])
            if value is not None:
                yield words[0].decode("latin-1"), value


def _arrays(tokens: Sequence[Token], numbers: Mapping[str, int], content: bytes) -> Iterator[CArray]:
    closings = _closings(tokens)
    end = line = counted = 0
    for index, token in enumerate(tokens):
        opens = token.text[:1] == b"{" or token.kind in ("string", "raw")
        if not opens or index < end or not index:
            continue
        head = _head(tokens, index, numbers)
        if head is None:
            continue
        line += content.count(b"\n", counted, head.start)
        counted = head.start
        if token.kind == "list":
            is_closed = token.text.endswith(b"}")
            found = _of_list(head, line + 1, token.text[1:-1]) if is_closed else _open(head, line + 1)
            if found is not None:
                yield found
        elif token.kind in ("string", "raw"):
            end = next((i for i in range(index, len(tokens)) if tokens[i].kind not in ("string", "raw")), len(tokens))
            if head.width in (None, 1):
                yield _sized(head, line + 1, bytes_of_strings([one.text for one in tokens[index:end]]), is_text=True)
        else:
            end = closings.get(index, len(tokens))
            is_closed = index in closings
            found = _nested(head, line + 1, tokens[index + 1 : end]) if is_closed else _open(head, line + 1)
            if found is not None:
                yield found


def _of_list(head: _Head, line: int, text: bytes) -> CArray | None:
    try:
        width = head.width or width_of_list(text)
        return _sized(head, line, bytes_of_list(text, width), width)
    except ListError as error:
        if head.width is None:  # of a type that need not be an integer
            return None
        return CArray(head.name, line, b"", f"has the element {error}", "declare it with literals")


def _nested(head: _Head, line: int, inner: Sequence[Token]) -> CArray | None:
    """Return the array of a list in braces that is no list of literals; None for other initialisers."""
    plain = [token for token in inner if token.kind != "directive"]
    for token in inner:
        if included := _INCLUDED.match(token.text) if token.kind == "directive" else None:
            file = included[2].decode("utf-8", "replace")
            return CArray(head.name, line, b"", f"has its content in the file '{file}'", f"opwest import {file}")
    if len(plain) < len(inner):
        return CArray(head.name, line, b"", "has preprocessor conditions in its list", "keep one of the branches")
    if [token.kind for token in plain] == ["list"]:  # std::array<uint8_t, 2> x = {{1, 2}}
        return _of_list(head, line, plain[0].text[1:-1])
    if plain and all(token.kind in ("string", "raw") for token in plain) and head.width in (None, 1):
        return _sized(head, line, bytes_of_strings([token.text for token in plain]), is_text=True)
    is_other = any(token.text in (b"{", b".") or token.kind in ("list", "string") for token in plain)
    if is_other or head.width is None or not plain:
        return None
    text = f"has elements that are no literals, near '{plain[0].text[:40].decode('utf-8', 'replace')}'"
    return CArray(head.name, line, b"", text, "declare it with literals")


def _open(head: _Head, line: int) -> CArray:
    return CArray(head.name, line, b"", "has no closing brace: the file is truncated", "fetch the file again")


def _sized(head: _Head, line: int, data: bytes, width: int = 1, *, is_text: bool = False) -> CArray:
    """Return an array whose declared size is compared with its initialiser. A string has a NUL that is no content."""
    count = len(data) // width
    if head.size is None or head.size == count or (is_text and head.size == count + 1):
        return CArray(head.name, line, data)
    text = f"is declared with {head.size} elements and has {count} in its list"
    hint = "fetch the file again; if the list is whole, remove the size from the declaration"
    return CArray(head.name, line, data, text, hint)


def _checked(arrays: Iterable[CArray], numbers: Iterable[tuple[str, int]]) -> Iterator[CArray]:
    """Yield arrays whose bytes are compared with the constants of their length, such as `x_len` of `xxd -i`.

    Each branch of a condition can have one.
    """
    plain: dict[str, list[tuple[str, int]]] = {}
    for name, value in numbers:
        plain.setdefault(_plain(name), []).append((name, value))
    for array in arrays:
        count = len(array.content)
        known = [one for ending in _LENGTHS for one in plain.get(_plain(array.name) + ending, ())]
        name, length = known[0] if known else ("", count)
        if array.problem is not None or count in {value for _, value in known} or length == count:
            yield array
        elif length < count and not any(array.content[length:]) and count - length < 16:  # words, alignment
            yield CArray(array.name, array.line, array.content[:length])
        else:
            text = f"has {count} bytes, and '{name}' is {length}"
            yield CArray(array.name, array.line, array.content, text, "fetch the file again, or correct the number")


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _closings(tokens: Sequence[Token]) -> dict[int, int]:
    """Return the index of the brace that closes the one at an index; none for braces without an end."""
    closings: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.text == b"{":
            opened.append(index)
        elif token.text == b"}" and opened:
            closings[opened.pop()] = index
    return closings


def _head(tokens: Sequence[Token], index: int, numbers: Mapping[str, int]) -> _Head | None:
    """Return the declaration of the initialiser at an index; None if it is none of an array."""
    if tokens[index].kind in ("string", "raw") and not _is_value(tokens, index):
        return None
    first = index
    while first:
        before = tokens[first - 1]
        # Each word is in one head: that of the next `=`.
        is_end = before.text in _ENDS or before.kind in ("directive", "list")
        if is_end or (before.text == b"=" and first != index):
            break
        first -= 1
    words = _without_arguments(tokens[first:index])
    has_value = bool(words) and words[-1].text == b"="
    words = words[:-1] if has_value else words
    return _of_class(words, numbers) or (_of_declarator(words, numbers) if has_value else None)


def _is_value(tokens: Sequence[Token], index: int) -> bool:
    """Whether a string follows `=`, or `=` and a cast."""
    if tokens[index - 1].text == b")":
        words = [token.text for token in tokens[max(0, index - _MAX_CAST) : index]]
        return b"=" in words and words[len(words) - words[::-1].index(b"=") :][:1] == [b"("]
    return tokens[index - 1].text == b"="


def _without_arguments(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens outside of parentheses and of C++ attributes in double brackets."""
    kept: list[Token] = []
    depth = 0
    attribute = False
    for index, token in enumerate(tokens):
        following = tokens[index + 1].text if index + 1 < len(tokens) else b""
        if token.text == b"[" == following and not depth:
            attribute = True
        if token.text == b"(" or (attribute and token.text == b"["):
            depth += 1
        if depth == 0:
            kept.append(token)
        if token.text == b")" or (attribute and token.text == b"]"):
            depth = max(0, depth - 1)
            attribute = attribute and depth > 0
    return kept


def _of_class(words: Sequence[Token], numbers: Mapping[str, int]) -> _Head | None:
    """Return the declaration of a std::array<T, N>."""
    for index, token in enumerate(words[:-3]):
        if token.text in _CLASSES and words[index + 1].text == b"<":
            end = next((i for i in range(index, len(words)) if words[i].text == b">"), None)
            if end is None or end + 1 >= len(words) or words[end + 1].kind != "word":
                return None
            inner = [word.text for word in words[index + 2 : end]]
            comma = inner.index(b",") if b"," in inner else len(inner)
            name = words[end + 1]
            is_other, width = _width(inner[:comma])
            size = _size(inner[comma + 1 :], numbers)
            return None if is_other else _Head(name.text.decode("latin-1"), width, size, name.start)
    return None


def _of_declarator(words: Sequence[Token], numbers: Mapping[str, int]) -> _Head | None:
    """Return the declaration of `T x[N]`, or of `char *x`."""
    texts = [word.text for word in words]
    opening = texts.index(b"[") if b"[" in texts else 0
    if opening:
        if b"]" not in texts[opening:] or words[opening - 1].kind != "word":
            return None
        closing = texts.index(b"]", opening)
        if texts[closing + 1 : closing + 2] == [b"["]:  # an array of arrays
            return None
        if opening == 1:  # struct {...} x[]
            return None
        name, size = words[opening - 1], _size(texts[opening + 1 : closing], numbers)
        is_other, width = _width(texts[: opening - 1])
        if is_other or b"*" in texts[:opening]:  # const char *const names[] are pointers
            return None
        return _Head(name.text.decode("latin-1"), width, size, name.start)
    if b"*" not in texts or words[-1].kind != "word":
        return None
    is_other, width = _width(texts[:-1])
    if width != 1 or is_other:
        return None
    return _Head(words[-1].text.decode("latin-1"), width, None, words[-1].start)


def _width(words: Sequence[bytes]) -> tuple[bool, int | None]:
    """Return whether the elements of a type are no integers, and their bytes; None for an unknown type."""
    if _OTHER_TYPES & set(words):
        return True, None
    if b"char" in words:
        return False, 1
    if words.count(b"long") == 2:
        return False, 8
    widths = [_WIDTHS[word] for word in words if word in _WIDTHS]
    if widths:
        return False, min(widths)
    sizes = [int(match[1]) // 8 for word in words if (match := _WIDTH.match(word))]
    return False, sizes[-1] if sizes else None


def _size(words: Sequence[bytes], numbers: Mapping[str, int]) -> int | None:
    texts = [word.decode("latin-1") for word in words]
    return evaluate([str(numbers.get(text, text)) for text in texts]) if texts else None

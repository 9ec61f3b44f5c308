# SPDX-License-Identifier: Apache-2.0
"""The bytes of initialisers in C: lists of integers and characters, and string literals (ISO C 6.4.4, 6.4.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_PART = 1 << 20
"""Bytes of text whose elements are in memory at once."""
_COMMENT_OR_CHARACTER = re.compile(rb"'((?:[^'\\\n]|\\.)++)'|//[^\n]*+|/\*.*?\*/", re.DOTALL)
_ELEMENT = re.compile(rb"(?:\(\s*[A-Za-z_][\w\s]*\)\s*)*\(?\s*([+-]?)\s*(?:\([A-Za-z_][\w\s]*\)\s*)*(\w+)\s*\)?")
_INTEGER = re.compile(rb"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uUlLzZ]*")
_ARDUINO = re.compile(rb"B([01]{1,8})")
"""The macros of Arduino's binary.h."""
_NAMED = {b"true": 1, b"false": 0, b"NULL": 0}
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\r?\n)|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"e": b"\x1b"}
_RAW = re.compile(rb"(?:u8|[uUL])?R\"([^()\\\s]{0,16})\((.*)\)\1\"\Z", re.DOTALL)
_MAX_DIGITS = 80
_WIDTHS = (1, 2, 4, 8)


class ListError(Exception):
    """An element is no literal, or does not fit. The text is the element."""


def width_of_list(text: bytes) -> int:
    """Return the least number of bytes that holds each element of a list. Raises ListError."""
    values: set[int] = set()
    for part in _parts(_plain(text)):
        values.update(map(_value, set(part)))
    return next((w for w in _WIDTHS if all(-(1 << 8 * w - 1) <= value < 1 << 8 * w for value in values)), _WIDTHS[-1])


def bytes_of_list(text: bytes, width: int | None) -> bytes:
    """Return the bytes of a list of literals, the least significant byte of each first. Raises ListError.

    `width`: the bytes of an element; None: as many as the largest one requires.
    """
    width = width_of_list(text) if width is None else width
    made = bytearray()
    known: dict[bytes, bytes] = {}
    for part in _parts(_plain(text)):
        for element in {*part} - known.keys():
            known[element] = _stored(element, width)
        made += b"".join([known[element] for element in part])
        if len(known) > _PART:
            known.clear()
    return bytes(made)


def _plain(text: bytes) -> bytes:
    """Return a list without comments, with characters as numbers."""
    return _COMMENT_OR_CHARACTER.sub(_replaced, text) if b"'" in text or b"/" in text else text


def _replaced(match: re.Match[bytes]) -> bytes:
    if match[1] is None:
        return b" "
    value = _unescaped(match[1])
    return b"%d" % value[0] if len(value) == 1 else b"invalid"


def _parts(text: bytes) -> Iterator[list[bytes]]:
    """Yield the elements of a list, a part at a time. The comma after the last one is optional."""
    text = text.rstrip()
    text = text.removesuffix(b",")
    start = 0
    while start < len(text):
        comma = text.find(b",", start + _PART)
        end = comma if comma >= 0 else len(text)
        yield text[start:end].split(b",")
        start = end + 1


def _value(element: bytes) -> int:
    match = _ELEMENT.fullmatch(element.strip())
    word = match[2] if match is not None else b""
    number, named = _INTEGER.fullmatch(word) if len(word) <= _MAX_DIGITS else None, _NAMED.get(word)
    if number is not None:
        digits = number[1]
        is_octal = digits[:1] == b"0" and digits.isdigit() and len(digits) > 1
        value = int(digits, 8) if is_octal else int(digits, 0)
    elif binary := _ARDUINO.fullmatch(word):
        value = int(binary[1], 2)
    elif named is not None:
        value = named
    else:
        raise ListError(f"'{_shown(element)}'")
    return -value if match is not None and match[1] == b"-" else value


def _stored(element: bytes, width: int) -> bytes:
    value = _value(element)
    if not -(1 << 8 * width - 1) <= value < 1 << 8 * width:
        raise ListError(f"'{_shown(element)}', which has more than {8 * width} bits")
    return (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def _shown(element: bytes) -> str:
    text = " ".join(element.decode("utf-8", "replace").split())
    return text if len(text) <= 40 else f"{text[:37]}..."


def bytes_of_strings(literals: Sequence[bytes]) -> bytes:
    """Return the bytes of adjacent string literals, without the NUL that ends them in C."""
    return b"".join(map(_of_string, literals))


def _of_string(literal: bytes) -> bytes:
    if raw := _RAW.match(literal):
        return raw[2]
    return _unescaped(literal[literal.index(b'"') + 1 : -1] if literal.endswith(b'"') else literal)


def _unescaped(text: bytes) -> bytes:
    return _ESCAPE.sub(_character, text) if b"\\" in text else text


def _character(match: re.Match[bytes]) -> bytes:
    hexadecimal, octal, short, long, line, letter = match.groups()
    if hexadecimal is not None:
        return bytes([int(hexadecimal[-2:], 16)])
    if octal is not None:
        return bytes([int(octal, 8) & 255])
    if short is not None or long is not None:
        point = int(short or long, 16)
        return chr(point).encode("utf-8", "replace") if point < 0x110000 else b"?"
    return b"" if line is not None else _LETTERS.get(letter, letter)

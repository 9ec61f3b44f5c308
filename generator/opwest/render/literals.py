# SPDX-License-Identifier: Apache-2.0
"""Values and texts in the syntax of C, CMake, Kconfig and YAML: all escaping is done here."""

from __future__ import annotations

import json
import re

from opwest.model.types.dtypes import DType, round_to_float32

_PLAIN = re.compile(r"[ !#->@-\[\]-~]*")
"""Text of printable ASCII without characters that a literal escapes: " ? and the backslash."""


def c_string(text: str) -> str:
    """Return a C string literal of the UTF-8 bytes of `text`."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    out = []
    for byte in text.encode("utf-8"):
        char = chr(byte)
        if char in '"\\?':  # ? because of trigraphs
            out.append("\\" + char)
        elif 0x20 <= byte < 0x7F:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")  # always three digits: a digit can follow
    return '"' + "".join(out) + '"'


def c_comment(text: str) -> str:
    """Return `text` on one line, so that it cannot end a comment or splice its line."""
    printable = text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(printable.replace("\\", "/").replace("@", "(at)").split())
    for mark in ("*/", "/*", "??"):  # ?? begins a trigraph
        while mark in line:
            line = line.replace(mark, f"{mark[0]} {mark[1]}")
    return line


def c_integer(value: int, dtype: DType) -> str:
    """Return an integer constant of at least the type's width."""
    if value == -(1 << 63):
        return "INT64_MIN"
    if dtype.size == 8:
        return f"UINT64_C({value})" if dtype.kind == "uint" else f"INT64_C({value})"
    if value == -(1 << 31):
        return "INT32_MIN"
    return f"{value}U" if dtype.kind == "uint" else str(value)


def c_float(value: float, dtype: DType) -> str:
    """Return a floating constant with exactly the value in the type."""
    text = repr(round_to_float32(value) if dtype.size == 4 else value)
    if not any(mark in text for mark in ".en"):
        text += ".0"
    return text + ("f" if dtype.size == 4 else "")


def c_number(value: int | float, dtype: DType) -> str:
    """Return a constant for a scalar argument."""
    return c_float(float(value), dtype) if dtype.is_float else c_integer(int(value), dtype)


def cmake_string(text: str) -> str:
    """Return a quoted CMake argument."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace(";", "\\;")
    return '"' + " ".join(escaped.split("\n")) + '"'


def kconfig_value(value: str | int) -> str:
    """Return a value for a .conf file: y, n, m and numbers as they are, other text quoted."""
    if isinstance(value, int) or value in ("y", "n", "m") or re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+", value):
        return str(value)
    return f'"{value}"'


def kconfig_string(text: str) -> str:
    """Return a quoted Kconfig string."""
    return '"' + " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"').replace("$", "") + '"'


def yaml_string(text: str) -> str:
    """Return a quoted YAML string in ASCII: JSON syntax, except for characters that need two JSON escapes."""
    escaped = (json.dumps(char)[1:-1] if ord(char) < 0x10000 else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(escaped)}"'

# SPDX-License-Identifier: Apache-2.0
"""C that Nim's compiler generates, with the macros of nimbase.h replaced: `N_CDECL(NI32, scale)(...)` is a function."""

from __future__ import annotations

import re
from typing import Final

_HEADER: Final = b'#include "nimbase.h"'
_FUNCTION: Final = re.compile(rb"\bN_[A-Z]+\(([^(),]+), *(\w+)\)(?=\()")
_LINKAGE: Final = re.compile(rb"\bN_LIB_[A-Z]+ ")
_TYPES: Final = re.compile(rb"\bN([IU])(8|16|32|64)\b")
_FLOATS: Final = {rb"\bNF32\b": b"float", rb"\bNF(64)?\b": b"double", rb"\bNIM_BOOL\b": b"bool"}

NIM_TYPES: Final = frozenset("NI NI8 NI16 NI32 NI64 NU NU8 NU16 NU32 NU64 NF NF32 NF64 NIM_BOOL NIM_CHAR".split())
"""The typedefs of nimbase.h."""


def plain_nim(content: bytes) -> bytes:
    """Return a source with Nim's macros replaced, each on its line; another source as it is."""
    if _HEADER not in content:
        return content
    text = _LINKAGE.sub(b"", _FUNCTION.sub(rb"\1 \2", content))
    text = _TYPES.sub(lambda match: (b"u" if match[1] == b"U" else b"") + b"int" + match[2] + b"_t", text)
    for pattern, name in _FLOATS.items():
        text = re.sub(pattern, name, text)
    return text

# SPDX-License-Identifier: Apache-2.0
"""Detection of LLVM IR by content, without LLVM."""

from __future__ import annotations

import re
from typing import Literal

from opwest.objects.llvm.facts import LlvmError

MAX_FILE = 1 << 30
BITCODE = b"BC\xc0\xde"
WRAPPER = b"\xde\xc0\x17\x0b"
_LOOKED_AT = 1 << 16
# What a line of a module can begin with; a C source or a JSON file begins with none of these.
_FIRST_LINE = re.compile(
    rb"(?:source_filename\s*=|target\s+(?:triple|datalayout)\s*=|module\s+asm\b|attributes\s+#\d+\s*="
    rb"|define\s[^;{]*[@%]|declare\s[^;{]*@|define\s*$|declare\s*$"
    rb"|@(?:\"[^\"]*\"|[-\w$.]+)\s*=|%(?:\"[^\"]*\"|[-\w$.]+)\s*=\s*type\b|\$(?:\"[^\"]*\"|[-\w$.]+)\s*=\s*comdat\b"
    rb"|![-\w$.]+\s*=)"
)


def looks_like_ir(content: bytes) -> Literal["bitcode", "text"] | None:
    """Return the kind of IR in the content of a file; None for other files."""
    head = content[:_LOOKED_AT]
    if head.startswith((BITCODE, WRAPPER)):
        return "bitcode"
    if b"\0" in head:
        return None
    if head.startswith(b"; ModuleID"):
        return "text"
    for line in head.split(b"\n"):
        plain = line.strip()
        if plain and not plain.startswith(b";"):
            return "text" if _FIRST_LINE.match(plain) else None
    return None


def not_ir(content: bytes) -> LlvmError:
    """Return the error for content that is not IR."""
    if not content.strip():
        return LlvmError("the file is empty", "LLVM bitcode or textual IR")
    if content.startswith(b"\x7fELF"):
        return LlvmError("not LLVM IR: this is an ELF object", "LLVM bitcode or textual IR", "compile with -emit-llvm")
    return LlvmError("not LLVM IR", "bitcode, starting with 'BC', or textual IR", "compile with -emit-llvm")

# SPDX-License-Identifier: Apache-2.0
"""Attributes in a C or C++ source that change the calling convention of a function.

Sources: GCC manual, "x86 Function Attributes", "ARM Function Attributes", "RISC-V Function Attributes", "AArch64
Function Attributes"; clang's "Attributes in Clang", "Calling Conventions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwest.objects.cmask import Token, source_tokens

_NAMES = frozenset(
    "ms_abi sysv_abi pcs regparm sseregparm fastcall stdcall thiscall vectorcall regcall pascal interrupt "
    "interrupt_handler aarch64_vector_pcs aarch64_sve_pcs riscv_vector_cc preserve_most preserve_all preserve_none "
    "swiftcall swiftasynccall intel_ocl_bicc".split()
)
_KEYWORDS = frozenset("__fastcall _fastcall __stdcall _stdcall __thiscall __vectorcall __regcall __pascal".split())
_ATTRIBUTES = ("__attribute__", "__attribute")
_ANY = re.compile("|".join((*_NAMES, *_KEYWORDS)).encode())
_ENDS = (";", "{", "}")
_DEFINE = re.compile(r"#[ \t]*define[ \t]+(\w+)(?!\()\b(.*)", re.DOTALL)


def conventions_of(content: bytes, *, cplusplus: bool) -> dict[str, str]:
    """Return the attributes that change calling conventions, by function; also those of object-like macros."""
    if not _ANY.search(content):
        return {}
    macros: dict[str, str] = {}
    found: dict[str, str] = {}
    statement: list[Token] = []
    for token in source_tokens(content, cplusplus=cplusplus):
        if token.kind == "directive":
            definition = _DEFINE.match(token.text.decode("utf-8", "replace"))
            if definition is not None:
                body = source_tokens(definition[2].encode(), cplusplus=cplusplus)
                for attribute in _attributes(body, {}):
                    macros[definition[1]] = attribute
        elif token.text.decode("utf-8", "replace") in _ENDS:
            for attribute in _attributes(statement, macros):
                for function in _declared(statement):
                    found.setdefault(function, attribute)
            statement = []
        else:
            statement.append(token)
    return found


def _attributes(statement: Sequence[Token], macros: dict[str, str]) -> Iterator[str]:
    """Yield the attributes of a declaration that change the convention, as written without underscores."""
    words = [token.text.decode("utf-8", "replace") for token in statement]
    for index, word in enumerate(words):
        if word in _KEYWORDS:
            yield word
        elif word in macros:
            yield macros[word]
        elif word.strip("_") in _NAMES and _is_in_attribute(words, index):
            argument = words[index + 2] if words[index + 1 : index + 2] == ["("] and len(words) > index + 2 else ""
            yield word.strip("_") + (f"({argument})" if argument and argument != ")" else "")


def _is_in_attribute(words: Sequence[str], index: int) -> bool:
    """Whether a word is in the parentheses of `__attribute__`, or in `[[...]]`."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += (words[at] in (")", "]")) - (words[at] in ("(", "["))
        if depth == -2:
            return words[at] == "[" or (at > 0 and words[at - 1] in _ATTRIBUTES)
    return False


def _declared(statement: Sequence[Token]) -> Iterator[str]:
    """Yield the names before parentheses, outside of parentheses: the function of a declaration."""
    depth = 0
    before = ""
    for token in statement:
        word = token.text.decode("utf-8", "replace")
        if word == "(" and depth == 0 and before.isidentifier() and before not in _ATTRIBUTES:
            yield before
        depth += (word in ("(", "[")) - (word in (")", "]"))
        before = word

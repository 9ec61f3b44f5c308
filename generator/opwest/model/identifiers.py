# SPDX-License-Identifier: Apache-2.0
"""Names that are valid identifiers in both C and C++."""

from __future__ import annotations

import re

from opwest.diagnostics import Diagnostics, Location

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# ISO C11 6.4.1, C23's additions, and GNU C's `asm` and `typeof`.
_C = """alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern
false float for goto if inline int long nullptr register restrict return short signed sizeof static
static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void volatile
while""".split()
# ISO C++20 5.11, with the alternative tokens.
_CPP = """and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept
const_cast consteval constinit decltype delete dynamic_cast explicit export friend mutable namespace new
noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires static_cast
template this throw try typeid typename using virtual wchar_t xor xor_eq""".split()
# Macros predefined by compilers in GNU mode, or defined by common headers of the C library.
_MACROS = "unix linux i386 arm mips sparc NULL EOF errno stdin stdout stderr assert offsetof".split()

# <errno.h> (ISO C 7.31.3 reserves E and a digit or capital) and <stdint.h>, which emitted files include.
_HEADER_MACROS = re.compile(
    r"E[0-9A-Z][0-9A-Z_]*|U?INT(8|16|32|64|MAX|PTR|_LEAST\d+|_FAST\d+)_(C|MIN|MAX)|U?INT(MAX|PTR)_(MIN|MAX)"
    r"|(SIZE|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX)\Z"
)

KEYWORDS = frozenset(_C) | frozenset(_CPP)
MACROS = frozenset(_MACROS)


def fault_of_name(name: str) -> str | None:
    """Return why `name` cannot be used in C or C++, None if it can."""
    if not _IDENTIFIER.match(name):
        return "is not a C identifier"
    if name in KEYWORDS:
        return "is a keyword of C" if name in _C else "is a keyword of C++"
    if name in MACROS or _HEADER_MACROS.fullmatch(name):
        return "is a macro of the compiler or the C library"
    if name.startswith("__") or re.match(r"_[A-Z]", name):
        return "is reserved for the compiler and the C library"
    return None


def check_name(kind: str, name: str, location: Location | None, faults: Diagnostics) -> bool:
    """Report an invalid name; return whether it is valid. `kind` is the named entity: "operator"."""
    fault = fault_of_name(name)
    if fault is None:
        return True
    suggestion = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_") or "x"
    if suggestion[0].isdigit() or fault_of_name(suggestion) is not None:
        suggestion = f"{kind[0]}_{suggestion}"
    faults.error(
        f"{kind} name {name!r} {fault}",
        location,
        expected="letters, digits and _, beginning with a letter, other than a keyword of C or C++",
        hint=f"use a name such as {suggestion!r}",
    )
    return False


def is_symbol(name: str) -> bool:
    """Return whether `name` is a linker symbol that C code can refer to."""
    return bool(_IDENTIFIER.match(name)) and name not in KEYWORDS

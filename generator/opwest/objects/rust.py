# SPDX-License-Identifier: Apache-2.0
"""Names in the output of rustc: mangled symbols, and the members that a staticlib takes from other crates.

A staticlib contains the objects of every crate that the user's crate depends on, the standard library included.
Sources: rustc-dev-guide, "Symbol mangling"; the Rust Reference, "Linkage"; RFC 2603 (v0 mangling).
"""

from __future__ import annotations

import re
from typing import Final

from opwest.objects.facts import Member

# v0: `_RNvCs…`. Legacy: that of C++, with a hash of 64 bits as the last part.
_MANGLED = re.compile(r"_R(?:\d+)?[A-Z]|_ZN.*17h[0-9a-f]{16}E")
# `core-120cbae4e86ec454.core.c1f1a4ba060b9bfa-cgu.0.rcgu.o`; C of compiler_builtins: `45c91108d938afe8-muldi3.o`.
_FROM_CRATE = re.compile(r"(?P<crate>\w+)-[0-9a-f]{16}\.|[0-9a-f]{16}-\w+\.o$")
STANDARD_LIBRARY: Final = frozenset(
    """addr2line adler adler2 alloc cfg_if compiler_builtins core gimli hashbrown libc memchr miniz_oxide object
    panic_abort panic_unwind proc_macro rustc_demangle rustc_std_workspace_alloc rustc_std_workspace_core
    rustc_std_workspace_std std std_detect test unwind""".split()
)
"""The crates of Rust's standard library, from 1.63 to 1.95."""


_WITHOUT_SYSTEM = frozenset("alloc compiler_builtins core rustc_std_workspace_alloc rustc_std_workspace_core".split())
RUNTIME_FUNCTIONS: Final = frozenset("rust_begin_unwind rust_eh_personality rust_panic".split())
"""Unmangled functions of the standard library, and of crates that replace parts of it (`#[panic_handler]`)."""
PERSONALITY_HINT: Final = (
    'compile with optimisation, or define it: #[no_mangle] pub extern "C" fn rust_eh_personality() {}'
)
HOSTED: Final = "part of Rust's standard library, which needs an operating system"
HOSTED_HINT: Final = "compile the crate with #![no_std], a #[panic_handler] and -C panic=abort"


def is_rust_symbol(symbol: str) -> bool:
    """Return whether a symbol is the mangled name of a Rust function or variable."""
    return _MANGLED.match(symbol) is not None


def is_standard(member: Member) -> bool:
    """Return whether a member of an archive belongs to Rust's standard library."""
    return _crate(member) is not None


def is_hosted(member: Member) -> bool:
    """Return whether a member belongs to the part of Rust's standard library that needs an operating system."""
    return _crate(member) not in {None, *_WITHOUT_SYSTEM}


def _crate(member: Member) -> str | None:
    """Return the crate of the standard library that a member of an archive is from; None for other members."""
    found = None if member.loose else _FROM_CRATE.match(member.name)
    if found is None:
        return None
    crate = str(found["crate"] or "compiler_builtins")
    return crate if crate in STANDARD_LIBRARY else None

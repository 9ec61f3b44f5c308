# SPDX-License-Identifier: Apache-2.0
"""The effects of functions of newlib, from the members that a call of them links."""

from pathlib import Path

from opwest.bundles.libraries import Libraries, Library

LEAVES = {
    **dict.fromkeys(("_malloc_r", "_calloc_r", "_realloc_r", "_free_r", "_sbrk_r", "_Balloc"), "heap"),
    **dict.fromkeys(("abort", "exit", "_exit", "raise", "_kill_r", "longjmp", "__assert_func"), "control"),
    **dict.fromkeys(("_write_r", "_read_r", "_lseek_r", "_close_r", "_fflush_r", "__sinit", "write", "_write"), "io"),
    **dict.fromkeys(("_gettimeofday", "_gettimeofday_r", "_times", "_times_r", "_getpid_r"), "nondeterminism"),
}
ERRNO = ("errno", "__errno")
CONSTANT = {"_impure_ptr", "impure_data", "_PathLocale", "__global_locale", "__fdlib_version", "numempty"}
"""Data that functions of the table only read, or write as errno: the structure of a thread, the locale, options."""
CHECKS = ("__chk_fail", "__stack_chk_fail")
"""Ends of the program after memory is damaged."""
ASSERTED = ("__assert_func",)
"""newlib asserts that its allocation in dtoa succeeds."""


def derived(folder: Path, names: frozenset[str]) -> dict[str, set[str]]:
    """Return the effects of functions: leaves that their members reach, and written data."""
    libraries = Libraries([Library(folder / "libc.a"), Library(folder / "libm.a")])
    return {name: _derived(libraries, name) for name in sorted(names) if libraries.find(name) is not None}


def _derived(libraries: Libraries, name: str) -> set[str]:
    found: set[str] = set()
    seen: set[str] = set()
    pending = [name]
    while pending:
        symbol = pending.pop()
        if symbol in seen or symbol in ERRNO or symbol in CHECKS or (symbol != name and symbol in ASSERTED):
            continue
        seen.add(symbol)
        if symbol != name and symbol in LEAVES:
            found.add(LEAVES[symbol])
            continue
        member = libraries.find(symbol)
        if member is None:
            continue
        if set(member.stateful_symbols) - CONSTANT:
            found.add("state")
        pending += member.undefined_strong
    return found

# SPDX-License-Identifier: Apache-2.0
"""Providers of undefined symbols: the compiler's support library and the C libraries.

The lists in `libc/` were extracted from the libraries that their headers name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Final

from opwest.base.frozen_dataclass import dataclass
from opwest.base.resources import script

LIBCS: Final = ("host", "picolibc", "newlib", "minimal")
LINKER: Final = "linker"
UNWIND_PREFIX: Final = "__aeabi_unwind_cpp_pr"
"""Arm's personality routines, to which unwind tables refer (EHABI, section 7)."""
_LINKER_DEFINED: Final = frozenset(["_GLOBAL_OFFSET_TABLE_"])
# GCC internals, "Routines for floating point emulation", and the run-time ABI of Arm (IHI0043), section 5.1.2.
_SOFT_FLOAT: Final = re.compile(
    r"__aeabi_(?:c?[fd](?:add|sub|rsub|mul|div|neg|r?cmp\w*)|[fd]2(?:u?(?:iz|lz)|[fdh]\w*)|h2[fd]\w*|u?[il]2[fd])"
    r"|__gnu_[dfh]2[dfh]_\w+|__(?:add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|cmp|unord|powi)[hsdtx]f[23]"
    r"|__fix(?:uns)?[hsdtx]f[sdt]i|__float(?:un)?[sdt]i[hsdtx]f|__(?:extend|trunc)[hbsdtx]f[hbsdtx]f2"
)
_SUPPORT_MACHINES: Final = ("arm", "riscv", "x86-64", "i386", "aarch64")


@cache
def listed_symbols(name: str) -> dict[str, frozenset[str]]:
    """Return the names of a list by section; those before the first section header under ''."""
    text = (Path(__file__).parent / "libc" / name).read_text(encoding="utf-8")
    sections: dict[str, set[str]] = {"": set()}
    current = ""
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("["):
            current = line.strip("[]")
            sections[current] = set()
        else:
            sections[current].update(line.split())
    return {section: frozenset(names) for section, names in sections.items()}


def provider_of(symbol: str, machine: str, libc: str) -> str | None:
    """Return the provider of a symbol: `libgcc`, `picolibc`, `picolibc (libm)`, `linker`; None if there is none.

    An unknown machine has no support library.
    """
    if libc not in LIBCS:
        raise ValueError(f"unknown libc {libc!r}; known: {', '.join(LIBCS)}")
    if symbol in _LINKER_DEFINED:
        return LINKER
    if machine in _SUPPORT_MACHINES and symbol in listed_symbols(f"libgcc-{machine}.txt")[""]:
        return "libgcc"
    library = listed_symbols(f"{libc}.txt")
    if symbol in library["libm"]:
        return f"{libc} (libm)"
    return libc if symbol in library["libc"] else None


def is_soft_float(symbol: str) -> bool:
    """Whether a symbol is a function of software floating point in the compiler's support library."""
    return _SOFT_FLOAT.fullmatch(symbol) is not None


def uses_libm(symbol: str) -> bool:
    """Whether a symbol belongs to libm in any libc."""
    return any(symbol in listed_symbols(f"{libc}.txt")["libm"] for libc in LIBCS)


EFFECTS: Final = ("state", "heap", "io", "nondeterminism", "control", "fenv")
"""`stateful: true` permits the first one, `uses` the others."""
EFFECT_EXPECTED: Final = "an operator whose results depend on its arguments only"


@dataclass(frozen=True, slots=True)
class HiddenEffect:
    """A called function, or an instruction, with effects that the manifest does not permit."""

    name: str
    effects: tuple[str, ...]
    text: str
    """What was found, without the name of the object."""
    hint: str
    remedy: str
    """What a manifest can add so that the object is accepted."""


def hidden_effects(
    functions: Iterable[str], libcs: Iterable[str], permitted: Collection[str] = frozenset()
) -> list[HiddenEffect]:
    """Return the functions with effects, in any of the C libraries `libcs`, that are not permitted."""
    return [HiddenEffect(*effect) for effect in script("effects").hidden(functions, tuple(libcs), permitted)]


def is_float_code(symbol: str) -> bool:
    """Whether a symbol is a function of libm or of soft float."""
    return is_soft_float(symbol) or uses_libm(symbol)


def float_calls(symbols: Iterable[str]) -> tuple[str, ...]:
    """Return the functions of libm and of soft float among symbols, sorted."""
    return tuple(sorted(name for name in set(symbols) if is_float_code(name)))

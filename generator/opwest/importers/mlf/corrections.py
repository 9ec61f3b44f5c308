# SPDX-License-Identifier: Apache-2.0
"""The C sources to write: without TVM's wrapper, and with TVM's errors corrected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opwest.importers.mlf.c_text import functions
from opwest.records import dataclass

_SWALLOWED = re.compile(r"\bswitch\s*\(\s*!\s*status\s*\)")
_WRAPPER_HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]tvmgen_\w+\.h[>\"][^\n]*\n", re.MULTILINE)
_SHIFT = re.compile(r"(\(int64_t\)\(+)(\d{1,3}) \+ (\d{1,3})(?=\))")
_LARGEST_SHIFT = 63

_PRAGMAS = """\
/* What compilers say of TVM's code, and nobody can mend by hand. */
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wpointer-sign"
#pragma GCC diagnostic ignored "-Wmissing-braces"
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#else
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#endif
#endif
"""


@dataclass(frozen=True)
class Mended:
    """A source, and remarks about it and its changes."""

    text: str
    remarks: tuple[str, ...]


def mend(name: str, text: str, glue: Iterable[str], head: str, guards: Sequence[str]) -> Mended:
    """Return the source to write, after a comment and preprocessor lines, and without `glue` functions."""
    remarks = []
    places = [f for n, f in functions(text).items() if n in set(glue)]
    for function in sorted(places, key=lambda f: -f.start):
        text = text[: function.start] + text[function.end :]
    text = _WRAPPER_HEADER.sub("", text)
    text, swallowed = _SWALLOWED.subn("switch (status)", text)
    if swallowed:
        remarks.append(
            f"{name}: {swallowed} times `switch (!status)` became `switch (status)`: TVM let errors of CMSIS-NN pass"
        )
    text, mended, largest = _cap_shifts(text)
    if mended:
        remarks.append(
            f"{name}: {mended} shifts of 64-bit numbers by up to {largest} bits, undefined in C, became shifts by "
            f"{_LARGEST_SHIFT}: both stand for a factor so small that the result is 0"
        )
    return Mended(f"{head}{''.join(guards)}{_PRAGMAS}{text}", tuple(remarks))


def _cap_shifts(text: str) -> tuple[str, int, int]:
    """Return the text with requantisation shifts of at most 63, the number of larger ones, and the largest.

    TVM rounds `(x * m + (1 << (s - 1))) >> s` with s = shift + 31, and |x * m| < 2^62: it is 0 for s >= 63.
    """
    found: list[int] = []

    def capped(match: re.Match[str]) -> str:
        amount = int(match[2]) + int(match[3])
        if amount <= _LARGEST_SHIFT or match[3] != "31":
            return match[0]
        found.append(amount)
        return f"{match[1]}{_LARGEST_SHIFT - 31} + 31"

    text = _SHIFT.sub(capped, text)
    return text, len(found), max(found, default=0)

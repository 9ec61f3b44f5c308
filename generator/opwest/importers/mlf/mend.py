# SPDX-License-Identifier: Apache-2.0
"""The C sources as they are written: without TVM's wrapper, and without what TVM got wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opwest.importers.mlf.c_text import functions

_SWALLOWED = re.compile(r"\bswitch\s*\(\s*!\s*status\s*\)")
_WRAPPER_HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]tvmgen_\w+\.h[>\"][^\n]*\n", re.MULTILINE)
_SHIFT = re.compile(r">>\s*\(\(int64_t\)\(?\s*(\d{1,3})\s*(?:\+\s*(\d{1,3})\s*)?\)?\)")

_PRAGMAS = """\
/* What compilers say of TVM's code, and nobody can mend by hand. */
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-braces"
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
    """A source, and what was done to it or should be known of it."""

    text: str
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]


def mend(name: str, text: str, glue: Iterable[str], head: str, guards: Sequence[str]) -> Mended:
    """Return a source as it is written, with a comment and preprocessor lines before, and without `glue` functions."""
    remarks, warnings = [], []
    places = [f for n, f in functions(text).items() if n in set(glue)]
    for function in sorted(places, key=lambda f: -f.start):
        text = text[: function.start] + text[function.end :]
    text = _WRAPPER_HEADER.sub("", text)
    text, swallowed = _SWALLOWED.subn("switch (status)", text)
    if swallowed:
        remarks.append(
            f"{name}: {swallowed} times `switch (!status)` became `switch (status)`: TVM let errors of CMSIS-NN pass"
        )
    undefined = [m for m in _SHIFT.finditer(text) if int(m[1]) + int(m[2] or 0) >= 63]
    if undefined:
        line = text.count("\n", 0, undefined[0].start()) + 1
        warnings.append(
            f"{name}: {len(undefined)} requantisations shift 64-bit numbers by 63 bits or more, the first by "
            f"{_amount(undefined[0])} in line {line}: undefined in C, and processors differ in what they make of it"
        )
    return Mended(f"{head}{''.join(guards)}{_PRAGMAS}{text}", tuple(remarks), tuple(warnings))


def _amount(match: re.Match[str]) -> int:
    return int(match[1]) + int(match[2] or 0)

# SPDX-License-Identifier: Apache-2.0
"""Functions of libm and of soft float, which make firmware large and slow where a processor lacks an FPU."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opwest.objects.providers import uses_libm

_SOFT_FLOAT = re.compile(
    r"__aeabi_(?:[fd](?:add|sub|rsub|mul|div|neg|cmp\w+)|[fdh]2\w+|u?[il]2[fd]|c[fd]r?cmp\w+)"
    r"|__(?:add|sub|mul|div|neg|cmp|eq|ne|l[te]|g[te]|unord|powi)[hsdxt]f[23]"
    r"|__(?:fix|fixuns)[hsdxt]f[sdt]i|__(?:float|floatun)[sdt]i[hsdxt]f|__(?:extend|trunc)[hbsdxt]f[hbsdxt]f2"
)
"""The functions of the run-time ABI for Arm (IHI 0043, 4.1.2), and of libgcc (GCC Internals, soft float)."""


def is_float_code(symbol: str) -> bool:
    """Whether a symbol is a function of libm or of soft float."""
    return _SOFT_FLOAT.fullmatch(symbol) is not None or uses_libm(symbol)


def float_calls(symbols: Iterable[str]) -> tuple[str, ...]:
    """Return the functions of libm and of soft float among symbols, sorted."""
    return tuple(sorted(name for name in set(symbols) if is_float_code(name)))

# SPDX-License-Identifier: Apache-2.0
"""Functions of libm and of soft float, which make firmware large and slow where a processor lacks an FPU."""

from __future__ import annotations

from collections.abc import Iterable

from opwest.objects.providers import is_soft_float, uses_libm


def is_float_code(symbol: str) -> bool:
    """Whether a symbol is a function of libm or of soft float."""
    return is_soft_float(symbol) or uses_libm(symbol)


def float_calls(symbols: Iterable[str]) -> tuple[str, ...]:
    """Return the functions of libm and of soft float among symbols, sorted."""
    return tuple(sorted(name for name in set(symbols) if is_float_code(name)))

# SPDX-License-Identifier: Apache-2.0
"""Why a function of the files is not an operator of a draft: in its comments, and in notes of `opwest init`.

To skip the helpers of another compiler, add a row to `HELPERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opwest.base.diagnostics import Diagnostics
from opwest.drafting.signatures import Signature
from opwest.model.types.c_names import is_symbol
from opwest.objects.compilers import RUNTIME_FUNCTIONS, Origin, is_rust_symbol
from opwest.objects.library_symbols import LIBCS, provider_of
from opwest.objects.linkability import RUNTIME_SYMBOLS

_SHOWN = 8


def _is_of_system(symbol: str) -> bool:
    return symbol == "main" or symbol in RUNTIME_SYMBOLS | RUNTIME_FUNCTIONS or symbol.startswith("__")


def _is_of_c_library(symbol: str) -> bool:
    return any(provider_of(symbol, "", libc) for libc in LIBCS)


HELPERS: tuple[tuple[Callable[[str], bool], str], ...] = (
    (is_rust_symbol, 'a Rust function: declare it #[no_mangle] pub extern "C"'),
    (lambda symbol: symbol.startswith("_Z"), 'a C++ function: declare it extern "C"'),
    (_is_of_system, "a function of the system, the compiler or the runtime"),
    (lambda symbol: not is_symbol(symbol), "not a C identifier"),
    (_is_of_c_library, "a function of the C library"),
)
"""Functions that no user calls: whether a symbol is one, and the reason. The first row that matches is used."""


def reason_to_skip(symbol: str, signature: Signature | None, caller: str | None, origin: Origin | None) -> str | None:
    """Return the reason why a function is not an operator; None for an operator.

    `caller` is the unit that calls it, `origin` its compiler if the function has a convention of that one.
    """
    if origin is not None:
        return _foreign(symbol, origin)
    for matches, reason in HELPERS:
        if matches(symbol):
            return reason
    if signature is not None and signature.unfit:
        return signature.unfit
    return f"a helper, called by {caller}" if caller else None


def _foreign(symbol: str, origin: Origin) -> str | None:
    """Return the reason why a function of a known compiler is not an operator, or None."""
    if origin.convention is None:
        return f"a function of {origin.tool} (its object {origin.evidence}): only {origin.tool}'s runtime can call it"
    if origin.symbol != symbol:
        return f"a part of {origin.tool}'s {origin.symbol!r}, which is the operator"
    return None if is_symbol(symbol) else "not a C identifier"


def note_skipped(faults: Diagnostics, left_out: Mapping[str, str], unlisted: Mapping[str, str]) -> None:
    """Name the functions that are not operators, and the files that are not listed: one note for each reason."""
    for what, skipped in (("functions", left_out), ("files", unlisted)):
        reasons: dict[str, list[str]] = {}
        for name, reason in skipped.items():
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            one = what.removesuffix("s") if len(names) == 1 else what
            faults.note(f"skipped {one} {', '.join(names[:_SHOWN])}{more}: {reason}")

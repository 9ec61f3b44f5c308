# SPDX-License-Identifier: Apache-2.0
"""Licence expressions of SPDX (SPDX 2.3, annex D), and the identifiers of the SPDX licence list."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

from opwest.diagnostics import nearest
from opwest.model.context import Context

EXPECTED: Final = "an SPDX licence expression, such as Apache-2.0, MIT OR BSD-3-Clause, or LicenseRef-NAME"
_LIST: Final = Path(__file__).with_name("spdx_licences.txt")
_TOKEN = re.compile(r"\s*(\(|\)|[A-Za-z0-9.+-]+)")
_OWN = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")


@functools.cache
def known() -> dict[str, str]:
    """Return the identifiers of licences and exceptions, by their lower-case form."""
    lines = _LIST.read_text(encoding="ascii").splitlines()
    return {line.lower(): line for line in lines if line and not line.startswith("#")}


def identifiers(expression: str) -> list[str]:
    """Return the licences of a valid expression, without exceptions, in order."""
    tokens = [token for token in _tokens(expression) if token not in "()"]
    after = {index + 1 for index, token in enumerate(tokens) if token == "WITH"}
    names = [t for i, t in enumerate(tokens) if t not in ("AND", "OR", "WITH") and i not in after]
    return list(dict.fromkeys(names))


def normal(expression: str) -> str:
    """Return an expression with the spelling of the list. Raises ValueError with the fault and a hint."""
    tokens = [_operator(token) for token in _tokens(expression)]
    depth, wants_name = 0, True
    for index, token in enumerate(tokens):
        if token == "(" and wants_name:
            depth += 1
        elif token == ")" and not wants_name and depth:
            depth -= 1
        elif token in ("AND", "OR", "WITH") and not wants_name:
            wants_name = True
        elif token not in ("AND", "OR", "WITH", "(", ")") and wants_name:
            tokens[index] = _name(token)
            wants_name = False
        else:
            raise ValueError(f"unexpected {token!r}", None)
    if depth or wants_name:
        raise ValueError("incomplete licence expression", None)
    return " ".join(tokens).replace("( ", "(").replace(" )", ")")


def model_licence(context: Context) -> str | None:
    """Return the licence of the model that the manifest declares; report an invalid one."""
    given = context.manifest.get("license")
    if not isinstance(given, str):
        return None
    try:
        return normal(given)
    except ValueError as error:
        fault, hint = error.args
        where = context.manifest.value_location("license")
        context.faults.error(f"'license': {fault}", where, expected=EXPECTED, hint=hint)
        return None


def _tokens(expression: str) -> list[str]:
    found, end = [], 0
    while end < len(expression.rstrip()):
        token = _TOKEN.match(expression, end)
        if token is None:
            raise ValueError(f"unexpected {expression[end:].strip()[:20]!r}", None)
        found.append(token[1])
        end = token.end()
    return found


def _operator(token: str) -> str:
    """Return an operator in upper case, other tokens as they are."""
    return token.upper() if token.upper() in ("AND", "OR", "WITH") else token


def _name(token: str) -> str:
    if _OWN.fullmatch(token):
        return token
    later = "+" if token.endswith("+") and token.lower() not in known() else ""
    spelled = known().get(token.lower().removesuffix("+") if later else token.lower())
    if spelled is None:
        raise ValueError(f"unknown licence {token!r}", nearest(token, known().values()))
    return spelled + later

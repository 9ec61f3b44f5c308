# SPDX-License-Identifier: Apache-2.0
"""Licence expressions of SPDX (SPDX 2.3, annex D), and the identifiers of the SPDX licence list."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

from opwest.base.diagnostics import similar
from opwest.model.inputs.context import Context

EXPECTED: Final = "an SPDX licence expression, such as Apache-2.0, MIT OR BSD-3-Clause, or LicenseRef-NAME"
_LIST: Final = Path(__file__).with_name("spdx_licences.txt")
_BEFORE_EXCEPTIONS: Final = "# exceptions\n"
_TOKEN = re.compile(r"\s*(\(|\)|[A-Za-z0-9.+-]+)")
_OWN = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")


@functools.cache
def known() -> tuple[dict[str, str], dict[str, str]]:
    """Return the identifiers of licences, and those of exceptions, each by its lower-case form."""
    parts = _LIST.read_text(encoding="ascii").split(_BEFORE_EXCEPTIONS)
    lists = [[line for line in part.splitlines() if line and not line.startswith("#")] for part in parts]
    licences, exceptions = ({name.lower(): name for name in names} for names in lists)
    return licences, exceptions


def identifiers(expression: str) -> list[str]:
    """Return the licences of a valid expression, without exceptions, in order."""
    tokens = [token for token in _tokens(expression) if token not in "()"]
    after = {index + 1 for index, token in enumerate(tokens) if token == "WITH"}
    names = [t for i, t in enumerate(tokens) if t not in ("AND", "OR", "WITH") and i not in after]
    return list(dict.fromkeys(names))


def normal(expression: str) -> str:
    """Return an expression with the spelling of the list. Raises ValueError with the fault and a hint."""
    tokens = [_operator(token) for token in _tokens(expression)]
    depth, before = 0, "("
    for index, token in enumerate(tokens):
        is_name = token not in ("AND", "OR", "WITH", "(", ")")
        is_complete = before in ("licence", "exception", ")")
        if is_name and before == "WITH":
            tokens[index], before = _exception(token), "exception"
        elif is_name and not is_complete:
            tokens[index], before = _licence(token), "licence"
        elif token == "(" and not is_complete and before != "WITH":
            depth, before = depth + 1, token
        elif token == ")" and is_complete and depth:
            depth, before = depth - 1, token
        elif (token in ("AND", "OR") and is_complete) or (token == "WITH" and before == "licence"):
            before = token
        else:
            raise ValueError(f"unexpected {token!r}", None)
    if depth or before not in ("licence", "exception", ")"):
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
    tokens, end = [], 0
    while end < len(expression.rstrip()):
        token = _TOKEN.match(expression, end)
        if token is None:
            raise ValueError(f"unexpected {expression[end:].strip()[:20]!r}", None)
        tokens.append(token[1])
        end = token.end()
    return tokens


def _operator(token: str) -> str:
    """Return an operator in upper case, other tokens as they are."""
    return token.upper() if token.upper() in ("AND", "OR", "WITH") else token


def _licence(token: str) -> str:
    licences, exceptions = known()
    if _OWN.fullmatch(token):
        return token
    later = "+" if token.endswith("+") and token.lower() not in licences else ""
    name = token.removesuffix(later)
    if name.lower() in licences:
        return licences[name.lower()] + later
    if name.lower() in exceptions:
        raise ValueError(f"{name!r} is an exception", f"write it after a licence: GPL-2.0-only WITH {name}")
    raise ValueError(f"unknown licence {token!r}", _hint(token, licences))


def _exception(token: str) -> str:
    licences, exceptions = known()
    exception = exceptions.get(token.lower())
    if exception is None:
        fault = f"{token!r} is not an exception" if token.lower() in licences else f"unknown exception {token!r}"
        raise ValueError(fault, _hint(token, exceptions))
    return exception


def _hint(token: str, names: dict[str, str]) -> str:
    """Return a similar name of the list; it is too long to print."""
    if token.upper() in ("NONE", "NOASSERTION"):
        return "omit the key"
    if token.startswith("LicenseRef-"):
        return "letters, digits, '.' and '-' follow LicenseRef-"
    return similar(token, names.values()) or "https://spdx.org/licenses lists the identifiers"

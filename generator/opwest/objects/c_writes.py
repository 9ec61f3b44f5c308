# SPDX-License-Identifier: Apache-2.0
"""The parameters that a C function writes, as far as the text of its body shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from opwest.objects.c_masking import tokens_from
from opwest.objects.facts import CFunction, CSource

Written = Literal["out", "inout"]
"""Whether the first access of the body writes."""
_Access = Literal["write", "update", "read"]

_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_FILLS: Final = ("memcpy", "memmove", "memset")
"""Functions that write the memory of their first argument."""
_UPDATES: Final = ("++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


def written_parameters(source: CSource, function: CFunction) -> dict[str, Written]:
    """Return the pointers whose memory a function writes in plain sight, by name.

    Copies of a pointer, casts and other functions are not followed: a parameter that is not in the result may be
    written as well.
    """
    names = {parameter.name for parameter in function.parameter_types if parameter.pointers and parameter.name}
    body = _body(source, function) if names else []
    accesses: dict[str, list[_Access]] = {}
    for index, token in enumerate(body):
        is_member = body[max(0, index - 1) : index] == ["."] or body[max(0, index - 2) : index] == ["-", ">"]
        if token in names and not is_member:
            access = _access(body, index)
            if access is not None:
                accesses.setdefault(token, []).append(access)
    return {
        name: "out" if seen[0] == "write" else "inout"
        for name, seen in accesses.items()
        if "write" in seen or "update" in seen
    }


def _body(source: CSource, function: CFunction) -> list[str]:
    """Return the tokens of the body of a function; none if it is not found.

    Tokens are read from the line of the function to the end of its body: a source can have thousands of functions.
    """
    begin = sum(len(line) + 1 for line in source.text.split(b"\n", function.line - 1)[: function.line - 1])
    tokens = (
        token.text.decode("utf-8", "replace")
        for token in tokens_from(source.text, begin, cplusplus=source.language == "C++")
        if token.kind != "directive"
    )
    before = ""
    for token in tokens:
        if before == function.name and token == "(":
            break
        before = token
    _inside(tokens, "(")
    return _inside(tokens, "{") if next((token for token in tokens if token in ("{", ";")), None) == "{" else []


def _inside(tokens: Iterator[str], opening: str) -> list[str]:
    """Return the tokens up to the bracket that closes `opening`, which was read before."""
    found, depth = [], 1
    for token in tokens:
        depth += (token == opening) - (token == _CLOSING[opening])
        if depth == 0:
            break
        found.append(token)
    return found


def _end(tokens: Sequence[str], opening: int) -> int:
    """Return the index after the bracket that closes the one at `opening`."""
    open_, depth = tokens[opening], 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index] == open_) - (tokens[index] == _CLOSING[open_])
        if depth == 0:
            return index + 1
    return len(tokens)


def _access(body: Sequence[str], index: int) -> _Access | None:
    """Return how the body uses the memory that the pointer at `index` refers to; None if only the pointer is used."""
    before, after = list(body[max(0, index - 2) : index]), list(body[index + 1 : index + 3])
    if before[-1:] == ["*"]:
        start, end = index - 1, index + 1
        while list(body[end : end + 2]) in (["+", "+"], ["-", "-"]):
            end += 2
        if start and body[start - 1] == "(" and body[end : end + 1] == [")"]:
            start, end = start - 1, end + 1
        kind = _kind(body, start, end)
        return kind if kind != "read" or _is_unary(body, index - 1) else None  # otherwise a multiplication
    if after[:1] == ["["] or after == ["-", ">"]:
        if before[-1:] == ["&"] and _is_unary(body, index - 1):
            return None  # an address
        kind = _kind(body, index, _postfix(body, index + 1))
        return "update" if kind == "write" and after == ["-", ">"] else kind  # other members keep their values
    return "write" if before[-1:] == ["("] and before[0] in _FILLS else None


def _kind(body: Sequence[str], start: int, end: int) -> _Access:
    """Return the access of the expression from `start` to `end`."""
    text = "".join(_operators(body, end))
    if text.startswith("=") and not text.startswith("=="):
        return "write"
    is_stepped = list(body[max(0, start - 2) : start]) in (["+", "+"], ["-", "-"])
    return "update" if text.startswith(_UPDATES) or is_stepped else "read"


def _operators(body: Sequence[str], start: int) -> Iterator[str]:
    """Yield the characters of the operator at `start`."""
    for token in body[start : start + 3]:
        if token not in "+-*/%&|^<>=":
            return
        yield token


def _is_unary(body: Sequence[str], index: int) -> bool:
    """Whether an operator has no left operand; a type in parentheses before it would be a cast."""
    if index == 0:
        return True
    token = body[index - 1]
    return token in ("return", "case", "else", "sizeof") or not (token[-1].isalnum() or token[-1] in "_)]")


def _postfix(body: Sequence[str], end: int) -> int:
    """Return the end of the indices and members after a name."""
    while end < len(body):
        if body[end] == "[":
            end = _end(body, end)
        elif body[end] == "." or list(body[end : end + 2]) == ["-", ">"]:
            end += 2 if body[end] == "." else 3
        else:
            break
    return end

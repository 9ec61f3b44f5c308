# SPDX-License-Identifier: Apache-2.0
"""Shapes from the Relay text of a model (`src/<module>.relay`): the parameters and the result of `@main`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBERS = r"\(((?:[0-9]{1,12}, ?)*(?:[0-9]{1,12})?)\)"
_SHAPES = re.compile(rf"Tensor\[{_NUMBERS}, (\w+)\]")
_PARAMETER = re.compile(rf"%([^\s,()]+?): Tensor\[{_NUMBERS}, (\w+)\]")
_MAIN = re.compile(r"def @main(?:\[[^\]]*\])?\(")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Typed:
    """A tensor type in Relay's syntax."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Relay:
    """Types in the text: parameters (including constants) by name, and results if annotated."""

    parameters: dict[str, Typed]
    results: tuple[Typed, ...] | None


def read_relay(content: bytes) -> Relay:
    """Return the types of main; empty if the text has none, or dynamic ones."""
    text = content.decode("utf-8", "replace")
    start = _MAIN.search(text)
    if start is None:
        return Relay({}, None)
    header_end = text.find("{\n", start.end())
    header = _COMMENT.sub("", text[start.end() : header_end if header_end >= 0 else len(text)])
    before, arrow, after = header.rpartition("->")
    named = before if arrow else header
    parameters = {m[1]: Typed(_shape(m[2]), m[3]) for m in _PARAMETER.finditer(named)}
    if arrow:
        return Relay(parameters, _types(after))
    return Relay(parameters, _last_type(text, header_end))


def _last_type(text: str, start: int) -> tuple[Typed, ...] | None:
    """Return the type in the annotation (`/* ty=… */`) of main's last expression, if any."""
    end = text.find("\n}", start)
    line = text[start : end if end >= 0 else len(text)].rstrip().rpartition("\n")[2]
    at = line.rfind("/* ty=")
    return _types(line[at:]) if at >= 0 else None


def _types(text: str) -> tuple[Typed, ...] | None:
    found = tuple(Typed(_shape(m[1]), m[2]) for m in _SHAPES.finditer(text))
    return found or None


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.strip())

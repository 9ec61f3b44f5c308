# SPDX-License-Identifier: Apache-2.0
"""The bill of materials: one line for each object with operators."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.bundles.image import Unit
from opwest.objects.elf import parse_elf


def sbom_of(units: Sequence[Unit]) -> str:
    """Return the lines `SHA-256  bytes  name  compiler` of the objects of the manifest."""
    rows = [
        f"{unit.digest}  {len(unit.member.content)}  {_word(unit.origin)}  {_compiler(unit.member.content)}\n"
        for unit in units
        if unit.origin is not None
    ]
    return "".join(rows)


def _word(name: str) -> str:
    """Return a name without white space and control characters."""
    return "".join("_" if char.isspace() or not char.isprintable() else char for char in name)


def _compiler(content: bytes) -> str:
    """Return the compilers that the section .comment of an object names; "unknown" without one."""
    elf = parse_elf(content)
    section = elf.find(".comment")
    data = elf.data(section) if section else b""
    texts = [part.decode("utf-8", "replace") for part in data.split(b"\0") if part]
    shown = ", ".join("".join(char if char.isprintable() else "?" for char in text) for text in dict.fromkeys(texts))
    return shown or "unknown"

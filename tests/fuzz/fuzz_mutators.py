# SPDX-License-Identifier: Apache-2.0
"""Mutations of bytes, lines, JSON trees and YAML, with a seeded random generator."""

import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

Mutator = Callable[[bytes, Random, Sequence[bytes]], bytes]
"""(content, chance, corpus) -> content; parts of the corpus are spliced in."""

LONGEST = 1 << 16
"""The size limit of a mutated input."""

_EDGES = (0, 1, 2, 4, 7, 8, 16, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000)
_EDGES += (0xFFFFFFFE, 0xFFFFFFFF, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


_BYTE_CHANGES = "flip flip flip edge edge nearby truncate remove double splice overwrite noise".split()


def mutate_bytes(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return `content` with one to eight changes: bits, edge values, truncation, parts removed, doubled, spliced."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if not data:
            data += chance.choice(corpus)[: chance.randrange(1, 64)] or b"\0"
        _change(_BYTE_CHANGES[chance.randrange(len(_BYTE_CHANGES))], data, chance, corpus)
    return bytes(data[:LONGEST])


def _change(kind: str, data: bytearray, chance: Random, corpus: Sequence[bytes]) -> None:
    """Make one change of a kind."""
    other, start = b"", 0
    if kind in ("splice", "overwrite"):
        other = chance.choice(corpus)
        start = chance.randrange(len(other)) if other else 0
    match kind:
        case "flip":
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case "edge":
            size = chance.choice((1, 1, 2, 4, 8))
            at = chance.randrange(len(data)) // size * size if chance.random() < 0.7 else chance.randrange(len(data))
            value = chance.choice(_EDGES) & ((1 << 8 * size) - 1)
            data[at : at + size] = value.to_bytes(size, chance.choice(("little", "big")))
        case "nearby":  # slightly wrong offsets and counts in little-endian words
            size = chance.choice((1, 2, 4))
            at = chance.randrange(len(data))
            value = int.from_bytes(data[at : at + size], "little") + chance.randrange(-16, 17)
            data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        case "truncate":
            del data[chance.randrange(len(data)) :]
        case "remove":
            at = chance.randrange(len(data))
            del data[at : at + chance.choice((1, 1, 2, 4, 8, 32))]
        case "double":
            at = chance.randrange(len(data))
            data[at:at] = data[at : at + chance.choice((1, 4, 16, 64))] * chance.choice((1, 1, 2, 50))
        case "splice":
            data[chance.randrange(len(data)) :] = other[start:]
        case "overwrite":
            part = other[start : start + chance.choice((4, 16, 64))]
            at = chance.randrange(len(data))
            data[at : at + len(part)] = part
        case "noise":
            at = chance.randrange(len(data))
            data[at:at] = chance.randbytes(chance.randrange(1, 9))


def text_mutator(words: Sequence[str], *, pattern: str = r"\w+") -> Mutator:
    """Return a mutator of lines: moved, removed, doubled, words replaced by those of other lines and by `words`."""
    found = re.compile(pattern)

    def mutate(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
        if chance.random() < 0.15:
            return mutate_bytes(content, chance, corpus)
        lines = content.decode("utf-8", "surrogateescape").split("\n")
        for _ in range(chance.choice((1, 1, 2, 4))):
            at, what = chance.randrange(len(lines)), chance.random()
            if what < 0.1:
                del lines[at]
            elif what < 0.2:
                lines.insert(at, chance.choice(lines))
            elif what < 0.25:
                other = chance.choice(corpus).decode("utf-8", "surrogateescape").split("\n")
                lines.insert(at, chance.choice(other))
            elif what < 0.35:
                column = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:column] + chance.choice(words) + lines[at][column:]
            elif places := list(found.finditer(lines[at])):
                place = chance.choice(places)
                new = chance.choice(words) if what < 0.8 else chance.choice(found.findall(chance.choice(lines)) or [""])
                lines[at] = lines[at][: place.start()] + new + lines[at][place.end() :]
            if not lines:
                lines.append(chance.choice(words))
        return "\n".join(lines).encode("utf-8", "surrogateescape")[:LONGEST]

    return mutate


_JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, 10**30, "", "x", "..", "../x", "/etc/passwd", ".", "a/../b", "a//b", "ä\0"),
    *("\ud800", "0" * 64, "f" * 64, "forward", "back", [], {}, [[]], [None], {"": None}, {"path": 1}, "x" * 300),
)


def mutate_json(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return a JSON document with values replaced, removed, doubled or moved; sometimes with damaged text."""
    if chance.random() < 0.15:
        return mutate_bytes(content, chance, corpus)
    try:
        root = json.loads(content)
    except (ValueError, RecursionError):
        return mutate_bytes(content, chance, corpus)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(root))
        if not places:
            root = deepcopy(chance.choice(_JSON_VALUES))
            continue
        owner, key = chance.choice(places)
        what = chance.random()
        if what < 0.5:
            owner[key] = deepcopy(chance.choice(_JSON_VALUES))
        elif what < 0.65:
            del owner[key]
        elif what < 0.8:
            other, at = chance.choice(places)
            owner[key] = json.loads(json.dumps(other[at]))
        elif isinstance(owner, dict):
            owner[str(chance.choice(_JSON_VALUES))] = owner.pop(key)
        else:
            owner.insert(key, deepcopy(chance.choice(_JSON_VALUES)))
    return json.dumps(root).encode("utf-8", "surrogatepass")[:LONGEST]


def _places(root: Any) -> Any:
    pending = [root]
    while pending:
        owner = pending.pop()
        keys = list(owner) if isinstance(owner, dict) else range(len(owner)) if isinstance(owner, list) else ()
        for key in keys:
            yield owner, key
            pending.append(owner[key])

# SPDX-License-Identifier: Apache-2.0
"""The order of instructions for the Cortex-M7, which issues two of them in a cycle: loads between multiplications.

The rules are those of the model in `runs/qemu/m7.h`. LDRD and LDM are issued alone, so they become loads of one word,
which are free beside multiplications. All results are those of the given order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwest.base.frozen_dataclass import dataclass

_LOAD = re.compile(r"(ldr|ldrd|ldm) ")
_REGISTER = re.compile(r"\b(?:r1[0-2]|r\d|sp|lr)\b")
_POST = re.compile(r"\[(\w+)\](?:, #(-?\d+))?$")
_OFFSET = re.compile(r"\[(\w+), #(-?\d+)\]$")
_PRODUCTS = ("smlad", "smladx", "smlabb", "smlabt", "smlatb", "smlatt", "smlald", "mla")
_EXTENSIONS = ("sxtb16", "sxth", "uxtb16", "sxtab16")
GREATEST, LEAST = 4095, -255
"""The offsets of a load."""


@dataclass(frozen=True)
class _Instruction:
    text: str
    reads: frozenset[str]
    early: frozenset[str]
    """Those that are read a cycle earlier: addresses."""
    late: frozenset[str]
    """Those that are read a cycle later: addends."""
    writes: frozenset[str]
    unit: str
    """load, product, extension, shift; empty: an ALU."""
    latency: int


def can_pair(lines: Sequence[str]) -> bool:
    """Whether `paired` reads all of these instructions."""
    return all(_parsed(line) is not None for line in _single_loads(lines))


def paired(lines: Sequence[str]) -> list[str]:
    """Return instructions without branches in the order for two of them in a cycle: a line for each cycle."""
    some = [_parsed(line) for line in _single_loads(lines)]
    assert all(some), lines
    cycles = _ordered([one for one in some if one is not None])
    return ["; ".join(one.text for one in cycle) for cycle in cycles if cycle]


def _single_loads(lines: Sequence[str]) -> Iterator[str]:
    """Yield the instructions with loads of one word at constant offsets, then the additions to the addresses."""
    moved: dict[str, int] = {}
    for line in lines:
        name, _, operands = line.partition(" ")
        if name not in ("ldr", "ldrd", "ldm"):
            yield line
            continue
        if name == "ldm":
            base, _, listed = operands.partition("!, {")
            registers = _listed(listed.rstrip("}"))
            first, after = 0, 4 * len(registers)
        else:
            place = _OFFSET.search(operands) or _POST.search(operands)
            assert place is not None, line
            is_post = _OFFSET.search(operands) is None
            base, amount = place[1], int(place[2] or 0)
            first, after = (0, amount) if is_post else (amount, 0)
            registers = operands[: place.start()].replace(" ", "").rstrip(",").split(",")
        offset = moved.get(base, 0)
        for number, register in enumerate(registers):
            yield f"ldr {register}, [{base}, #{offset + first + 4 * number}]"
        if after:
            moved[base] = offset + after
    for base, amount in moved.items():
        if amount:
            yield f"add {base}, {base}, #{amount}"


def _listed(text: str) -> list[str]:
    """Return the registers of a list such as r2-r4, r7."""
    registers: list[str] = []
    for part in text.split(", "):
        first, _, last = part.partition("-")
        if last:
            registers += [f"r{number}" for number in range(int(first[1:]), int(last[1:]) + 1)]
        else:
            registers.append(first)
    return registers


def _parsed(line: str) -> _Instruction | None:
    """Return an instruction; None if it is none of those that this module orders."""
    name, _, operands = line.partition(" ")
    names = _REGISTER.findall(operands)
    none: frozenset[str] = frozenset()
    if name == "ldr":
        place = _OFFSET.search(operands)
        if place is None or not LEAST <= int(place[2]) <= GREATEST:
            return None
        return _Instruction(line, none, frozenset(names[1:]), none, frozenset(names[:1]), "load", 1)
    if name in _PRODUCTS:
        results = names[:2] if name == "smlald" else names[:1]
        addends = results if name == "smlald" else names[3:]
        operands_of = names[2:4] if name == "smlald" else names[1:3]
        return _Instruction(line, frozenset(operands_of), none, frozenset(addends), frozenset(results), "product", 2)
    if name in _EXTENSIONS:
        return _Instruction(line, frozenset(names[1:]), none, none, frozenset(names[:1]), "extension", 1)
    if name == "and" and len(names) == 3:
        is_shifted = "lsr" in operands
        reads, early = (names[1:2], names[2:]) if is_shifted else (names[1:], [])
        return _Instruction(
            line, frozenset(reads), frozenset(early), none, frozenset(names[:1]), "shift" if is_shifted else "", 1
        )
    if name == "add" and operands.count("#") == 1 and len(names) == 2:
        return _Instruction(line, frozenset(names[1:]), none, none, frozenset(names[:1]), "", 1)
    return None


def _edges(some: Sequence[_Instruction]) -> list[list[tuple[int, int]]]:
    """Return for each instruction those that it follows, with the least cycles between them."""
    edges: list[list[tuple[int, int]]] = []
    for number, one in enumerate(some):
        found = []
        for before in range(number):
            other = some[before]
            cycles = None
            for registers, later in ((one.reads, 0), (one.early, -1), (one.late, 1)):
                if registers & other.writes:
                    cycles = max(cycles or 0, other.latency - later)
            if one.writes & other.writes:
                cycles = max(cycles or 0, 1)
            if one.writes & (other.reads | other.early | other.late):
                cycles = max(cycles or 0, 0)
            if cycles is not None:
                found.append((before, cycles))
        edges.append(found)
    return edges


def _ordered(some: Sequence[_Instruction]) -> list[list[_Instruction]]:
    """Return the cycles of a list scheduler: in each of them the instructions with the longest way to the end."""
    edges = _edges(some)
    ways = [0] * len(some)
    for number in range(len(some) - 1, -1, -1):
        for before, cycles in edges[number]:
            ways[before] = max(ways[before], ways[number] + max(cycles, 1 if some[before].unit == "product" else 0))
    left = set(range(len(some)))
    order: list[list[int]] = []
    issued: dict[int, int] = {}
    cycle = 0
    while left:
        chosen: list[int] = []
        while len(chosen) < 2:
            ready = [
                number
                for number in left
                if all(before in issued and issued[before] + cycles <= cycle for before, cycles in edges[number])
                and _fits(some[number], [some[place] for place in chosen])
            ]
            if not ready:
                break
            best = min(ready, key=lambda number: (_rank(some[number]) if not chosen else 0, -ways[number], number))
            chosen.append(best)
            issued[best] = cycle
            left.remove(best)
        order.append(chosen)
        cycle += 1
    return [[some[number] for number in chosen] for chosen in order]


def _rank(one: _Instruction) -> int:
    """Return the place of an instruction among those that can be the first of a cycle: extensions must be."""
    return {"extension": 0, "product": 1}.get(one.unit, 2)


def _fits(one: _Instruction, before: Sequence[_Instruction]) -> bool:
    """Whether an instruction can be issued in the same cycle after others."""
    if not before:
        return True
    return one.unit != "extension" and not (one.unit and one.unit == before[0].unit)

# SPDX-License-Identifier: Apache-2.0
"""The slot of a bundle: an address, or a flash partition in zephyr.dts, the devicetree of a build in source form.

Zephyr writes it without macros, /include/ and expressions. Addresses are translated as in Zephyr's edtlib: by the
`ranges` of the parents, up to the first one without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from opwest.base.diagnostics import Diagnostics, Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.bundles.format import HEADER_SIZE, IMAGE_ALIGN

_NUMBER = r"0[xX][0-9a-fA-F]+|[0-9]+"
_ADDRESS = re.compile(rf"({_NUMBER})(?::({_NUMBER})([kKmM]?))?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a bundle in memory."""

    address: int
    size: int | None
    """Bytes; None if unknown."""


def read_slot(text: str, build: Path | None, faults: Diagnostics) -> Slot | None:
    """Return a slot: `ADDRESS[:SIZE]`, or a partition by node label or label; None after an error."""
    match = _ADDRESS.fullmatch(text)
    if match is not None:
        size = int(match[2], 0) * _UNITS[match[3].lower()] if match[2] else None
        slot = Slot(int(match[1], 0), size)
    elif re.match(r"[0-9]", text):
        faults.error(f"invalid slot {text!r}", expected="ADDRESS, ADDRESS:SIZE such as 0x80000:64K, or a partition")
        return None
    elif build is None:
        faults.error(f"--slot: partition {text!r} requires the build that defines it", expected="--build DIR")
        return None
    elif (partition_slot := _of_partition(text, build, faults)) is not None:
        slot = partition_slot
    else:
        return None
    is_aligned = slot.address % IMAGE_ALIGN == 0
    if not is_aligned:
        faults.error(f"--slot: address 0x{slot.address:x} is misaligned", expected=f"a multiple of {IMAGE_ALIGN}")
    is_large = slot.size is None or slot.size > HEADER_SIZE
    if not is_large:
        faults.error(f"--slot: the slot has {slot.size} bytes", expected=f"more than {HEADER_SIZE}")
    return slot if is_aligned and is_large else None


def _of_partition(name: str, build: Path, faults: Diagnostics) -> Slot | None:
    path = build / "zephyr" / "zephyr.dts"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        faults.error(
            f"cannot read the devicetree of the build: {error.strerror}",
            Location(str(path)),
            hint="--build is a build directory of west; with sysbuild, its directory of the application",
        )
        return None
    try:
        address, size = partition(text, name)
    except TreeError as error:
        faults.error(error.message, Location(str(path), error.line, 1 if error.line else 0), hint=error.hint)
        return None
    return Slot(address, size)


_TOKEN = re.compile(
    r"""(?P<skip>\s+|/\*.*?\*/|//[^\n]*|/dts-v1/;|/memreserve/[^;]*;)
    |(?P<text>"(?:\\.|[^"\\])*")
    |(?P<cells><[^>]*>)
    |(?P<bytes>\[[^\]]*\])
    |(?P<mark>[{};=,])
    |(?P<word>/delete-(?:node|property)/|/bits/|[\w,.+*#?@&/$\\:-]+)""",
    re.VERBOSE | re.DOTALL,
)
_SIMULATED = "zephyr,sim-flash"
_SUBPARTITIONS = "fixed-subpartitions"
_MAX_NODES = 100_000


class TreeError(Exception):
    """A devicetree without the partition: message, line and hint."""

    def __init__(self, message: str, line: int = 0, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.hint = hint


@dataclass(slots=True)
class Node:
    """A node: properties as lists of values, which are cells (int), texts, or references (`&label`)."""

    name: str
    parent: Node | None
    line: int
    labels: list[str] = field(default_factory=list)
    properties: dict[str, list[int | str]] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def cell(self, name: str, default: int) -> int:
        """Return a property of one cell."""
        value = self.properties.get(name, [default])
        return value[0] if value and isinstance(value[0], int) else default

    def texts(self, name: str) -> list[str]:
        """Return the texts of a property."""
        return [value for value in self.properties.get(name, []) if isinstance(value, str)]

    def numbers(self, name: str) -> list[int]:
        """Return the cells of a property."""
        return [value for value in self.properties.get(name, []) if isinstance(value, int)]

    @property
    def address_cells(self) -> int:
        """The cells of an address of a child."""
        return self.cell("#address-cells", 2)

    @property
    def size_cells(self) -> int:
        """The cells of a size of a child."""
        return self.cell("#size-cells", 1)


def partition(text: str, name: str) -> tuple[int, int]:
    """Return the address and the size of a partition, by node label or by the property `label`. Raises TreeError."""
    partitions = [node for node in _nodes(text) if _is_partition(node)]
    matching = [node for node in partitions if name in node.labels] or [
        node for node in partitions if name in node.texts("label")
    ]
    if not matching:
        known = [label for node in partitions for label in (*node.labels, *node.texts("label"))]
        raise TreeError(f"no partition {name!r} in the devicetree", 0, nearest(name, known) or "it has no partitions")
    node = matching[0]
    address, size = _region(node)
    if address is None or size is None:
        raise TreeError(f"partition {name!r} has no address and size", node.line)
    return _mapped(node, address, name), size


def _is_partition(node: Node) -> bool:
    """Whether a node is a partition: a child of a list of partitions, or a mapped partition."""
    if node.parent is None or "reg" not in node.properties:
        return False
    kinds = (*node.parent.texts("compatible"), *node.texts("compatible"))
    return any("partition" in kind for kind in kinds)


def _region(node: Node) -> tuple[int | None, int | None]:
    """Return the first address and size of `reg`."""
    cells = node.numbers("reg")
    parent = node.parent
    wide, long = (parent.address_cells, parent.size_cells) if parent else (2, 1)
    if len(cells) < wide + long or not wide:
        return None, None
    return _joined(cells[:wide]), _joined(cells[wide : wide + long]) if long else None


def _joined(cells: list[int]) -> int:
    value = 0
    for cell in cells:
        value = value << 32 | cell
    return value


def _mapped(node: Node, address: int, name: str) -> int:
    """Return the address of a partition in the memory of the processor.

    Without `ranges`, the addresses of a list of partitions are offsets in its parent: the flash, or a partition.
    """
    above = node.parent
    while above is not None and above.parent is not None:
        parent = above.parent
        kinds = above.texts("compatible")
        if "ranges" in above.properties:
            address = _translated(above, address, name)
        elif _SUBPARTITIONS in kinds:
            base, _ = _region(above)
            address += base or 0
        elif any("partitions" in kind for kind in kinds):
            base, size = _region(parent)
            simulated = parent.parent is not None and _SIMULATED in parent.parent.texts("compatible")
            if base is None or not size or simulated:
                text = f"partition {name!r} is in flash that is not memory-mapped: {parent.name}"
                raise TreeError(text, parent.line, "use a partition of the flash that the processor executes from")
            address += base
            parent = parent.parent or parent
        else:
            break  # as edtlib: an address without `ranges` above it is that of the processor
        above = parent
    return address


def _translated(node: Node, address: int, name: str) -> int:
    """Translate an address of a child by the `ranges` of its parent; empty ones do not change it."""
    cells = node.numbers("ranges")
    if not cells or node.parent is None:
        return address
    own, above, long = node.address_cells, node.parent.address_cells, node.size_cells
    width = own + above + long
    for start in range(0, len(cells) - width + 1, width):
        child = _joined(cells[start : start + own])
        to = _joined(cells[start + own : start + own + above])
        size = _joined(cells[start + own + above : start + width])
        if child <= address < child + size:
            return to + address - child
    raise TreeError(f"partition {name!r} is outside of the ranges of {node.name}", node.line)


def _nodes(text: str) -> list[Node]:
    """Return all nodes of a devicetree in source form. Raises TreeError."""
    root = Node("/", None, 1)
    nodes = [root]
    node: Node | None = None
    words: list[tuple[str, str, int]] = []
    for kind, token, line in _tokens(text):
        if kind != "mark" or token in "=,":
            words.append((kind, token, line))
        elif token == "{":
            node = _opened(words, node, root, line)
            if node is not root:
                nodes.append(node)
            if len(nodes) > _MAX_NODES:
                raise TreeError("the devicetree has too many nodes", line)
            words = []
        elif token == "}":
            if node is None:
                raise TreeError("unbalanced '}' in the devicetree", line)
            node, words = node.parent, []
        else:
            if node is not None and words:
                _assign(node, words)
            words = []
    return nodes


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise TreeError(f"unknown text {text[at : at + 20]!r} in the devicetree", line)
        kind = match.lastgroup or "skip"
        if kind != "skip":
            yield kind, match.group(), line
        line += match.group().count("\n")
        at = match.end()


def _opened(words: list[tuple[str, str, int]], node: Node | None, root: Node, line: int) -> Node:
    """Return the node that `{` begins."""
    names = [token for kind, token, _ in words if kind == "word"]
    if node is None:
        if names == ["/"]:
            return root
        raise TreeError("a node outside of the root in the devicetree", line)
    if not names:
        raise TreeError("a node without a name in the devicetree", line)
    # A label and its node can be one word: `slot0:partition@0`.
    *labels, name = [part for word in names for part in word.split(":") if part]
    made = Node(name, node, words[0][2], labels)
    node.children.append(made)
    return made


def _assign(node: Node, words: list[tuple[str, str, int]]) -> None:
    """Add the property of a statement: `name;` or `name = value, value;`."""
    name = words[0][1]
    values: list[int | str] = []
    for kind, token, line in words[1:]:
        if kind == "text":
            values.append(token[1:-1])
        elif kind == "cells":
            values += [_cell(cell, line) for cell in token[1:-1].split()]
    node.properties[name] = values


def _cell(text: str, line: int) -> int | str:
    if text.startswith("&"):
        return text
    try:
        return int(text, 0) & 0xFFFFFFFF
    except ValueError as error:
        raise TreeError(f"invalid cell {text!r} in the devicetree", line) from error

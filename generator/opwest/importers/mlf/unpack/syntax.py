# SPDX-License-Identifier: Apache-2.0
"""Syntax trees of C functions, by tree-sitter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opwest.importers.mlf.c_text import Function
from opwest.objects.cmask import mask
from opwest.objects.csource import syntax_tree
from opwest.objects.facts import ObjectError
from opwest.records import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 200
"""The maximum nesting of statements and expressions."""
_SHOWN = 60
CONTEXT = "cmsis_nn_context"
"""CMSIS-NN's structure of a buffer and its size in bytes (arm_nn_types.h)."""
DIMS = "cmsis_nn_dims"
"""CMSIS-NN's structure of four dimensions: a function takes it before the pointer that it describes."""
INTEGERS = {"int": (-(1 << 31), (1 << 31) - 1), "size_t": (0, (1 << 32) - 1)} | {
    f"{sign}int{bits}_t": (0 if sign else -(1 << bits - 1), (1 << bits - (not sign)) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
"""The smallest and the largest value of integer types."""
KNOWN_TYPES = frozenset([*INTEGERS, CONTEXT, DIMS])
"""Types, other than those of elements, whose meaning the unpacker requires."""
_TOKEN = re.compile(
    r"""//(?:\\.|[^\n\\])*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"|(?P<hidden>\#(?![ \t]*pragma\b)[ \t]*\w*|\b(?:asm|__asm|__asm__)\b"
    r"|\b__attribute(?:__)?\b(?!\s*\(\(\s*(?:__)?(?:aligned|unused)(?:__)?\s*(?:\(\s*\d+\s*\)\s*)?\)\)))"
    r"|(?P<word>[A-Za-z_]\w*)",
    re.DOTALL,
)
"""Comments and literals; words; `hidden`: what the masked text lacks, or contains in only one alternative."""


class NotUnpackedError(Exception):
    """Main stays one operator; the text is the reason."""


@dataclass(frozen=True)
class Tree:
    """A function definition: its node, and the text that the positions of nodes refer to."""

    function: Function
    text: bytes
    node: Node

    def word(self, node: Node) -> str:
        """Return the text of a node, with single spaces."""
        return " ".join(self.text[node.start_byte : node.end_byte].decode("utf-8", "backslashreplace").split())

    def quoted(self, node: Node) -> str:
        """Return the text of a node for a message."""
        text = self.word(node)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

    @property
    def body(self) -> Node:
        """The compound statement of the function."""
        found = self.node.child_by_field_name("body")
        assert found is not None
        return found


def tree_of(function: Function, source: str) -> Tree:
    """Return the tree of a function in its source.

    Raises NotUnpackedError if the text is not C, or has parts that the tree does not show.
    """
    own = source[function.start : function.end]
    for match in _TOKEN.finditer(own):
        if match["hidden"]:
            raise NotUnpackedError(f"'{function.name}' contains `{match['hidden']}`")
    text = mask(own.encode())
    try:
        root = syntax_tree(text)
    except ObjectError as error:
        raise NotUnpackedError(f"'{function.name}': {error.message}") from None
    found = [n for n in root.named_children if n.type == "function_definition"]
    if len(found) != 1 or root.has_error or _depth(found[0]) > DEEPEST:
        raise NotUnpackedError(f"'{function.name}' cannot be parsed")
    return Tree(function, text, found[0])


def words_of(function: Function, source: str) -> Iterator[str]:
    """Yield the words of a function, also those that the masked text does not contain."""
    for match in _TOKEN.finditer(source, function.start, function.end):
        if match["word"]:
            yield match["word"]


def _depth(root: Node) -> int:
    """Return the nesting of a tree, without recursion."""
    most, level = 0, [root]
    while level and most <= 3 * DEEPEST:
        most += 1
        level = [child for node in level for child in node.named_children]
    # A parenthesized binary expression has two levels, an index another one.
    return most // 3


def statements(compound: Node) -> Iterator[Node]:
    """Yield the statements of a compound statement, without comments."""
    yield from (n for n in compound.named_children if n.type not in ("comment", "preproc_directive"))


def plain(node: Node) -> Node:
    """Return an expression without its parentheses."""
    while node.type == "parenthesized_expression" and len(inner := real_children(node)) == 1:
        node = inner[0]
    return node


def real_children(node: Node) -> list[Node]:
    """Return the named children without comments."""
    return [n for n in node.named_children if n.type != "comment"]


def field(node: Node, name: str) -> Node:
    """Return a child that the grammar requires."""
    found = node.child_by_field_name(name)
    assert found is not None
    return found


def operator_of(node: Node) -> str:
    """Return the operator of an expression."""
    found = node.child_by_field_name("operator")
    return found.type if found is not None else ""


def stars_of(declarator: Node) -> tuple[Node, int, bool]:
    """Return the innermost declarator, the number of its stars, and whether it is something else than a pointer."""
    stars, other = 0, False
    while declarator.type not in ("identifier", "field_identifier"):
        stars += declarator.type in ("pointer_declarator", "abstract_pointer_declarator")
        other = other or declarator.type in ("array_declarator", "function_declarator")
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            rest: Sequence[Node] = [n for n in declarator.named_children if n.type.endswith("declarator")]
            if not rest:
                break
            inner = rest[0]
        declarator = inner
    return declarator, stars, other


def pointed_type(tree: Tree, descriptor: Node) -> str | None:
    """Return T of a type descriptor `T *`, without qualifiers; None for other types."""
    declarator = descriptor.child_by_field_name("declarator")
    if declarator is None or declarator.type != "abstract_pointer_declarator":
        return None
    return tree.word(field(descriptor, "type")) if stars_of(declarator)[1] == 1 else None


def integer(tree: Tree, node: Node) -> int | None:
    """Return the value of an integer literal, with casts that do not change it; None for other expressions."""
    node = plain(node)
    if node.type == "cast_expression":
        value, limits = integer(tree, field(node, "value")), INTEGERS.get(tree.word(field(node, "type")), (0, 0))
        return value if value is not None and limits[0] <= value <= limits[1] else None
    if node.type != "number_literal":
        return None
    digits = tree.word(node).rstrip("uUlL")
    try:
        return int(digits, 0) if len(digits) < 20 else None
    except ValueError:
        return int(digits, 8) if digits.isdigit() and not set(digits) & set("89") else None


def is_unsigned(literal: str, value: int) -> bool:
    """Return whether the type of an integer literal can be unsigned (ISO C11 6.4.4.1): its arithmetic wraps."""
    text = literal.lower()
    decimal = not text.startswith("0")
    return "u" in text or (not decimal and abs(value) > INTEGERS["int"][1])

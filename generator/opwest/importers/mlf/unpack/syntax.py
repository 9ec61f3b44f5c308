# SPDX-License-Identifier: Apache-2.0
"""Syntax trees of C functions, by tree-sitter."""

from __future__ import annotations

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
    """Return the tree of a function in its source. Raises NotUnpackedError if the text is not C."""
    text = mask(source[function.start : function.end].encode())
    try:
        root = syntax_tree(text)
    except ObjectError as error:
        raise NotUnpackedError(f"'{function.name}': {error.message}") from None
    found = [n for n in root.named_children if n.type == "function_definition"]
    if len(found) != 1 or root.has_error or _depth(found[0]) > DEEPEST:
        raise NotUnpackedError(f"'{function.name}' cannot be parsed")
    return Tree(function, text, found[0])


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
    """Return the value of an integer literal, with casts and parentheses; None for other expressions."""
    node = plain(node)
    while node.type == "cast_expression":
        node = plain(field(node, "value"))
    if node.type != "number_literal":
        return None
    digits = tree.word(node).rstrip("uUlL")
    try:
        return int(digits, 0) if len(digits) < 20 else None
    except ValueError:
        return int(digits, 8) if digits.isdigit() and not set(digits) & set("89") else None

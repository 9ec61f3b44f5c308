# SPDX-License-Identifier: Apache-2.0
"""The functions of a model as trees, each parsed once, with what can change their meaning: jumps, macros."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from opwest.importers.mlf.c_text import Function
from opwest.importers.mlf.unpack.syntax import (
    NotUnpackedError,
    Tree,
    field,
    integer,
    operator_of,
    plain,
    real_children,
    statements,
    tree_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node


class Trees:
    """The trees of a model's functions. Each is parsed once."""

    def __init__(
        self, functions: Mapping[str, Function], sources: Mapping[str, str], macros: frozenset[str] = frozenset()
    ) -> None:
        self.functions = functions
        self.macros = macros
        self.sources = sources
        """The source of each function."""
        self._trees: dict[str, Tree] = {}
        self._changed: dict[str, frozenset[str]] = {}

    def tree(self, name: str) -> Tree:
        """Return the tree of a function. Raises NotUnpackedError."""
        if name not in self._trees:
            self._trees[name] = tree_of(self.functions[name], self.sources[name])
            for word in _names(self._trees[name]):
                if word in self.macros:
                    raise NotUnpackedError(f"'{name}' uses the macro '{word}'")
        return self._trees[name]

    def changed(self, name: str) -> frozenset[str]:
        """Return the variables that a function assigns after their declaration, other than by `for`."""
        if name not in self._changed:
            self._changed[name] = frozenset(_changed(self.tree(name)))
        return self._changed[name]


def _names(tree: Tree) -> Iterator[str]:
    pending = [tree.body]
    while pending:
        node = pending.pop()
        pending += node.named_children
        if node.type in ("identifier", "type_identifier", "field_identifier"):
            yield tree.word(node)


def _changed(tree: Tree) -> Iterator[str]:
    pending = [tree.body]
    while pending:
        node = pending.pop()
        skipped = node.child_by_field_name("update") if node.type == "for_statement" else None
        pending += [n for n in node.named_children if n != skipped]
        target: Node | None = None
        if node.type == "assignment_expression":
            target = field(node, "left")
        elif node.type == "update_expression" or (node.type == "pointer_expression" and operator_of(node) == "&"):
            target = field(node, "argument")
        if target is not None and plain(target).type == "identifier":
            yield tree.word(plain(target))


def jumps(tree: Tree) -> bool:
    """Return whether a function can skip statements and succeed: jumps, or `return` of other than an error."""
    last = list(statements(tree.body))[-1:]
    pending = [tree.body]
    while pending:
        node = pending.pop()
        pending += node.named_children
        if node.type in ("goto_statement", "break_statement", "continue_statement", "labeled_statement"):
            return True
        if node.type == "return_statement" and node not in last:
            values = real_children(node)
            if len(values) != 1 or integer(tree, values[0]) in (None, 0):
                return True
    return False

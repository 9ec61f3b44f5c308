# SPDX-License-Identifier: Apache-2.0
"""The functions of a model as trees, each parsed once: the variables that they change, and their jumps."""

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
    stars_of,
    statements,
    tree_of,
    words_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node


class Trees:
    """The trees of a model's functions. Each is parsed once."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        sources: Mapping[str, str],
        meanings: Mapping[str, str] | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        self.functions = functions
        self.sources = sources
        """The source of each function."""
        self.meanings = meanings or {}
        """Words with another meaning than that of C, as in `sources.meanings`."""
        self.reasons = reasons or {}
        """Functions that cannot be read, as in `sources.reasons`."""
        self._trees: dict[str, Tree] = {}
        self._changed: dict[str, dict[str, bool]] = {}

    def tree(self, name: str) -> Tree:
        """Return the tree of a function. Raises NotUnpackedError."""
        if name not in self._trees:
            if name in self.reasons:
                raise NotUnpackedError(self.reasons[name])
            function, source = self.functions[name], self.sources[name]
            for word in words_of(function, source):
                if word in self.meanings:
                    raise NotUnpackedError(f"'{name}' uses {self.meanings[word]}")
            self._trees[name] = tree_of(function, source)
        return self._trees[name]

    def changed(self, name: str) -> Mapping[str, bool]:
        """Return the variables that a function changes after their declaration, other than by `for`.

        False: only calls receive the address of the variable.
        """
        if name not in self._changed:
            found: dict[str, bool] = {}
            for variable, assigned in _changed(self.tree(name)):
                found[variable] = found.get(variable, False) or assigned
            self._changed[name] = found
        return self._changed[name]


def _nodes(tree: Tree) -> Iterator[Node]:
    pending = [tree.body]
    while pending:
        node = pending.pop()
        pending += node.named_children
        yield node


def adds_one(tree: Tree, update: Node, name: str) -> bool:
    """Return whether the update of a `for` statement adds one to a variable."""
    return tree.word(plain(update)) in (f"++{name}", f"{name}++", f"++ {name}", f"{name} += 1")


def _changed(tree: Tree) -> Iterator[tuple[str, bool]]:
    """Yield the variables that a function changes; False: a call receives the address."""
    counted: set[int] = set()
    for node in _nodes(tree):
        if node.type == "for_statement" and (update := _own_update(tree, node)) is not None:
            counted.add(plain(update).id)
        target: Node | None = None
        if node.type == "assignment_expression":
            target = field(node, "left")
        elif node.type == "update_expression" or (node.type == "pointer_expression" and operator_of(node) == "&"):
            target = field(node, "argument")
        if target is None or node.id in counted:
            continue
        target = plain(target)
        while target.type == "field_expression":
            target = plain(field(target, "argument"))
        if target.type == "identifier":
            outer = node.parent.type if node.parent is not None else ""
            yield tree.word(target), not (node.type == "pointer_expression" and outer == "argument_list")


def _own_update(tree: Tree, node: Node) -> Node | None:
    """Return the update of a `for` statement if it adds one to the variable that the statement declares."""
    start, update = (node.child_by_field_name(name) for name in ("initializer", "update"))
    if start is None or update is None or start.type != "declaration":
        return None
    names = [tree.word(stars_of(one)[0]) for one in start.children_by_field_name("declarator")]
    return update if any(adds_one(tree, update, name) for name in names) else None


def jumps(tree: Tree, *, checked: bool) -> bool:
    """Return whether a function can skip statements: jumps, or `return`; not of errors if its status is `checked`."""
    last = list(statements(tree.body))[-1:]
    for node in _nodes(tree):
        if node.type in ("goto_statement", "break_statement", "continue_statement", "labeled_statement"):
            return True
        if node.type == "return_statement" and node not in last:
            values = real_children(node)
            if not checked or len(values) != 1 or integer(tree, values[0]) in (None, 0):
                return True
    return False

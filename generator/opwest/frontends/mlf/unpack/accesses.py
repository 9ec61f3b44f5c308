# SPDX-License-Identifier: Apache-2.0
"""The memory accesses of an operator, from its C code: which bytes of its arguments and of TVM's pools it uses.

Every statement is read once, with loop variables as symbols. What cannot be read lets its pointers escape: their extent
is then unknown. Nothing is assumed that the code does not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.c_text import Function
from opwest.frontends.mlf.library import ELEMENTS
from opwest.frontends.mlf.unpack.expressions import Loop, interval
from opwest.frontends.mlf.unpack.functions import (
    CONTEXT,
    DIMS,
    NotUnpackedError,
    Tree,
    Trees,
    adds_one,
    field,
    integer,
    jumps,
    operator_of,
    plain,
    real_children,
    stars_of,
    statements,
    words_of,
)
from opwest.frontends.mlf.unpack.memory import Base
from opwest.frontends.mlf.unpack.values import Lent, Pointer, Shape, Value, Values, fitted, not_at_offsets
from opwest.model.types.dtypes import dtype_of_c

if TYPE_CHECKING:
    from tree_sitter import Node

Role = Literal["tensor", "workspace", "constants", "device"]

_STATEMENTS = 300_000


@dataclass(frozen=True)
class Offset:
    """A literal offset in a pool: its position in the text of the function, bytes."""

    parameter: int
    start: int
    end: int
    offset: int


@dataclass(frozen=True)
class Operator:
    """What an operator does with its parameters, in order."""

    tree: Tree
    bases: tuple[Base, ...]
    literals: tuple[Offset, ...]


def read_operator(function: Function, roles: Sequence[Role], trees: Trees) -> Operator:
    """Return the accesses of an operator. Raises NotUnpackedError if it uses a pool in other ways than at offsets."""
    tree = trees.tree(function.name)
    bases = []
    for parameter, role in zip(function.parameters, roles, strict=True):
        kind: Literal["pool", "argument"] = "pool" if role in ("workspace", "constants") else "argument"
        bases.append(Base(parameter.name, kind))
    walker = _Walker(trees)
    walker.read(tree, function, bases)
    words = list(words_of(function, trees.sources[function.name]))
    for base in bases:
        if base.kind == "pool" and not base.parts and words.count(base.name) > 1:
            raise not_at_offsets(function.name, base)
    numbers = {id(base): number for number, base in enumerate(bases)}
    literals = tuple(Offset(numbers[id(b)], start, end, offset) for b, start, end, offset in walker.literals.values())
    return Operator(tree, tuple(bases), literals)


class _Walker(Values):
    """Reads the statements of one operator, and of the functions that it calls."""

    count = 0

    def read(self, tree: Tree, function: Function, values: Sequence[Value]) -> None:
        """Read a function with the values of its parameters; bases stand for pointers to their start."""
        outer = getattr(self, "tree", tree), self.env, self.changed
        self.tree, self.changed, self.env = tree, self.trees.changed(function.name), {}
        self.calls.append(function.name)
        for parameter, value in zip(function.parameters, values, strict=True):
            dtype = dtype_of_c(parameter.type)
            size = dtype.size if dtype is not None and parameter.stars == 1 else 0
            if isinstance(value, Base):
                value = Pointer(value, 0, size)
            if isinstance(value, Pointer) and parameter.stars:
                value = Pointer(value.base, value.offset, size)
            elif isinstance(value, Pointer) or parameter.stars:  # also a parameter that is not read: `float p[4]`
                self.escape(value)
                value = None
            else:
                value = fitted(parameter.type, value)
            self._name(parameter.name, value)
        before, self.certain = self.certain, self.certain and not jumps(tree, checked=len(self.calls) == 1)
        self.statement(tree.body)
        self.certain = before
        self.calls.pop()
        self.tree, self.env, self.changed = outer

    def _name(self, name: str, value: Value) -> None:
        assigned = self.changed.get(name)
        # A call that receives `&context` does not move its buffer.
        if assigned or (assigned is not None and not isinstance(value, Lent | Shape)):
            self.escape(value)
            value = None
        self.env[name] = value

    # Statements.

    def statement(self, node: Node) -> None:
        """Read a statement."""
        self.count += 1
        if self.count > _STATEMENTS:
            raise NotUnpackedError(f"'{self.calls[0]}' has more than {_STATEMENTS} statements")
        match node.type:
            case "compound_statement":
                outer = dict(self.env)
                for one in statements(node):
                    self.statement(one)
                self.env = outer
            case "declaration":
                for declarator in node.children_by_field_name("declarator"):
                    self._declare(self.tree.word(field(node, "type")), declarator)
            case "expression_statement":
                for one in real_children(node):
                    self.value(one)
            case "return_statement":
                for one in real_children(node):
                    self.escape(self.value(one))
            case "for_statement":
                self._for(node)
            case "if_statement":
                self._if(node)
            case "comment" | ";":
                pass
            case _:
                self.unread(node)

    def _declare(self, type_: str, declarator: Node) -> None:
        value_node = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        inner = field(declarator, "declarator") if declarator.type == "init_declarator" else declarator
        name_node, stars, other = stars_of(inner)
        name = self.tree.word(name_node)
        dtype = dtype_of_c(type_)
        size = dtype.size if dtype is not None and stars == 1 - other else 0
        if other:
            if value_node is not None:
                self.escape(self.value(value_node))
            self._name(name, Pointer(Base(name, "local"), 0, size))
            return
        value = self._context(type_, value_node) if value_node is not None else None
        if stars:
            if isinstance(value, Pointer):
                value = Pointer(value.base, value.offset, size)
            elif value is not None:
                value = None
        elif isinstance(value, Pointer):
            self.escape(value)
            value = None
        elif value is not None and not isinstance(value, Lent | Shape):
            value = fitted(type_, value)
        self._name(name, value)

    def _context(self, type_: str, node: Node) -> Value:
        """Return the value of an initializer; structures of CMSIS-NN contain the sizes of memory."""
        if node.type == "initializer_list" and type_ == DIMS:
            sizes = [integer(self.tree, one) for one in real_children(node)]
            known = [n for n in sizes if n is not None and 0 < n <= ELEMENTS]
            return Shape(prod(known)) if len(known) == len(sizes) == 4 else None
        members = real_children(node) if node.type == "initializer_list" and type_ == CONTEXT else []
        if len(members) == 2 and (size := integer(self.tree, members[1])) is not None:
            pointer = self.value(members[0])
            if isinstance(pointer, Pointer) and pointer.offset == 0 and size > 0:
                pointer.base.declared = max(pointer.base.declared, size)
                return Lent(pointer.base)
            self.escape(pointer)
            return None
        return self.value(node)

    def _for(self, node: Node) -> None:
        loop = self._loop(node)
        if loop is None:
            self.unread(node)
            return
        outer, before = dict(self.env), self.certain
        self.env[loop.name] = loop
        self.certain = self.certain and loop.exact and loop.end > loop.first
        if loop.end > loop.first:
            self.statement(field(node, "body"))
        self.env, self.certain = outer, before

    def _loop(self, node: Node) -> Loop | None:
        """Return the variable of `for (T i = a; i < b; ++i)`; None for other loops."""
        start, condition, update = (node.child_by_field_name(n) for n in ("initializer", "condition", "update"))
        if start is None or condition is None or update is None or start.type != "declaration":
            return None
        declarators = start.children_by_field_name("declarator")
        if len(declarators) != 1 or declarators[0].type != "init_declarator":
            return None
        name = self.tree.word(field(declarators[0], "declarator"))
        condition = plain(condition)
        if (
            name in self.changed
            or condition.type != "binary_expression"
            or operator_of(condition) not in ("<", "<=")
            or self.tree.word(plain(field(condition, "left"))) != name
            or not adds_one(self.tree, update, name)
        ):
            return None
        first, end = self.value(field(declarators[0], "value")), self.value(field(condition, "right"))
        if isinstance(first, Pointer) or isinstance(end, Pointer):
            return None
        lower, upper = interval(first), interval(end)
        if lower is None or upper is None:
            return None
        exact = lower[0] == lower[1] and upper[0] == upper[1]
        loop = Loop(name, lower[0], upper[1] + (operator_of(condition) == "<="), exact)
        if loop.end > loop.first and fitted(self.tree.word(field(start, "type")), loop) is None:
            return None
        return loop

    def _if(self, node: Node) -> None:
        condition = self.value(field(node, "condition"))
        with self.where(condition, True):
            self.statement(field(node, "consequence"))
        otherwise = node.child_by_field_name("alternative")
        if otherwise is not None:
            with self.where(condition, False):
                for one in real_children(otherwise) if otherwise.type == "else_clause" else [otherwise]:
                    self.statement(one)

# SPDX-License-Identifier: Apache-2.0
"""The memory accesses of an operator, from its C code: which bytes of its arguments and of TVM's pools it uses.

Every statement is read once, with loop variables as symbols. What cannot be read lets its pointers escape: their extent
is then unknown. Nothing is assumed that the code does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Literal

from opwest.frontends.mlf.c_text import Function
from opwest.frontends.mlf.library import ELEMENTS
from opwest.frontends.mlf.unpack.allocations import ALLOCATE, FREE, allocations_of
from opwest.frontends.mlf.unpack.expressions import Loop, fitted, interval, key, product, total
from opwest.frontends.mlf.unpack.functions import (
    CONTEXT,
    DIMS,
    NotUnpackedError,
    Tree,
    Trees,
    field,
    nodes_of,
    not_at_offsets,
    operator_of,
    plain,
    real_children,
    stars_of,
    statements,
)
from opwest.frontends.mlf.unpack.memory import Access, Base, Guard, Lent, Offset, Operator, Pointer, Role, Shape, Value
from opwest.model.types.dtypes import dtype_of_c

if TYPE_CHECKING:
    from tree_sitter import Node

_STATEMENTS = 300_000


def read_operator(function: Function, roles: Sequence[Role], trees: Trees) -> Operator:
    """Return the accesses of an operator. Raises NotUnpackedError if it uses a pool in other ways than at offsets."""
    tree = trees.tree(function.name)
    bases: list[Base] = []
    for parameter, role in zip(function.parameters, roles, strict=True):
        kind: Literal["pool", "argument"] = "pool" if role in ("workspace", "constants") else "argument"
        bases.append(Base(parameter.name, kind))
    allocations = allocations_of(tree, trees)
    walker = _Walker(trees, {allocation.call[0]: allocation.base for allocation in allocations})
    walker.read(tree, function, bases)
    words = trees.words(function.name)
    numbers = {id(base): number for number, base in enumerate(bases)}
    literals = tuple(
        Offset(numbers[id(base)], *span, offset, name) for span, (base, offset, name) in walker.literals.items()
    )
    for number, base in enumerate(bases):
        sites = [tree.text[slice(*literal.name)] for literal in literals if literal.parameter == number]
        if base.kind == "pool" and words.count(base.name) > 1 and not sites:
            raise not_at_offsets(function.name, base.name)
        direct = words.count(base.name) == 1 + len(sites) and {*sites} <= {base.name.encode()}
        if roles[number] == "workspace" and not direct:
            raise not_at_offsets(function.name, base.name)
    return Operator(tree, roles, tuple(bases), literals, allocations, tree.in_order(words))


_PURE = frozenset(
    f"{name}{suffix}"
    for name in "exp log log2 log10 sqrt pow tanh sin cos tan atan sinh cosh erf floor ceil round trunc fabs fmod "
    "nearbyint rint fmax fmin fma".split()
    for suffix in ("", "f")
)
_BINARY = frozenset("+ - * / % >> << & | < <= > >= == !=".split())
_CMSIS_NN = "arm_"
"""The functions of CMSIS-NN begin with it."""
_ALWAYS = 1 << 30
"""The last statement of memory that unknown code can access later."""
_CALLS = 8
"""The maximum depth of calls that are followed."""


class _Walker:
    """Reads the statements and expressions of one operator, and of the functions that it calls."""

    tree: Tree

    def __init__(self, trees: Trees, allocated: Mapping[int, Base]) -> None:
        self.trees, self.allocated = trees, allocated
        self.env: dict[str, Value] = {}
        self.changed: Mapping[str, bool] = {}
        self.literals: dict[tuple[int, int], tuple[Base, int, tuple[int, int]]] = {}
        """By the position of an offset: the pool, the offset, and the position of the pool's name."""
        self.guards: list[Guard] = []
        self.certain = True
        """Whether the current statement runs in every call, for all values of its loops and guards."""
        self.calls: list[str] = []
        self.is_outside, self.phase = True, 0
        """Whether the statement is outside of the operator's loops and conditions; the number of these statements."""
        self.number = 0
        self.count = 0
        """The statements that have been read."""

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
        before, self.certain = self.certain, self.certain and not tree.jumps(checked=len(self.calls) == 1)
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
        if node.type == "compound_statement":
            outer = dict(self.env)
            for inner in statements(node):
                self.statement(inner)
            self.env = outer
            return
        is_outside, self.is_outside = self.is_outside, False
        self.phase += is_outside
        self._statement(node)
        self.is_outside = is_outside

    def _statement(self, node: Node) -> None:
        match node.type:
            case "declaration":
                for declarator in node.children_by_field_name("declarator"):
                    self._declare(self.tree.word(field(node, "type")), declarator)
            case "expression_statement":
                for expression in real_children(node):
                    self.value(expression)
            case "return_statement":
                for expression in real_children(node):
                    self.escape(self.value(expression))
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
            if isinstance(value, Pointer) and value.base.kind == "part" and not value.base.label:
                value.base.label = name
            value = Pointer(value.base, value.offset, size) if isinstance(value, Pointer) else None
        elif isinstance(value, Pointer):
            self.escape(value)
            value = None
        elif not isinstance(value, Lent | Shape):
            value = fitted(type_, value)
        self._name(name, value)

    def _context(self, type_: str, node: Node) -> Value:
        """Return the value of an initializer; structures of CMSIS-NN contain the sizes of memory."""
        if node.type == "initializer_list" and type_ == DIMS:
            sizes = [self.tree.integer(member) for member in real_children(node)]
            known = [n for n in sizes if n is not None and 0 < n <= ELEMENTS]
            return Shape(prod(known)) if len(known) == len(sizes) == 4 else None
        members = real_children(node) if node.type == "initializer_list" and type_ == CONTEXT else []
        if len(members) == 2 and (size := self.tree.integer(members[1])) is not None:
            pointer = self.value(members[0])
            if isinstance(pointer, Pointer) and pointer.offset == 0 and size > 0:
                pointer.base.declared = max(pointer.base.declared, size)
                pointer.base.touch(self.phase, _ALWAYS)
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
            or not self.tree.adds_one(update, name)
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
                for inner in real_children(otherwise) if otherwise.type == "else_clause" else [otherwise]:
                    self.statement(inner)

    # Expressions.

    @contextmanager
    def where(self, condition: Value, true: bool) -> Iterator[None]:
        """Read what runs only if a condition has a value."""
        before = self.certain
        if condition is None or isinstance(condition, Pointer):
            self.certain = False
            yield
        else:
            self.guards.append((condition, true))
            yield
            self.guards.pop()
        self.certain = before

    def unread(self, node: Node) -> None:
        """Let all pointers in a node escape."""
        self.number += 1
        for inner in nodes_of(node):
            if inner.type == "identifier":
                self.escape(self.env.get(self.tree.word(inner)), self.number)

    def value(self, node: Node) -> Value:
        """Return the value of an expression: a pointer, an integer expression, or None; record its accesses."""
        match node.type:
            case "parenthesized_expression":
                inner = real_children(node)
                return self.value(inner[0]) if len(inner) == 1 else self.unread(node)
            case "number_literal":
                number = self.tree.integer(node)
                return None if number is None or self.tree.is_unsigned(node, number) else number
            case "identifier":
                value = self.env.get(self.tree.word(node))
                return None if isinstance(value, Lent | Shape) else value
            case "cast_expression":
                return self._cast(node)
            case "subscript_expression":
                return self._access(self._place(node), reads=True)
            case "pointer_expression":
                if operator_of(node) == "&":
                    return self._place(plain(field(node, "argument")))
                return self._access(self._place(node), reads=True)
            case "binary_expression":
                return self._binary(node)
            case "unary_expression":
                value = self.value(field(node, "argument"))
                self.escape(value)
                name = {"-": "neg", "!": "!"}.get(operator_of(node))
                if value is None or isinstance(value, Pointer) or name is None:
                    return None
                return -value if name == "neg" and isinstance(value, int) else (name, value)
            case "conditional_expression":
                return self._conditional(node)
            case "assignment_expression":
                return self._assign(node)
            case "update_expression":
                target = plain(field(node, "argument"))
                if target.type != "identifier":
                    self._access(self._place(target), reads=True, writes=True)
                return None
            case "call_expression":
                return self._call(node)
            case "initializer_list" | "comma_expression":
                for member in real_children(node):
                    self.escape(self.value(member))
                return None
            case "null" | "sizeof_expression" | "string_literal" | "char_literal" | "true" | "false":
                return None
        self.unread(node)
        return None

    def _cast(self, node: Node) -> Value:
        value, type_ = self.value(field(node, "value")), field(node, "type")
        pointed = self.tree.pointed_type(type_)
        if isinstance(value, Pointer):
            dtype = dtype_of_c(pointed) if pointed is not None else None
            if dtype is not None or pointed == "void":
                return Pointer(value.base, value.offset, dtype.size if dtype else 0)
            if self.tree.word(type_) != "void":
                self.escape(value)
            return None
        return fitted(self.tree.word(type_), value) if pointed is None else None

    def _place(self, node: Node) -> Pointer | None:
        """Return the address of an element."""
        node = plain(node)
        if node.type == "subscript_expression":
            array = self.value(field(node, "argument"))
            index_node = field(node, "index")
            index = self.value(index_node)
            self.escape(index)
            if not isinstance(array, Pointer):
                return None
            if array.base.kind == "pool":
                return self._pool(array, index, plain(index_node), plain(field(node, "argument")))
            if array.size == 0 or isinstance(index, Pointer):
                self.escape(array)
                return None
            return Pointer(array.base, total(array.offset, product(index, array.size)), array.size)
        if node.type == "pointer_expression" and operator_of(node) == "*":
            pointer = self.value(field(node, "argument"))
            return pointer if isinstance(pointer, Pointer) else None
        if node.type != "identifier":
            self.unread(node)
        return None

    def _pool(self, array: Pointer, index: Value, node: Node, name: Node) -> Pointer:
        of_bytes = array.offset == 0 and array.size == 1
        if not isinstance(index, int) or index < 0 or not of_bytes or len(self.calls) > 1:
            raise not_at_offsets(self.calls[0], array.base.name)
        key = (node.start_byte, node.end_byte)  # with its casts, whose types could be too small for a new offset
        self.literals[key] = (array.base, index, (name.start_byte, name.end_byte))
        return Pointer(array.base.part(index), 0, 1)

    def _access(self, pointer: Pointer | None, *, reads: bool = False, writes: bool = False) -> None:
        if pointer is None or pointer.base.kind == "local":
            return
        if pointer.size == 0 or pointer.offset is None or pointer.base.kind == "pool":
            self.escape(pointer)
            return
        pointer.base.touch(self.phase, self.phase)
        guards = tuple((key(condition), true) for condition, true in self.guards)
        for happens, write in ((reads, False), (writes, True)):
            if happens:
                access = Access(pointer.offset, pointer.size, write, tuple(self.guards), self.certain)
                same = (key(pointer.offset), pointer.size, write, self.certain, guards)
                pointer.base.accesses.setdefault(same, access)

    def _binary(self, node: Node) -> Value:
        name = operator_of(node)
        left = self.value(field(node, "left"))
        if name in ("&&", "||"):
            with self.where(left, name == "&&"):
                right = self.value(field(node, "right"))
        else:
            right = self.value(field(node, "right"))
        if isinstance(left, Pointer) and name in ("+", "-") and not isinstance(right, Pointer) and left.size:
            step = product(right, left.size if name == "+" else -left.size)
            if left.base.kind != "pool":
                return Pointer(left.base, total(left.offset, step), left.size)
        if name not in ("==", "!="):
            self.escape(left)
            self.escape(right)
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return None
        if name in ("&&", "||"):
            # An unknown part keeps the other one as a condition.
            return None if left is None and right is None else (name, left, right)
        if name in ("%", "&") and left is None and isinstance(right, int):
            return (name, None, right)
        if name not in _BINARY or left is None or right is None:
            return None
        if name == "+":
            return total(left, right)
        return product(left, right) if name == "*" else (name, left, right)

    def _conditional(self, node: Node) -> Value:
        test = plain(field(node, "condition"))
        condition = self.value(test)
        with self.where(condition, True):
            chosen = self.value(field(node, "consequence"))
        with self.where(condition, False):
            other = self.value(field(node, "alternative"))
        if isinstance(chosen, Pointer) or isinstance(other, Pointer):
            self.escape(chosen)
            self.escape(other)
            return None
        if chosen is None or other is None:
            return None
        if test.type == "binary_expression" and operator_of(test) in ("<", ">"):
            words = [self.tree.word(plain(field(test, side))) for side in ("left", "right")]
            if words == [self.tree.word(plain(field(node, side))) for side in ("consequence", "alternative")]:
                return ("min" if operator_of(test) == "<" else "max", chosen, other)
        return None if condition is None else ("?:", condition, chosen, other)

    def _assign(self, node: Node) -> None:
        value = self.value(field(node, "right"))
        self.escape(value)
        target = plain(field(node, "left"))
        if target.type != "identifier":
            self._access(self._place(target), reads=operator_of(node) != "=", writes=True)

    def _call(self, node: Node) -> Value:
        function = plain(field(node, "function"))
        name = self.tree.word(function) if function.type == "identifier" else ""
        arguments = real_children(field(node, "arguments"))
        values = [self.value(argument) for argument in arguments]
        if name == ALLOCATE:
            own = self.allocated.get(node.start_byte) if len(self.calls) == 1 else None
            return Pointer(own or Base(name, "local"), 0, 0)
        function_known = self.trees.functions.get(name) if name not in self.env else None
        pointers = any(isinstance(value, Pointer) for value in values)
        if name == FREE or (name in _PURE and not pointers):
            return None
        if function_known is not None and len(function_known.parameters) == len(values) and len(self.calls) < _CALLS:
            if name in self.calls:
                raise NotUnpackedError(f"'{name}' is recursive")
            for argument, value in zip(arguments, values, strict=True):
                if isinstance(value, Pointer) and value.base.kind == "pool":
                    self.escape(value)
                self.escape(self._structure(argument))
            self.read(self.trees.tree(name), function_known, values)
            return None
        if name not in self.env and not name:
            self.unread(function)
        self.number += 1
        before: Value = None
        for argument, value in zip(arguments, values, strict=True):
            self.escape(value, self.number)
            described = isinstance(before, Shape) and name.startswith(_CMSIS_NN)
            if described and isinstance(value, Pointer) and value.offset == 0 and value.size:
                known = value.base.sized.get(self.number, 0)
                value.base.sized[self.number] = max(known, before.elements * value.size)
            before = self._structure(argument)
            if isinstance(before, Lent):
                before.base.lent.add(self.number)
        return None

    def _structure(self, node: Node) -> Lent | Shape | None:
        """Return the structure whose address is an argument."""
        value = self.env.get(self.tree.word(field(node, "argument"))) if node.type == "pointer_expression" else None
        return value if isinstance(value, Lent | Shape) else None

    def escape(self, value: Value, number: int | None = None) -> None:
        """Record that other code can use a pointer, or the memory of a structure."""
        if not isinstance(value, Pointer | Lent):
            return
        if value.base.kind == "pool":
            raise not_at_offsets(self.calls[0], value.base.name)
        if number is None:
            self.number += 1
            number = self.number
        value.base.escapes.add(number)
        value.base.touch(self.phase, _ALWAYS)

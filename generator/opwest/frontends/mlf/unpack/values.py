# SPDX-License-Identifier: Apache-2.0
"""The expressions of an operator: their values, and the memory that they access."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.c_text import Function
from opwest.frontends.mlf.unpack.expressions import Expression, interval
from opwest.frontends.mlf.unpack.functions import (
    INTEGERS,
    NotUnpackedError,
    Tree,
    Trees,
    field,
    integer,
    is_unsigned,
    operator_of,
    plain,
    pointed_type,
    real_children,
)
from opwest.frontends.mlf.unpack.memory import Access, Base, Guard
from opwest.model.types.dtypes import dtype_of_c

if TYPE_CHECKING:
    from tree_sitter import Node


_WRAPPING = frozenset(["size_t", "uint32_t", "uint64_t"])
"""Types whose arithmetic wraps: expressions have no types, and are those of signed integers."""


@dataclass(frozen=True)
class Pointer:
    """An address: a base, a byte offset, and the size of an element, 0 for void."""

    base: Base
    offset: Expression
    size: int


@dataclass(frozen=True)
class Lent:
    """A structure that passes memory with its size to a library."""

    base: Base


@dataclass(frozen=True)
class Shape:
    """A structure that passes the number of elements of the next argument to a library."""

    elements: int


Value = Any
"""Pointer | Expression"""


def fitted(type_: str, value: Value) -> Value:
    """Return an integer after conversion to a type; None if it could change."""
    limits = None if type_ in _WRAPPING else INTEGERS.get(type_)
    bounds = None if limits is None else interval(value)
    if limits is None or bounds is None or not limits[0] <= bounds[0] <= bounds[1] <= limits[1]:
        return None
    return value


def total(left: Expression, right: Expression) -> Expression:
    """Return a sum; of constants, a number."""
    if left is None or right is None:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if isinstance(left, int) and left == 0:
        return right
    return left if isinstance(right, int) and right == 0 else ("+", left, right)


def product(left: Expression, right: Expression) -> Expression:
    """Return a product; of constants, a number."""
    if left is None or right is None:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return left if isinstance(right, int) and right == 1 else ("*", left, right)


def key(expression: Expression) -> Any:
    """Return a number or the identity of an expression, to recognize it again."""
    return expression if isinstance(expression, int) else id(expression)


def key_of_guard(guard: Guard) -> tuple[Any, bool]:
    """Return the key of a condition with its value."""
    return key(guard[0]), guard[1]


_PURE = frozenset(
    f"{name}{suffix}"
    for name in "exp log log2 log10 sqrt pow tanh sin cos tan atan sinh cosh erf floor ceil round trunc fabs fmod "
    "nearbyint rint fmax fmin fma".split()
    for suffix in ("", "f")
)
_BINARY = frozenset("+ - * / % >> << & | < <= > >= == !=".split())
_CMSIS_NN = "arm_"
"""The functions of CMSIS-NN begin with it."""
_CALLS = 8
"""The maximum depth of calls that are followed."""


def not_at_offsets(function: str, pool: Base) -> NotUnpackedError:
    """Return the error for an operator that does not use a pool at constant offsets."""
    return NotUnpackedError(f"'{function}' uses '{pool.name}' other than at constant offsets")


class Values(ABC):
    """Reads the expressions of an operator, and of the functions that it calls."""

    tree: Tree

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        self.env: dict[str, Value] = {}
        self.changed: Mapping[str, bool] = {}
        self.literals: dict[tuple[int, int], tuple[Base, int, int, int]] = {}
        self.guards: list[Guard] = []
        self.certain = True
        """Whether the current statement runs in every call, for all values of its loops and guards."""
        self.calls: list[str] = []
        self.number = 0

    @abstractmethod
    def read(self, tree: Tree, function: Function, values: Sequence[Value]) -> None:
        """Read a function with the values of its parameters."""

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
        pending = [node]
        self.number += 1
        while pending:
            one = pending.pop()
            pending += one.named_children
            if one.type == "identifier":
                self.escape(self.env.get(self.tree.word(one)), self.number)

    def value(self, node: Node) -> Value:
        """Return the value of an expression: a pointer, an integer expression, or None; record its accesses."""
        match node.type:
            case "parenthesized_expression":
                inner = real_children(node)
                return self.value(inner[0]) if len(inner) == 1 else self.unread(node)
            case "number_literal":
                number = integer(self.tree, node)
                return None if number is None or is_unsigned(self.tree.word(node), number) else number
            case "identifier":
                found = self.env.get(self.tree.word(node))
                return None if isinstance(found, Lent | Shape) else found
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
                for one in real_children(node):
                    self.escape(self.value(one))
                return None
            case "null" | "sizeof_expression" | "string_literal" | "char_literal" | "true" | "false":
                return None
        self.unread(node)
        return None

    def _cast(self, node: Node) -> Value:
        value, type_ = self.value(field(node, "value")), field(node, "type")
        pointed = pointed_type(self.tree, type_)
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
                return self._pool(array, index, plain(index_node))
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

    def _pool(self, array: Pointer, index: Value, node: Node) -> Pointer:
        of_bytes = array.offset == 0 and array.size == 1
        if not isinstance(index, int) or index < 0 or not of_bytes or len(self.calls) > 1:
            raise not_at_offsets(self.calls[0], array.base)
        key = (node.start_byte, node.end_byte)  # with its casts, whose types could be too small for a new offset
        self.literals[key] = (array.base, *key, index)
        return Pointer(array.base.part(index), 0, 1)

    def _access(self, pointer: Pointer | None, *, reads: bool = False, writes: bool = False) -> None:
        if pointer is None or pointer.base.kind == "local":
            return
        if pointer.size == 0 or pointer.offset is None or pointer.base.kind == "pool":
            self.escape(pointer)
            return
        for happens, write in ((reads, False), (writes, True)):
            if happens:
                access = Access(pointer.offset, pointer.size, write, tuple(self.guards), self.certain)
                same = (key(pointer.offset), pointer.size, write, self.certain, *(map(key_of_guard, self.guards)))
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
            one = self.value(field(node, "consequence"))
        with self.where(condition, False):
            other = self.value(field(node, "alternative"))
        if isinstance(one, Pointer) or isinstance(other, Pointer):
            self.escape(one)
            self.escape(other)
            return None
        if one is None or other is None:
            return None
        if test.type == "binary_expression" and operator_of(test) in ("<", ">"):
            words = [self.tree.word(plain(field(test, side))) for side in ("left", "right")]
            if words == [self.tree.word(plain(field(node, side))) for side in ("consequence", "alternative")]:
                return ("min" if operator_of(test) == "<" else "max", one, other)
        return None if condition is None else ("?:", condition, one, other)

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
        if name == "TVMBackendAllocWorkspace":
            return Pointer(Base(name, "local"), 0, 0)
        function_known = self.trees.functions.get(name) if name not in self.env else None
        pointers = any(isinstance(value, Pointer) for value in values)
        if name == "TVMBackendFreeWorkspace" or (name in _PURE and not pointers):
            return None
        if function_known is not None and len(function_known.parameters) == len(values) and len(self.calls) < _CALLS:
            if name in self.calls:
                raise NotUnpackedError(f"'{name}' is recursive")
            for one, value in zip(arguments, values, strict=True):
                if isinstance(value, Pointer) and value.base.kind == "pool":
                    self.escape(value)
                self.escape(self._structure(one))
            self.read(self.trees.tree(name), function_known, values)
            return None
        if name not in self.env and not name:
            self.unread(function)
        self.number += 1
        before: Value = None
        for one, value in zip(arguments, values, strict=True):
            self.escape(value, self.number)
            described = isinstance(before, Shape) and name.startswith(_CMSIS_NN)
            if described and isinstance(value, Pointer) and value.offset == 0 and value.size:
                known = value.base.sized.get(self.number, 0)
                value.base.sized[self.number] = max(known, before.elements * value.size)
            before = self._structure(one)
            if isinstance(before, Lent):
                before.base.lent.add(self.number)
        return None

    def _structure(self, node: Node) -> Lent | Shape | None:
        """Return the structure whose address is an argument."""
        found = self.env.get(self.tree.word(field(node, "argument"))) if node.type == "pointer_expression" else None
        return found if isinstance(found, Lent | Shape) else None

    def escape(self, value: Value, number: int | None = None) -> None:
        """Record that other code can use a pointer, or the memory of a structure."""
        if not isinstance(value, Pointer | Lent):
            return
        if value.base.kind == "pool":
            raise not_at_offsets(self.calls[0], value.base)
        if number is None:
            self.number += 1
            number = self.number
        value.base.escapes.add(number)

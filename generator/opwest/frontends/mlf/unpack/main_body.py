# SPDX-License-Identifier: Apache-2.0
"""The statements of an ahead-of-time main: its memory, the hooks of devices, and the calls of operators in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Literal

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.names import free_name
from opwest.frontends.mlf.inner import ALIGN
from opwest.frontends.mlf.library import ELEMENTS
from opwest.frontends.mlf.unpack.functions import (
    NotUnpackedError,
    Tree,
    field,
    operator_of,
    plain,
    real_children,
    stars_of,
    statements,
)
from opwest.model.types.dtypes import dtype_of_c

if TYPE_CHECKING:
    from tree_sitter import Node

PlaceKind = Literal["input", "output", "device", "workspace", "constants", "pool", "allocated", "array"]

_HOOK = re.compile(r"TVMDevice\w*?(Activate|Open|Close|Deactivate)\Z")


@dataclass(frozen=True)
class Location:
    """A value that main passes.

    input, output, device: `name` is the parameter of main. pool: a whole workspace or structure of constants.
    workspace, constants: memory at an offset of the pool `pool`; `name` is main's variable. allocated: memory from
    TVMBackendAllocWorkspace; `offset` is its size. array: a constant array of the source.
    """

    kind: PlaceKind
    name: str
    offset: int = 0
    pool: str = ""


@dataclass(frozen=True)
class Call:
    """A call of an operator."""

    function: str
    args: tuple[Location, ...]
    top: int = 0
    """The bytes of main's stack of allocations."""


@dataclass
class Main:
    """The content of main."""

    calls: list[Call] = dataclass_field(default_factory=list)
    hooks: dict[str, list[str]] = dataclass_field(default_factory=dict)
    """The hooks that main calls, by the device's parameter."""
    stack: dict[str, int] = dataclass_field(default_factory=dict)
    """The offset of each allocation in the stack."""
    hook_functions: set[str] = dataclass_field(default_factory=set)


def has_bytes(type_: str) -> bool:
    """Return whether a pointer to a type counts in bytes."""
    dtype = dtype_of_c(type_)
    return type_ == "void" or (dtype is not None and dtype.size == 1)


def read_main(tree: Tree, parameters: Mapping[str, Location], arrays: Iterable[str], operators: Iterable[str]) -> Main:
    """Return the calls of main. `operators` have C code. Raises NotUnpackedError for anything else than calls."""
    reader = _Reader(tree, dict(parameters), frozenset(arrays), frozenset(operators))
    reader.block(tree.body)
    if not reader.main.calls:
        raise NotUnpackedError("main calls no operator")
    return reader.main


class _Reader:
    def __init__(self, tree: Tree, env: dict[str, Location], arrays: frozenset[str], operators: frozenset[str]) -> None:
        self.tree = tree
        self.env: dict[str, Location | None] = {**env}
        self.arrays = arrays
        self.operators = operators
        self.main = Main()
        self.ended = False
        self.names: set[str] = set()
        """The names of main's memory: variables of different blocks can have the same name."""
        self.freed: set[str] = set()
        self.live: dict[str, int] = {}
        """The ends of the allocations that are not freed."""

    def unknown(self, node: Node) -> NotUnpackedError:
        """Return the error for an expression or statement that is not one of TVM's."""
        return NotUnpackedError(f"main contains `{self.tree.quoted(node)}`")

    def block(self, compound: Node) -> None:
        """Read the statements of a block. Names declared in it are not visible after it."""
        outer = dict(self.env)
        for node in statements(compound):
            if self.ended:
                raise self.unknown(node)
            self.statement(node)
        self.env = {name: place for name, place in self.env.items() if name in outer}

    def statement(self, node: Node) -> None:
        """Read one statement."""
        match node.type:
            case "compound_statement":
                self.block(node)
            case "declaration":
                self.declaration(node)
            case "expression_statement":
                if inner := real_children(node):
                    call = plain(inner[0])
                    is_void = call.type == "cast_expression" and self.tree.word(field(call, "type")) == "void"
                    self.call(plain(field(call, "value")) if is_void else call)
            case "if_statement":
                self.check(node)
            case "return_statement":
                values = real_children(node)
                if len(values) != 1 or self.tree.integer(values[0]) != 0:
                    raise self.unknown(node)
                self.ended = True
            case _:
                raise self.unknown(node)

    def declaration(self, node: Node) -> None:
        """Read the declaration of a variable: a pointer to memory, or an unused number."""
        declarators = node.children_by_field_name("declarator")
        if len(declarators) != 1 or declarators[0].type != "init_declarator":
            raise self.unknown(node)
        inner, stars, other = stars_of(field(declarators[0], "declarator"))
        value = plain(field(declarators[0], "value"))
        name = self.tree.word(inner)
        if name in self.env or name in self.arrays:
            raise NotUnpackedError(f"main declares '{name}' more than once")
        if stars == 0 and not other:
            if self.tree.integer(value) is None:
                raise self.unknown(node)
            self.env[name] = None
            return
        if stars != 1 or other:
            raise self.unknown(node)
        while value.type == "cast_expression" and self.tree.pointed_type(field(value, "type")) is not None:
            value = plain(field(value, "value"))
        if value.type == "call_expression":
            self.env[name] = self.allocation(value, name)
            return
        place = self.place(value)
        if place.kind == "pool" and not has_bytes(self.tree.word(field(node, "type"))):
            raise self.unknown(node)
        if place.kind in ("workspace", "constants"):
            place = Location(place.kind, free_name(name, self.names), place.offset, place.pool)
        self.env[name] = place

    def allocation(self, node: Node, name: str) -> Location:
        """Return the memory of `TVMBackendAllocWorkspace(type, id, size, code, bits)`."""
        args = real_children(field(node, "arguments"))
        if self.tree.word(field(node, "function")) != "TVMBackendAllocWorkspace" or len(args) != 5:
            raise self.unknown(node)
        size = self.tree.integer(args[2])
        if size is None or not 0 < size <= ELEMENTS:
            raise NotUnpackedError(f"main allocates `{self.tree.quoted(args[2])}` bytes")
        place = Location("allocated", free_name(name, self.names), size)
        self.main.stack[place.name] = self.top
        self.live[place.name] = self.top + size + -size % ALIGN
        return place

    @property
    def top(self) -> int:
        """The bytes of the stack of allocations."""
        return max(self.live.values(), default=0)

    def check(self, node: Node) -> None:
        """Read `if (call != 0) return -1;` or `if (pointer == NULL) return -1;`."""
        consequence = field(node, "consequence")
        inner = list(statements(consequence)) if consequence.type == "compound_statement" else [consequence]
        values = real_children(inner[0]) if len(inner) == 1 and inner[0].type == "return_statement" else []
        fails = len(values) == 1 and self.tree.integer(values[0]) not in (None, 0)
        condition = plain(field(node, "condition"))
        if not fails or node.child_by_field_name("alternative") is not None or condition.type != "binary_expression":
            raise self.unknown(node)
        left, right = plain(field(condition, "left")), plain(field(condition, "right"))
        zero = right.type == "null" or self.tree.integer(right) == 0
        if operator_of(condition) == "!=" and zero and left.type == "call_expression":
            self.call(left)
        elif operator_of(condition) != "==" or not zero or self.place(left).kind != "allocated":
            raise self.unknown(node)

    def call(self, node: Node) -> None:
        """Read a call of an operator, of a hook, or of TVMBackendFreeWorkspace."""
        if node.type != "call_expression":
            raise self.unknown(node)
        name = self.tree.word(field(node, "function"))
        args = real_children(field(node, "arguments"))
        if name == "TVMBackendFreeWorkspace" and len(args) == 3:
            place = self.place(args[2])
            if place.kind != "allocated" or place.name in self.freed:
                raise self.unknown(node)
            self.freed.add(place.name)
            del self.live[place.name]
            return
        hook = _HOOK.match(name)
        if hook is not None and len(args) == 1 and name not in self.operators:
            place = self.place(args[0])
            if place.kind != "device":
                raise self.unknown(node)
            self.main.hooks.setdefault(place.name, []).append(hook[1])
            self.main.hook_functions.add(name)
            return
        if name not in self.operators:
            raise NotUnpackedError(f"main calls '{name}', which has no C source")
        places = tuple(self.place(arg) for arg in args)
        for place in places:
            if place.name in self.freed and place.kind == "allocated":
                raise NotUnpackedError(f"main passes '{place.name}' after it is freed")
        self.main.calls.append(Call(name, places, self.top))

    def place(self, node: Node) -> Location:
        """Return the memory that an expression denotes."""
        node = plain(node)
        if node.type == "cast_expression" and self.tree.pointed_type(field(node, "type")) is not None:
            return self.place(field(node, "value"))
        if node.type == "identifier":
            name = self.tree.word(node)
            place = self.env.get(name)
            if place is not None:
                return place
            if name in self.arrays and name not in self.env:
                return Location("array", name)
        if node.type == "pointer_expression" and operator_of(node) == "&":
            inner = plain(field(node, "argument"))
            if inner.type == "subscript_expression":
                array = plain(field(inner, "argument"))
                if array.type != "identifier":  # the elements of a cast can be larger than bytes
                    raise self.unknown(node)
                return self.element(inner, self.place(array))
        raise self.unknown(node)

    def element(self, node: Node, pool: Location) -> Location:
        """Return the memory at `&pool[offset]`."""
        offset = self.tree.integer(field(node, "index"))
        if pool.kind != "pool" or offset is None or offset < 0:
            raise self.unknown(node)
        kind: PlaceKind = "constants" if pool.pool == "constants" else "workspace"
        return Location(kind, f"{kind}_{offset}", offset, pool.name)

# SPDX-License-Identifier: Apache-2.0
"""The functions of a model as trees, each parsed once: the variables that they change, and their jumps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.c_text import Function
from opwest.objects.c_masking import mask
from opwest.objects.c_source import syntax_tree
from opwest.objects.facts import ObjectError

if TYPE_CHECKING:
    from tree_sitter import Node


MAX_DEPTH = 200
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
_UNORDERED = frozenset("restrict __restrict __restrict__ setjmp _setjmp sigsetjmp".split())
"""Words of functions with pointers that are declared as separate, and of functions that jump back."""
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


def not_at_offsets(function: str, pool: str) -> NotUnpackedError:
    """Return the error for an operator that does not use a pool at constant offsets."""
    return NotUnpackedError(f"'{function}' uses '{pool}' other than at constant offsets")


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
        body = self.node.child_by_field_name("body")
        assert body is not None
        return body

    def pointed_type(self, descriptor: Node) -> str | None:
        """Return T of a type descriptor `T *`, without qualifiers; None for other types."""
        declarator = descriptor.child_by_field_name("declarator")
        if declarator is None or declarator.type != "abstract_pointer_declarator":
            return None
        return self.word(field(descriptor, "type")) if stars_of(declarator)[1] == 1 else None

    def integer(self, node: Node) -> int | None:
        """Return the value of an integer literal, with casts that do not change it; None for other expressions."""
        node = plain(node)
        if node.type == "cast_expression":
            value, limits = self.integer(field(node, "value")), INTEGERS.get(self.word(field(node, "type")), (0, 0))
            return value if value is not None and limits[0] <= value <= limits[1] else None
        if node.type != "number_literal":
            return None
        digits = self.word(node).rstrip("uUlL")
        try:
            return int(digits, 0) if len(digits) < 20 else None
        except ValueError:
            return int(digits, 8) if digits.isdigit() and not set(digits) & set("89") else None

    def is_unsigned(self, literal: Node, value: int) -> bool:
        """Return whether the type of an integer literal can be unsigned (ISO C11 6.4.4.1): its arithmetic wraps."""
        text = self.word(literal).lower()
        return "u" in text or (text.startswith("0") and abs(value) > INTEGERS["int"][1])

    def adds_one(self, update: Node, name: str) -> bool:
        """Return whether the update of a `for` statement adds one to a variable."""
        return self.word(plain(update)) in (f"++{name}", f"{name}++", f"++ {name}", f"{name} += 1")

    def in_order(self, words: Iterable[str]) -> bool:
        """Return whether no statement of the body runs after a later one, and no pointers are declared as separate.

        `words` are those of the function.
        """
        labels = any(node.type == "labeled_statement" for node in nodes_of(self.body))
        return not labels and _UNORDERED.isdisjoint(words)

    def jumps(self, *, checked: bool) -> bool:
        """Return whether statements can be skipped: by jumps, or `return`; not of errors if the status is `checked`."""
        last = list(statements(self.body))[-1:]
        for node in nodes_of(self.body):
            if node.type in ("goto_statement", "break_statement", "continue_statement", "labeled_statement"):
                return True
            if node.type == "return_statement" and node not in last:
                values = real_children(node)
                if not checked or len(values) != 1 or self.integer(values[0]) in (None, 0):
                    return True
        return False


def tree_of(function: Function, source: str) -> Tree:
    """Return the tree of a function. Raises NotUnpackedError if it is not C, or has parts that a tree does not show."""
    own = source[function.start : function.end]
    for match in _TOKEN.finditer(own):
        if match["hidden"]:
            raise NotUnpackedError(f"'{function.name}' contains `{match['hidden']}`")
    text = mask(own.encode())
    try:
        root = syntax_tree(text)
    except ObjectError as error:
        raise NotUnpackedError(f"'{function.name}': {error.message}") from None
    definitions = [n for n in root.named_children if n.type == "function_definition"]
    if len(definitions) != 1 or root.has_error or _depth(definitions[0]) > MAX_DEPTH:
        raise NotUnpackedError(f"'{function.name}' cannot be parsed")
    return Tree(function, text, definitions[0])


def _depth(root: Node) -> int:
    """Return the nesting of a tree, without recursion."""
    most, level = 0, [root]
    while level and most <= 3 * MAX_DEPTH:
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
    child = node.child_by_field_name(name)
    assert child is not None
    return child


def operator_of(node: Node) -> str:
    """Return the operator of an expression."""
    child = node.child_by_field_name("operator")
    return child.type if child is not None else ""


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


@dataclass
class Trees:
    """The trees of a model's functions. Each is parsed once."""

    functions: Mapping[str, Function]
    sources: Mapping[str, str]
    """The source of each function."""
    meanings: Mapping[str, str]
    """Words with another meaning than that of C, as in `sources.meanings`."""
    reasons: Mapping[str, str]
    """Functions that cannot be read, as in `sources.reasons`."""
    main: str = ""
    """The name of main."""

    def __post_init__(self) -> None:
        self._trees: dict[str, Tree] = {}
        self._changed: dict[str, dict[str, bool]] = {}

    def words(self, name: str) -> list[str]:
        """Return the words of a function, also those that the masked text does not contain."""
        function = self.functions[name]
        tokens = _TOKEN.finditer(self.sources[name], function.start, function.end)
        return [match["word"] for match in tokens if match["word"]]

    @cached_property
    def called(self) -> set[str]:
        """The words of functions other than main, without their own names."""
        others = (name for name in self.functions if name != self.main)
        return {word for name in others for word in self.words(name) if word != name}

    def tree(self, name: str) -> Tree:
        """Return the tree of a function. Raises NotUnpackedError."""
        if name not in self._trees:
            if name in self.reasons:
                raise NotUnpackedError(self.reasons[name])
            for word in self.words(name):
                if word in self.meanings:
                    raise NotUnpackedError(f"'{name}' uses {self.meanings[word]}")
            self._trees[name] = tree_of(self.functions[name], self.sources[name])
        return self._trees[name]

    def changed(self, name: str) -> Mapping[str, bool]:
        """Return the variables that a function changes after their declaration, other than by `for`.

        False: only calls receive the address of the variable.
        """
        if name not in self._changed:
            variables: dict[str, bool] = {}
            for variable, assigned in _changed(self.tree(name)):
                variables[variable] = variables.get(variable, False) or assigned
            self._changed[name] = variables
        return self._changed[name]


def nodes_of(root: Node) -> Iterator[Node]:
    """Yield a node and all named nodes inside it, the last ones first."""
    pending = [root]
    while pending:
        node = pending.pop()
        pending += node.named_children
        yield node


def _changed(tree: Tree) -> Iterator[tuple[str, bool]]:
    """Yield the variables that a function changes; False: a call receives the address."""
    counted: set[int] = set()
    for node in nodes_of(tree.body):
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
    names = [tree.word(stars_of(declarator)[0]) for declarator in start.children_by_field_name("declarator")]
    return update if any(tree.adds_one(update, name) for name in names) else None

# SPDX-License-Identifier: Apache-2.0
"""The memory that an operator takes from TVMBackendAllocWorkspace, where it can become scratch arguments.

Without the calls, the plan contains exactly the bytes of the memory, and none for the function's bookkeeping.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opwest.frontends.mlf.inner import ALIGN
from opwest.frontends.mlf.library import ELEMENTS
from opwest.frontends.mlf.unpack.functions import (
    Tree,
    Trees,
    field,
    operator_of,
    plain,
    real_children,
    stars_of,
    statements,
)
from opwest.frontends.mlf.unpack.memory import Allocation, Base

if TYPE_CHECKING:
    from tree_sitter import Node

ALLOCATE, FREE = "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace"


def allocations_of(tree: Tree, trees: Trees) -> tuple[Allocation, ...]:
    """Return all memory that an operator allocates; none unless all of it can become scratch arguments.

    These are allocations of a constant size, as the value of a variable, and checked frees, both outside of loops and
    conditions, in an operator that no other one calls, and that calls no function with another allocation.
    """
    own = tree.function.name
    words = trees.words(own)
    if ALLOCATE not in words or own in trees.called or _allocates_elsewhere(own, trees):
        return ()
    found: dict[str, Allocation] = {}
    live: dict[str, int] = {}
    for node in _outside(tree.body):
        allocated, freed = _allocated(tree, node), _freed(tree, node)
        if allocated is not None:
            name, size, call = allocated
            if name in found:
                return ()
            start = max(live.values(), default=0)
            live[name] = start + size + -size % ALIGN
            found[name] = Allocation(Base(name, "part", label=name), size, start, call, ())
        elif freed in live:
            known = found[freed]
            span = (*known.freed, (node.start_byte, node.end_byte))
            found[freed] = Allocation(known.base, known.size, known.offset, known.call, span)
            del live[freed]
    counts = len(found), sum(len(one.freed) for one in found.values())
    is_whole = (words.count(ALLOCATE), words.count(FREE)) == counts
    return tuple(found.values()) if is_whole and found.keys().isdisjoint(trees.changed(own)) else ()


def _allocates_elsewhere(function: str, trees: Trees) -> bool:
    """Return whether a function that an operator calls allocates memory."""
    seen, pending = {function}, [function]
    while pending:
        for name in trees.words(pending.pop()):
            if name in trees.functions and name not in seen:
                if ALLOCATE in trees.words(name):
                    return True
                seen.add(name)
                pending.append(name)
    return False


def _outside(compound: Node) -> Iterator[Node]:
    """Yield the statements outside of loops and conditions."""
    for node in statements(compound):
        if node.type == "compound_statement":
            yield from _outside(node)
        else:
            yield node


def _allocated(tree: Tree, node: Node) -> tuple[str, int, tuple[int, int]] | None:
    """Return the variable, the bytes and the position of the call of `T* x = TVMBackendAllocWorkspace(…)`."""
    declarators = node.children_by_field_name("declarator") if node.type == "declaration" else []
    if len(declarators) != 1 or declarators[0].type != "init_declarator":
        return None
    call = plain(field(declarators[0], "value"))
    while call.type == "cast_expression":
        call = plain(field(call, "value"))
    name, stars, other = stars_of(field(declarators[0], "declarator"))
    args = _arguments(tree, call, ALLOCATE)
    size = tree.integer(args[2]) if len(args) == 5 else None
    if size is None or not 0 < size <= ELEMENTS or stars != 1 or other:
        return None
    return tree.word(name), size, (call.start_byte, call.end_byte)


def _freed(tree: Tree, node: Node) -> str | None:
    """Return the variable of `if (TVMBackendFreeWorkspace(…, x) != 0) return -1;`."""
    if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
        return None
    condition, consequence = plain(field(node, "condition")), field(node, "consequence")
    inner = list(statements(consequence)) if consequence.type == "compound_statement" else [consequence]
    if condition.type != "binary_expression" or operator_of(condition) != "!=" or len(inner) != 1:
        return None
    args = _arguments(tree, plain(field(condition, "left")), FREE)
    if inner[0].type != "return_statement" or tree.integer(field(condition, "right")) != 0 or len(args) != 3:
        return None
    return tree.word(plain(args[2]))


def _arguments(tree: Tree, node: Node, function: str) -> list[Node]:
    if node.type != "call_expression" or tree.word(field(node, "function")) != function:
        return []
    return real_children(field(node, "arguments"))

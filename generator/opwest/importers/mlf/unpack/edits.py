# SPDX-License-Identifier: Apache-2.0
"""Changes of the C sources of an unpacked model: offsets, unused parameters, constants that main passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from opwest.importers.mlf.unpack.accesses import Operator, Role
from opwest.importers.mlf.unpack.scratch import Group, Moved
from opwest.importers.mlf.unpack.sources import Edit, Source
from opwest.importers.mlf.unpack.syntax import NotUnpackedError, field, tree_of

if TYPE_CHECKING:
    from opwest.importers.mlf.unpack.steps import Request


def changed_sources(
    operators: Mapping[str, Operator],
    roles: Mapping[str, Sequence[Role]],
    request: Request,
    sources: Mapping[str, Source],
    moved: Mapping[str, Moved],
    groups: Mapping[str, Group],
    passed: Collection[str],
    hooks: Collection[str],
) -> tuple[dict[str, str], dict[str, list[int]]]:
    """Return the changed sources by name, and the dropped parameters of each operator.

    Main, and the prototypes of it and of the hooks of devices, are removed. Offsets are those of the new memory.
    Parameters for pools that an operator does not use are removed; constant arrays (`passed`) that only main mentions
    are constants of the manifest and leave the sources.
    """
    inside = main_mentions(request)
    edits: dict[str, list[Edit]] = {name: [] for name in sources}
    dropped: dict[str, list[int]] = {}
    for name, operator in operators.items():
        source = request.sources[name]
        new: dict[int, Mapping[int, int]] = {}
        unused = []
        for number, (base, role) in enumerate(zip(operator.bases, roles[name], strict=True)):
            if role == "workspace":
                new[number] = moved[name].offsets
            elif role == "constants" and name in groups:
                new[number] = groups[name].offsets
            if role in ("workspace", "constants") and not base.parts:
                unused.append(number)
        edits[source] += offset_edits(operator, sources[source], new)
        if unused:
            edits[source] += parameter_edits(operator, sources[source], unused)
            dropped[name] = unused
            for file, one in sources.items():
                uses = one.mentions.get(name, 0) - len(one.prototypes.get(name, ()))
                if uses - (file == source) - (inside[name] if file == request.sources[request.main.name] else 0) > 0:
                    raise NotUnpackedError(f"'{name}' is used in {file} by other code than main")
                edits[file] += [one.removed(n) for n in one.prototypes.get(name, ())]
    file = request.sources[request.main.name]
    start = len(sources[file].text[: request.main.start].encode())
    length = len(sources[file].text[request.main.start : request.main.end].encode())
    edits[file].append(Edit(start, start + length))
    for name in (request.main.name, *hooks):
        for file, one in sources.items():
            edits[file] += [one.removed(n) for n in one.prototypes.get(name, ())]
    for name in passed:
        for file, one in sources.items():
            if name in one.arrays and one.mentions[name] == 1 + inside[name]:
                edits[file].append(one.removed(one.arrays[name]))
    return {name: one.changed(edits[name]) for name, one in sources.items() if edits[name]}, dropped


def main_mentions(request: Request) -> Counter[str]:
    """Return how often main contains each name."""
    tree = tree_of(request.main, request.texts[request.sources[request.main.name]])
    pending, found = [tree.body], Counter[str]()
    while pending:
        node = pending.pop()
        pending += node.named_children
        if node.type == "identifier":
            found[tree.word(node)] += 1
    return found


def start_of(operator: Operator, source: Source) -> int:
    """Return the start of an operator in its source in UTF-8, bytes."""
    return len(source.text[: operator.tree.function.start].encode())


def offset_edits(operator: Operator, source: Source, moved: Mapping[int, Mapping[int, int]]) -> list[Edit]:
    """Return the edits of offsets in pools; `moved` has new offsets by parameter and old offset."""
    base = start_of(operator, source)
    return [
        Edit(base + one.start, base + one.end, str(moved[one.parameter][one.offset]))
        for one in operator.literals
        if moved[one.parameter][one.offset] != one.offset
    ]


def parameter_edits(operator: Operator, source: Source, dropped: Sequence[int]) -> list[Edit]:
    """Return the edit that removes parameters of a definition."""
    if not dropped:
        return []
    declarator = field(operator.tree.node, "declarator")
    listed = declarator.child_by_field_name("parameters")
    while listed is None:
        declarator = field(declarator, "declarator")
        listed = declarator.child_by_field_name("parameters")
    base = start_of(operator, source)
    content = source.content
    nodes = [n for n in listed.named_children if n.type == "parameter_declaration"]
    kept = [
        content[base + n.start_byte : base + n.end_byte].decode() for at, n in enumerate(nodes) if at not in dropped
    ]
    return [Edit(base + listed.start_byte, base + listed.end_byte, f"({', '.join(kept) or 'void'})")]

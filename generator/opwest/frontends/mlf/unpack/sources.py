# SPDX-License-Identifier: Apache-2.0
"""C sources and headers of a model: positions of declarations, and what changes the meaning of their functions.

A function is read from its own text. Macros, types that replace those of C, values that remain between calls, and
definitions that the preprocessor selects are not in that text: functions that use them have a reason not to be read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opwest.base.frozen_dataclass import dataclass
from opwest.frontends.mlf.c_text import Function
from opwest.frontends.mlf.unpack.functions import KNOWN_TYPES, NotUnpackedError, field, nodes_of, stars_of, tree_of
from opwest.frontends.mlf.unpack.main_body import Main
from opwest.frontends.mlf.unpack.memory import Operator
from opwest.frontends.mlf.unpack.scratch import Group, Range
from opwest.model.types.dtypes import dtype_of_c
from opwest.objects.c_masking import mask
from opwest.objects.c_source import syntax_tree
from opwest.objects.facts import ObjectError

if TYPE_CHECKING:
    from tree_sitter import Node

    from opwest.frontends.mlf.unpack.steps import Request


_ALTERNATIVE = re.compile(rb"^[ \t]*#[ \t]*(?:else|elif\w*)\b", re.MULTILINE)
_EXPORTED = "TVM_DLL"
"""TVM's macro before a definition or a prototype."""


@dataclass(frozen=True)
class Edit:
    """A range of a source in UTF-8, and the text that replaces it."""

    start: int
    end: int
    text: str = ""


@dataclass(frozen=True)
class Definition:
    """The definition of a function or an array: its range in UTF-8, and the names in it.

    `kept`: what it does with a variable that keeps its value between calls; None for variables of file scope only.
    """

    start: int
    end: int
    conditional: bool
    """Whether a directive such as `#ifdef` decides if it is compiled."""
    names: frozenset[str]
    kept: str | None


class Source:
    """A source in UTF-8 with the positions of its declarations and calls."""

    def __init__(self, text: str, place: str) -> None:
        self.text = text
        self.place = place
        self.content = text.encode()
        masked = mask(self.content)
        try:
            root = syntax_tree(masked)
        except ObjectError as error:
            raise NotUnpackedError(f"{place}: {error.message}") from None
        if root.has_error:
            raise NotUnpackedError(f"{place} cannot be parsed")
        for match in _ALTERNATIVE.finditer(self.content):
            if masked[match.start() : match.end()].isspace():  # a grammar cannot parse both
                raise NotUnpackedError(f"{place} cannot be parsed without a preprocessor")
        self.masked = masked
        self.prototypes: dict[str, list[Node]] = {}
        self.arrays: dict[str, Node] = {}
        self.mentions: dict[str, int] = {}
        """How often each name occurs."""
        self.macros: set[str] = set()
        self.types: set[str] = set()
        """Types of C or CMSIS-NN that the source defines itself."""
        self.variables: set[str] = set()
        """Variables of file scope that are not constant."""
        self.definitions: dict[str, list[Definition]] = {}
        """The function definitions."""
        self._read(root)

    def word(self, node: Node) -> str:
        """Return the text of a node."""
        return self.masked[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _read(self, root: Node) -> None:
        pending: list[tuple[Node, bool]] = [(root, True)]
        while pending:
            node, outside = pending.pop()
            if node.type == "identifier":
                name = self.word(node)
                self.mentions[name] = self.mentions.get(name, 0) + 1
            if node.type in ("preproc_def", "preproc_function_def"):
                self.macros.add(self.word(field(node, "name")))
            if node.type == "type_definition":
                names = (self.word(stars_of(named)[0]) for named in node.children_by_field_name("declarator"))
                self.types.update(name for name in names if name in KNOWN_TYPES or dtype_of_c(name) is not None)
            if node.type == "declaration" and outside:
                self._declaration(node)
            if node.type == "function_definition":
                self._definition(node)
            outside = outside and node.type not in ("function_definition", "compound_statement")
            pending += [(n, outside) for n in node.named_children if n.type != "number_literal"]

    def _declaration(self, node: Node) -> None:
        declarators = node.children_by_field_name("declarator")
        constant = any(n.type == "type_qualifier" and self.word(n) == "const" for n in node.children)
        for declarator in declarators:
            name, stars, _ = stars_of(declarator)
            if (not constant or stars) and not _is_function(declarator):
                self.variables.add(self.word(name))
        if len(declarators) != 1:
            return
        has_values = declarators[0].type == "init_declarator"
        name, _, other = stars_of(field(declarators[0], "declarator") if has_values else declarators[0])
        if other and has_values:
            self.arrays[self.word(name)] = node
        elif other:
            self.prototypes.setdefault(self.word(name), []).append(node)

    def _definition(self, node: Node) -> None:
        name = self.word(stars_of(field(node, "declarator"))[0])
        names, declared, assigned, kept = set(), set(), set(), None
        for inner in nodes_of(node):
            match inner.type:
                case "identifier":
                    names.add(self.word(inner))
                case "declaration" | "parameter_declaration":
                    listed = inner.children_by_field_name("declarator")
                    declared |= {self.word(stars_of(declarator)[0]) for declarator in listed}
                    if inner.type == "declaration" and self._keeps(inner):
                        kept = f"contains the variable `{' '.join(self.word(inner).split())}`"
                case "assignment_expression" | "update_expression":
                    target = _assigned(inner)
                    assigned |= set() if target is None else {self.word(target)}
        if kept is None and assigned - declared:
            kept = f"assigns '{min(assigned - declared)}', which it does not declare"
        definition = Definition(node.start_byte, node.end_byte, _is_conditional(node), frozenset(names), kept)
        self.definitions.setdefault(name, []).append(definition)

    def _keeps(self, node: Node) -> bool:
        """Return whether a declaration in a function is of a variable that keeps its value between calls."""
        words = {self.word(n) for n in node.children if n.type in ("storage_class_specifier", "type_qualifier")}
        declarators = node.children_by_field_name("declarator")
        stars = any(stars_of(declarator)[1] for declarator in declarators)
        function = all(_is_function(declarator) for declarator in declarators)
        return bool(words & {"static", "extern"}) and not function and ("const" not in words or stars)

    def declaration(self, name: str) -> Definition | None:
        """Return the declaration of an array with values."""
        node = self.arrays.get(name)
        if node is None:
            return None
        head = self.word(node).partition("=")[0]
        names = frozenset(re.findall(r"\w+", head))
        return Definition(node.start_byte, node.end_byte, _is_conditional(node), names, None)

    def removed(self, node: Node) -> Edit:
        """Return the edit that removes a declaration, with TVM's macro for exported functions."""
        before = self.content[: node.start_byte].rstrip()
        exported = before.endswith(_EXPORTED.encode())
        return Edit(len(before) - len(_EXPORTED) if exported else node.start_byte, node.end_byte)

    def changed(self, edits: Iterable[Edit]) -> str:
        """Return the text after edits, which do not overlap."""
        content = self.content
        for edit in sorted(set(edits), key=lambda e: (e.start, e.end), reverse=True):
            content = content[: edit.start] + edit.text.encode() + content[edit.end :]
        return content.decode()


def _is_function(declarator: Node) -> bool:
    """Return whether a declarator declares a function, or a pointer to one."""
    inner: Node | None = declarator
    while inner is not None and inner.type != "function_declarator":
        inner = inner.child_by_field_name("declarator")
    return inner is not None


def _is_conditional(node: Node) -> bool:
    """Return whether a directive such as `#ifdef` decides if a node is compiled."""
    outer = node.parent
    while outer is not None and not outer.type.startswith(("preproc_if", "preproc_el")):
        outer = outer.parent
    return outer is not None


def _assigned(node: Node) -> Node | None:
    """Return the variable that an expression changes, or that contains the changed object or its address."""
    target: Node | None = field(node, "left" if node.type == "assignment_expression" else "argument")
    while target is not None and target.type != "identifier":
        inner = target.child_by_field_name("argument") or target.child_by_field_name("value")
        if inner is None and target.type == "parenthesized_expression" and target.named_children:
            inner = target.named_children[0]
        target = inner
    return target


def meanings(sources: Iterable[Source]) -> dict[str, str]:
    """Return the words whose meaning a source changes, each with the words of a reason."""
    words: dict[str, str] = {}
    for source in sources:
        words |= {name: f"the type '{name}', which {source.place} defines" for name in source.types}
        words |= {name: f"the macro '{name}'" for name in source.macros - {_EXPORTED}}
    return words


def reasons(
    functions: Mapping[str, Function], names: Mapping[str, str], sources: Mapping[str, Source]
) -> dict[str, str]:
    """Return the functions that cannot be read from their own text, with reasons; `names` are those of sources."""
    texts = dict(_states(sources.values()))
    for name, function in functions.items():
        source = sources[names[name]]
        start = len(source.text[: function.start].encode())
        end = len(source.text[: function.end].encode())
        listed = source.definitions.get(name, [])
        if len(listed) != 1 or listed[0].conditional or not start <= listed[0].start < listed[0].end == end:
            texts[name] = f"'{name}' has more than one definition, or one in a comment or a conditional directive"
    return texts


def _states(sources: Iterable[Source]) -> Iterator[tuple[str, str]]:
    """Yield the functions that keep values, for example pointers, between calls, or call functions that do."""
    sources = list(sources)
    variables = {name for source in sources for name in source.variables}
    pending, callers = [], dict[str, set[str]]()
    for source in sources:
        for name, definitions in source.definitions.items():
            for definition in definitions:
                for called in definition.names:
                    callers.setdefault(called, set()).add(name)
                used = sorted(definition.names & variables)
                if used:
                    pending.append((name, f"'{name}' uses the variable '{used[0]}' of file scope"))
                elif definition.kept is not None:
                    pending.append((name, f"'{name}' {definition.kept}"))
    seen = set()
    while pending:
        name, reason = pending.pop()
        if name not in seen:
            seen.add(name)
            yield name, reason
            pending += [(caller, reason) for caller in sorted(callers.get(name, ()))]


def changed_sources(
    operators: Mapping[str, Operator],
    request: Request,
    sources: Mapping[str, Source],
    ranges: Mapping[str, Sequence[Range]],
    groups: Mapping[str, Group],
    content: Main,
) -> tuple[dict[str, str], dict[str, list[int]]]:
    """Return the changed sources by name, and the dropped parameters of each operator.

    Main, and the prototypes of it and of the hooks of devices, are removed. A parameter for the workspace becomes one
    for each part that the operator uses; one for constants that it does not use is removed. Constant arrays that only
    main mentions are constants of the manifest and leave the sources.
    """
    code, main = request.code, request.main
    main_source = code.sources[main.name]
    tree = tree_of(main, code.texts[main_source])
    inside = Counter(tree.word(node) for node in nodes_of(tree.body) if node.type == "identifier")
    edits: dict[str, list[Edit]] = {name: [] for name in sources}
    dropped: dict[str, list[int]] = {}
    for name, operator in operators.items():
        source = code.sources[name]
        new: dict[int, list[str]] = {}
        for number, (memory, role) in enumerate(zip(operator.bases, operator.roles, strict=True)):
            if role == "workspace":
                new[number] = [f"uint8_t* {part.name}" for part in ranges[name] if part.parameter == number]
            elif role == "constants" and not memory.parts:
                new[number] = []
        added = [f"uint8_t* {part.name}" for part in ranges[name] if part.parameter is None]
        base = len(sources[source].text[: operator.tree.function.start].encode())
        for literal in operator.literals:
            part = next(
                (r for r in ranges[name] if r.parameter == literal.parameter and literal.offset in r.offsets), None
            )
            offset = groups[name].offsets[literal.offset] if part is None else literal.offset - part.start
            if part is not None:
                edits[source].append(Edit(base + literal.name[0], base + literal.name[1], part.name))
            if offset != literal.offset:
                edits[source].append(Edit(base + literal.start, base + literal.end, str(offset)))
        names = [part.name for part in ranges[name] if part.parameter is None]
        for allocation, argument in zip(operator.allocations, names, strict=True):
            edits[source].append(Edit(base + allocation.call[0], base + allocation.call[1], argument))
            edits[source] += [Edit(base + start, base + end) for start, end in allocation.freed]
        if new or added:
            edits[source].append(_other_parameters(operator, sources[source], base, new, added))
            dropped[name] = [number for number, listed in new.items() if not listed]
            for file, parsed in sources.items():
                uses = parsed.mentions.get(name, 0) - len(parsed.prototypes.get(name, ()))
                if uses - (file == source) - (inside[name] if file == main_source else 0) > 0:
                    raise NotUnpackedError(f"'{name}' is used in {file} by other code than main")
    start = len(sources[main_source].text[: main.start].encode())
    length = len(sources[main_source].text[main.start : main.end].encode())
    edits[main_source].append(Edit(start, start + length))
    for name in (main.name, *content.hook_functions, *dropped):
        for file, parsed in sources.items():
            edits[file] += [parsed.removed(n) for n in parsed.prototypes.get(name, ())]
    for name in {place.name for call in content.calls for place in call.args if place.kind == "array"}:
        for file, parsed in sources.items():
            if name in parsed.arrays and parsed.mentions[name] == 1 + inside[name]:
                edits[file].append(parsed.removed(parsed.arrays[name]))
    return {name: parsed.changed(edits[name]) for name, parsed in sources.items() if edits[name]}, dropped


def _other_parameters(
    operator: Operator, source: Source, base: int, new: Mapping[int, Sequence[str]], added: Sequence[str]
) -> Edit:
    """Return the edit that replaces parameters of a definition, which is at `base` in its source, and adds others.

    A device remains the last parameter.
    """
    declarator = field(operator.tree.node, "declarator")
    listed = declarator.child_by_field_name("parameters")
    while listed is None:
        declarator = field(declarator, "declarator")
        listed = declarator.child_by_field_name("parameters")
    content = source.content[base:]
    nodes = [n for n in listed.named_children if n.type == "parameter_declaration"]
    texts = [new.get(at, [content[n.start_byte : n.end_byte].decode()]) for at, n in enumerate(nodes)]
    texts.insert(len(texts) - ("device" in operator.roles), added)
    text = ", ".join(one for several in texts for one in several)
    return Edit(base + listed.start_byte, base + listed.end_byte, f"({text or 'void'})")

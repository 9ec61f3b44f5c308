# SPDX-License-Identifier: Apache-2.0
"""Read the functions that C headers and sources declare, with their types, in the form of debug information.

The files are preprocessed (`c_preprocessor`) and parsed with tree-sitter. What cannot be read is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from tree_sitter import Node

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.c_expressions import evaluate
from opwest.objects.c_masking import mask, without_attributes
from opwest.objects.c_preprocessor import PREDEFINED, Fault, Place, Preprocessed, Preprocessor, Reader
from opwest.objects.c_source import check_text, conventions_of, syntax_tree
from opwest.objects.c_types import (
    ArrayType,
    CType,
    DataModel,
    FunctionType,
    Layout,
    base_type,
    decayed,
    dimensions,
    layout_of,
    library_type,
    named,
    points_to,
    qualified,
    record_layout,
)
from opwest.objects.dwarf_types import VOID, DwarfSignature, DwarfType
from opwest.objects.facts import ObjectError

_CONTAINERS = frozenset(("translation_unit", "linkage_specification", "declaration_list", "ERROR"))
_POINTERS = frozenset(("pointer_declarator", "abstract_pointer_declarator"))
_ARRAYS = frozenset(("array_declarator", "abstract_array_declarator"))
_FUNCTIONS = frozenset(("function_declarator", "abstract_function_declarator"))
_RECORDS = frozenset(("struct_specifier", "union_specifier"))
_PARENTHESES = frozenset(("parenthesized_declarator", "abstract_parenthesized_declarator", "attributed_declarator"))
_NAMES = frozenset(("identifier", "type_identifier", "field_identifier", "primitive_type"))
_LAYOUT = re.compile(rb"__attribute__|__attribute|_Alignas|alignas|__declspec")
_PACKED = re.compile(rb"__attribute__\s*\(\s*\(\s*(__)?packed(__)?\s*\)\s*\)")
_TOKEN = re.compile(r"\w+|'(?:\\.|[^'\\])'|\S")
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Prototype:
    """The declaration of a function."""

    signature: DwarfSignature
    """With the names of the parameters."""
    place: Place
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    """By parameter, the dimensions of an array; None for another type, or if one is unknown."""
    structures: frozenset[str] = frozenset()
    """The structures that are defined, but with an unknown size: `struct context`."""
    unknown_types: tuple[str, ...] = ()
    """Names of types that no file declares."""
    convention: str = ""
    """The attribute that changes its calling convention; empty for that of C."""
    is_defined: bool = False
    """Whether the file has its body, as of `static inline` functions."""
    is_static: bool = False


@dataclass(frozen=True)
class Declarations:
    """The functions that files declare, and what was not read."""

    functions: Mapping[str, Prototype]
    faults: tuple[Fault, ...]
    files: tuple[PurePosixPath, ...]
    missing: tuple[PurePosixPath, ...]
    unfound: tuple[str, ...]
    """The headers that were not found, as written."""


def read_declarations(
    files: Mapping[PurePosixPath, bytes],
    read: Reader,
    model: DataModel,
    *,
    folders: Sequence[PurePosixPath] = (),
    defines: Sequence[str] = (),
) -> Declarations:
    """Return the functions that files declare. Raises ObjectError for files that cannot be C.

    `read` returns the content of headers, `folders` are their directories, `defines` are `NAME` or `NAME=VALUE`.
    """
    preprocessor = Preprocessor(read, folders)
    preprocessor.define({**PREDEFINED, **dict.fromkeys(model.macros, "1")})
    preprocessor.define({name: value if equals else "1" for name, equals, value in (d.partition("=") for d in defines)})
    for file, content in files.items():
        check_text(content, "C")
        try:
            preprocessor.add(file, content)
        except RecursionError as error:
            raise ObjectError(f"{file}: macros or includes are nested too deeply") from error
    return _Reader(preprocessor.result(), model).declarations()


class _Reader:
    """Collects the functions of one preprocessed text."""

    def __init__(self, source: Preprocessed, model: DataModel) -> None:
        self.source = source
        self.model = model
        self.text = mask(without_attributes(source.text))
        self.functions: dict[str, Prototype] = {}
        self.faults: dict[Fault, None] = dict.fromkeys(source.faults)
        self.typedefs: dict[str, tuple[Node, Node]] = {}
        self.tags: dict[str, Node] = {}
        self.constants: dict[str, int] = {}
        self.types: dict[str, CType] = {}
        self.unsized: set[str] = set()

    def declarations(self) -> Declarations:
        """Return the functions in the order of the text."""
        nodes = list(self._file_scope(syntax_tree(self.text)))
        for node in nodes:
            self._collect(node)
        for node in nodes:
            if node.type in ("declaration", "function_definition"):
                self._declare(node)
        conventions = conventions_of(self.source.text, cplusplus=False)
        functions = {
            name: replace(seen, convention=conventions[name]) if name in conventions else seen
            for name, seen in self.functions.items()
        }
        source = self.source
        return Declarations(functions, tuple(self.faults), source.files, source.missing, source.unfound)

    def _file_scope(self, root: Node) -> Iterator[Node]:
        """Yield the declarations outside functions; record what could not be parsed."""
        pending = [root]
        while pending:
            node = pending.pop()
            if node.type == "ERROR" or node.is_missing:
                self._fault(node, f"cannot parse `{self._short(node)}`")
            if node.type in _CONTAINERS:
                pending.extend(reversed(node.children))
            elif node.type != "function_definition" and node.has_error:
                self._fault(node, f"cannot parse `{self._short(node)}`")
            else:
                yield node

    def _place(self, node: Node) -> Place:
        places = self.source.places
        return places[min(node.start_point.row, len(places) - 1)] if places else Place("", 0)

    def _fault(self, node: Node, reason: str) -> None:
        self.faults[Fault(self._place(node), reason)] = None

    def _word(self, node: Node) -> str:
        text = self.text[node.start_byte : node.end_byte].decode("utf-8", "replace")
        return " ".join(text.split())

    def _short(self, node: Node) -> str:
        text = self._word(node)
        return text if len(text) <= 60 else f"{text[:60]}…"

    def _collect(self, node: Node) -> None:
        """Record the typedefs, the structures and the constants of enumerations of a declaration."""
        type_ = node.child_by_field_name("type")
        if node.type == "type_definition" and type_ is not None:
            for declarator in node.children_by_field_name("declarator"):
                name = _name(declarator)
                if name is not None:
                    self.typedefs.setdefault(self._word(name), (node, declarator))
        pending = [child for child in (node, type_) if child is not None]
        while pending:
            inner = pending.pop()
            body = inner.child_by_field_name("body")
            name = inner.child_by_field_name("name")
            if inner.type in _RECORDS and body is not None:
                if name is not None:
                    self.tags.setdefault(f"{inner.type.split('_')[0]} {self._word(name)}", inner)
                fields = [child.child_by_field_name("type") for child in body.named_children]
                pending += [child for child in fields if child is not None]
            elif inner.type == "enum_specifier" and body is not None:
                self._enumerate(inner, body)

    def _enumerate(self, node: Node, body: Node) -> None:
        """Record the values of an enumeration."""
        following = 0
        for child in body.named_children:
            name = child.child_by_field_name("name")
            if child.type != "enumerator" or name is None:
                continue
            given = child.child_by_field_name("value")
            value = following if given is None else self._value(given)
            if value is None:
                return
            self.constants[self._word(name)] = value
            following = value + 1
        name = node.child_by_field_name("name")
        if name is not None:
            self.tags.setdefault(f"enum {self._word(name)}", node)

    def _value(self, node: Node | None) -> int | None:
        """Return the value of a constant expression; None if it is unknown."""
        if node is None:
            return None
        words = _TOKEN.findall(self._word(node))
        return evaluate([str(self.constants[word]) if word in self.constants else word for word in words])

    def _declare(self, node: Node) -> None:
        """Record the functions of a declaration."""
        words = {self._word(c) for c in node.children if c.type == "storage_class_specifier"}
        if "typedef" in words:
            return
        for declarator in node.children_by_field_name("declarator"):
            name = _name(declarator)
            if name is None:
                continue
            type_ = self._declared(self._specified(node, 0), declarator, 0)
            if not isinstance(type_, FunctionType):
                continue
            if isinstance(type_.returns, FunctionType):  # no function can return one: a macro is not defined
                self._fault(name, f"cannot parse `{self._short(declarator)}`: is {self._word(name)!r} a macro?")
                continue
            if not type_.declares_parameters and node.type == "declaration":
                self._fault(name, f"{self._word(name)}() is declared without types of parameters")
                continue
            self._add(self._word(name), type_, name, is_defined=node.type != "declaration", static="static" in words)

    def _add(self, symbol: str, type_: FunctionType, name: Node, *, is_defined: bool, static: bool) -> None:
        returns = decayed(type_.returns, self.model)
        parameters = tuple(decayed(parameter, self.model) for parameter in type_.parameters)
        signature = DwarfSignature(symbol, returns, parameters, type_.variadic, type_.names)
        unsized = {label for p in parameters if p.target for label in p.target.names if label in self.unsized}
        prototype = Prototype(
            signature,
            self._place(name),
            tuple(dimensions(parameter) for parameter in type_.parameters),
            frozenset(unsized),
            tuple(dict.fromkeys(name for type_ in (returns, *parameters) for name in _unknown_in(type_))),
            is_defined=is_defined,
            is_static=static,
        )
        known = self.functions.get(symbol)
        if known is None:
            self.functions[symbol] = prototype
        elif is_defined and not known.is_defined:
            self.functions[symbol] = replace(known, is_defined=True)

    def _specified(self, node: Node, depth: int) -> CType:
        """Return the type of the specifiers of a declaration."""
        type_node = node.child_by_field_name("type")
        type_ = self._named(type_node, depth) if type_node is not None else base_type(["int"], self.model) or VOID
        inside = type_node.children if type_node is not None and type_node.type == "sized_type_specifier" else []
        const = any(c.type == "type_qualifier" and self._word(c) == "const" for c in (*node.children, *inside))
        return qualified(type_) if const else type_

    def _named(self, node: Node, depth: int) -> CType:
        """Return the type of a specifier."""
        if depth > _MAX_DEPTH:
            return _unknown("a type that is nested too deeply")
        if node.type in _RECORDS:
            return self._record(node, depth)
        if node.type == "enum_specifier":
            return self._enumeration(node)
        words = [word for word in self._word(node).split() if word not in ("const", "volatile", "restrict", "_Atomic")]
        written = " ".join(words)
        if written in self.typedefs:
            known = self.types.get(written)
            if known is None:
                owner, declarator = self.typedefs[written]
                self.types[written] = _unknown(written)  # of itself
                inner = self._declared(self._specified(owner, depth + 1), declarator, depth + 1)
                known = self.types[written] = self._renamed(inner, written)
            return known
        return base_type(words, self.model) or library_type(written, self.model) or _unknown(written)

    def _renamed(self, type_: CType, name: str) -> CType:
        if isinstance(type_, DwarfType) and type_.names & self.unsized:
            self.unsized.add(name)
        return named(type_, name)

    def _record(self, node: Node, depth: int) -> DwarfType:
        """Return a structure or union; without its definition, the size is 0."""
        key = node.type.split("_")[0]
        name = node.child_by_field_name("name")
        label = f"{key} {self._word(name)}" if name is not None else f"an unnamed {key}"
        known = self.types.get(label) if name is not None else None
        if known is not None and isinstance(known, DwarfType):
            return known
        defined = node if node.child_by_field_name("body") is not None else self.tags.get(label)
        layout = Layout(0, 0)
        if defined is not None:
            if name is not None:
                self.types[label] = DwarfType("struct", 0, name=label, names=frozenset({label}))
            layout = self._layout(defined, depth, is_union=key == "union")
            if not layout.size:
                self.unsized.add(label)
        result = DwarfType("struct", layout.size, name=label, names=frozenset({label}), align=layout.align)
        if name is not None:
            self.types[label] = result
        return result

    def _layout(self, node: Node, depth: int, *, is_union: bool) -> Layout:
        """Return the layout of a definition; unknown with bit-fields, and attributes other than `packed`."""
        body = node.child_by_field_name("body")
        end = self.source.text.find(b";", node.end_byte)
        written = self.source.text[node.start_byte : end if end >= 0 else node.end_byte]
        packed = _PACKED.search(written) is not None
        if self.source.packs or body is None or _LAYOUT.search(_PACKED.sub(b"", written)):
            return Layout(0, 0)
        members: list[Layout] = []
        for field in body.named_children:
            if field.type != "field_declaration":
                continue
            type_ = self._specified(field, depth + 1)
            declarators = field.children_by_field_name("declarator")
            if any(child.type == "bitfield_clause" for child in field.children):
                return Layout(0, 0)
            declared = [self._declared(type_, one, depth + 1) for one in declarators] or [type_]  # or unnamed
            members += [layout_of(one, self.model) for one in declared]
        return record_layout(members, is_union=is_union, packed=packed)

    def _enumeration(self, node: Node) -> DwarfType:
        name = node.child_by_field_name("name")
        label = f"enum {self._word(name)}" if name is not None else "an unnamed enum"
        defined = node if node.child_by_field_name("body") is not None else self.tags.get(label)
        return DwarfType("integer", self._enum_size(defined), None, label, frozenset({label}))

    def _enum_size(self, node: Node | None) -> int:
        """Return the size of an enumeration; 0 if a value is unknown."""
        body = node.child_by_field_name("body") if node is not None else None
        if body is None:
            return 0
        names = [child.child_by_field_name("name") for child in body.named_children if child.type == "enumerator"]
        values = [self.constants.get(self._word(name)) for name in names if name is not None]
        known = [value for value in values if value is not None]
        if len(known) < len(values) or not known:
            return 0
        if self.model.short_enums is None:
            return 0
        if not self.model.short_enums:
            return 4
        low, high = min(known), max(known)
        signed = low < 0
        sizes = (n for n in (1, 2) if (high < 1 << (8 * n - signed)) and low >= (-(1 << (8 * n - 1)) if signed else 0))
        return next(sizes, 4)

    def _declared(self, base: CType, declarator: Node | None, depth: int) -> CType:
        """Return the type of a declarator. Declarators nest from the outside in, beginning with the base."""
        type_, node = base, declarator
        while node is not None and node.type not in _NAMES:
            if node.type in _POINTERS:
                type_ = points_to(type_, self.model)
                if any(c.type == "type_qualifier" and self._word(c) == "const" for c in node.children):
                    type_ = qualified(type_)
            elif node.type in _ARRAYS:
                type_ = ArrayType(type_, self._value(node.child_by_field_name("size")))
            elif node.type in _FUNCTIONS:
                type_ = self._function(type_, node, depth)
            elif node.type not in _PARENTHESES:
                return _unknown(self._short(node))
            node = _inner(node)
        return type_

    def _function(self, returns: CType, node: Node, depth: int) -> CType:
        """Return the type of a function declarator."""
        if depth > _MAX_DEPTH:
            return _unknown("a function that is nested too deeply")
        listed = node.child_by_field_name("parameters")
        children = [] if listed is None else [c for c in listed.children if c.type not in ("(", ")", ",", "comment")]
        parameters: list[CType] = []
        names: list[str] = []
        variadic = False
        for child in children:
            if child.type in ("variadic_parameter", "..."):
                variadic = True
            elif child.type != "parameter_declaration":
                return FunctionType(returns, (), (), declares_parameters=False)
            else:
                declarator = child.child_by_field_name("declarator")
                parameters.append(self._declared(self._specified(child, depth + 1), declarator, depth + 1))
                name = _name(declarator) if declarator is not None else None
                names.append(self._word(name) if name is not None else "")
        if len(parameters) == 1 and parameters[0] == VOID and names == [""]:
            return FunctionType(returns, (), ())
        return FunctionType(returns, tuple(parameters), tuple(names), variadic, bool(children))


def _unknown(name: str) -> DwarfType:
    return DwarfType("unknown", name=name, names=frozenset({name}))


def _unknown_in(type_: DwarfType) -> Iterator[str]:
    """Yield the names of the unknown types that a type refers to."""
    while type_.target is not None:
        type_ = type_.target
    if type_.kind == "unknown":
        yield type_.name


def _inner(node: Node) -> Node | None:
    """Return the declarator inside of a declarator."""
    inner = node.child_by_field_name("declarator")
    kinds = _POINTERS | _ARRAYS | _FUNCTIONS | _PARENTHESES | _NAMES
    return inner or next((c for c in node.named_children if c.type in kinds and c.type != "primitive_type"), None)


def _name(node: Node | None) -> Node | None:
    """Return the name that a declarator declares; None for an abstract one."""
    while node is not None and node.type not in _NAMES:
        if node.type == "init_declarator":
            return None
        if node.type in _ARRAYS and node.child_by_field_name("declarator") is None:
            return None
        node = _inner(node)
    return node

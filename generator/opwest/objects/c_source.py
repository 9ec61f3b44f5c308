# SPDX-License-Identifier: Apache-2.0
"""Read the definitions of a C source with tree-sitter, without compiler, preprocessor or headers.

`conventions_of` returns the attributes that change the calling convention of functions. Sources: GCC manual, "x86
Function Attributes", "ARM Function Attributes", "RISC-V Function Attributes", "AArch64 Function Attributes"; clang's
"Attributes in Clang", "Calling Conventions".
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import tree_sitter_c
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from opwest.base.result import counted
from opwest.objects.c_masking import Token, mask, source_tokens
from opwest.objects.facts import CFunction, CParameter, CSource, ObjectError
from opwest.objects.nim_source import plain_nim

_ATTRIBUTE_NAMES = frozenset(
    "ms_abi sysv_abi pcs regparm sseregparm fastcall stdcall thiscall vectorcall regcall pascal interrupt "
    "interrupt_handler aarch64_vector_pcs aarch64_sve_pcs riscv_vector_cc preserve_most preserve_all preserve_none "
    "swiftcall swiftasynccall intel_ocl_bicc".split()
)
_KEYWORDS = frozenset("__fastcall _fastcall __stdcall _stdcall __thiscall __vectorcall __regcall __pascal".split())
_ATTRIBUTES = ("__attribute__", "__attribute")
_ANY = re.compile("|".join((*_ATTRIBUTE_NAMES, *_KEYWORDS)).encode())
_ENDS = (";", "{", "}")
_DEFINE = re.compile(r"#[ \t]*define[ \t]+(\w+)(?!\()\b(.*)", re.DOTALL)


def conventions_of(content: bytes, *, cplusplus: bool) -> dict[str, str]:
    """Return the attributes that change calling conventions, by function; also those of object-like macros."""
    if not _ANY.search(content):
        return {}
    macros: dict[str, str] = {}
    conventions: dict[str, str] = {}
    statement: list[Token] = []
    for token in source_tokens(content, cplusplus=cplusplus):
        if token.kind == "directive":
            definition = _DEFINE.match(token.text.decode("utf-8", "replace"))
            if definition is not None:
                body = source_tokens(definition[2].encode(), cplusplus=cplusplus)
                for attribute in _attributes(body, {}):
                    macros[definition[1]] = attribute
        elif token.text.decode("utf-8", "replace") in _ENDS:
            for attribute in _attributes(statement, macros):
                for function in _declared(statement):
                    conventions.setdefault(function, attribute)
            statement = []
        else:
            statement.append(token)
    return conventions


def _attributes(statement: Sequence[Token], macros: dict[str, str]) -> Iterator[str]:
    """Yield the attributes of a declaration that change the convention, as written without underscores."""
    words = [token.text.decode("utf-8", "replace") for token in statement]
    for index, word in enumerate(words):
        if word in _KEYWORDS:
            yield word
        elif word in macros:
            yield macros[word]
        elif word.strip("_") in _ATTRIBUTE_NAMES and _is_in_attribute(words, index):
            argument = words[index + 2] if words[index + 1 : index + 2] == ["("] and len(words) > index + 2 else ""
            yield word.strip("_") + (f"({argument})" if argument and argument != ")" else "")


def _is_in_attribute(words: Sequence[str], index: int) -> bool:
    """Whether a word is in the parentheses of `__attribute__`, or in `[[...]]`."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += (words[at] in (")", "]")) - (words[at] in ("(", "["))
        if depth == -2:
            return words[at] == "[" or (at > 0 and words[at - 1] in _ATTRIBUTES)
    return False


def _declared(statement: Sequence[Token]) -> Iterator[str]:
    """Yield the names before parentheses, outside of parentheses: the function of a declaration."""
    depth = 0
    before = ""
    for token in statement:
        word = token.text.decode("utf-8", "replace")
        if word == "(" and depth == 0 and before.isidentifier() and before not in _ATTRIBUTES:
            yield before
        depth += (word in ("(", "[")) - (word in (")", "]"))
        before = word


MAX_SOURCE = 1 << 25
SECONDS = 30.0
INSIDE = """
    (declaration (storage_class_specifier) @storage)
    (call_expression function: (identifier) @call)
    (parameter_declaration declarator: (identifier) @variable)
    (declaration declarator: (identifier) @variable)
    (init_declarator declarator: (identifier) @variable)
    (pointer_declarator declarator: (identifier) @variable)
    (array_declarator declarator: (identifier) @variable)
    (preproc_include path: (_) @include)
    """
TYPEDEFS = "(type_definition) @typedef"
_LANGUAGE = Language(tree_sitter_c.language())
_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_CONDITIONALS = frozenset(("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"))
_CONTAINERS = _CONDITIONALS | {"translation_unit", "linkage_specification", "declaration_list", "ERROR"}
_POINTERS = frozenset(
    "pointer_declarator array_declarator abstract_pointer_declarator abstract_array_declarator function_declarator "
    "abstract_function_declarator".split()
)
_NAMES = frozenset(("identifier", "qualified_identifier", "field_identifier"))
_PARAMETERS = frozenset(("parameter_declaration", "optional_parameter_declaration"))
_VARIADIC = frozenset(("variadic_parameter", "variadic_parameter_declaration", "..."))
_DECLARATORS = _NAMES.union(
    "pointer_declarator array_declarator function_declarator reference_declarator parenthesized_declarator "
    "init_declarator attributed_declarator".split()
)
_CONST = (b"const", b"__const", b"__const__", b"constexpr")
_NOT_NAMES = frozenset([b"if", b"else", b"for", b"while", b"do", b"switch", b"return", b"sizeof", b"defined"])


def read_c_source(path: Path, content: bytes) -> CSource:
    """Return the facts about a C source; raise ObjectError if the content cannot be C."""
    check_text(content, "C")
    text = mask(plain_nim(content))
    return SourceReader(text, syntax_tree(text)).source(path, content)


def syntax_tree(text: bytes) -> Node:
    """Return the syntax tree of C, as `parse`."""
    return parse(_LANGUAGE, text)


def check_text(content: bytes, language: str) -> None:
    """Raise ObjectError for content that cannot be a source."""
    if b"\0" in content:
        raise ObjectError(f"not a {language} source: the file contains NUL bytes", f"{language} text in UTF-8")
    if len(content) > MAX_SOURCE:
        raise ObjectError(f"the {language} source has {counted(len(content), 'byte')}", f"at most {MAX_SOURCE} bytes")


def parse(grammar: Language, text: bytes) -> Node:
    """Return the syntax tree. Raises ObjectError after a time limit, since error recovery can be slow."""
    deadline = time.monotonic() + SECONDS

    def chunk(offset: int, _point: object) -> bytes:
        return text[offset : offset + 65536]

    def stop(_offset: int, _has_error: bool) -> bool:
        return time.monotonic() > deadline

    try:
        return Parser(grammar).parse(chunk, progress_callback=stop).root_node
    except ValueError as fault:
        raise ObjectError(
            f"cannot parse the source within {SECONDS:.0f} seconds", hint="use the compiled object instead"
        ) from fault


class SourceReader:
    """Collects the facts from one tree."""

    cplusplus = False
    inside = Query(_LANGUAGE, INSIDE)
    typedefs = Query(_LANGUAGE, TYPEDEFS)

    def __init__(self, text: bytes, root: Node) -> None:
        self.text = text
        self.root = root
        self.functions: dict[object, CFunction] = {}
        self.globals: dict[str, None] = {}
        self.state: dict[str, None] = {}
        self.unread: set[int] = set()
        self.at_file_scope: set[int] = set()

    def slice(self, node: Node) -> bytes:
        """Return the text of a node."""
        return self.text[node.start_byte : node.end_byte]

    def word(self, node: Node) -> str:
        """Return the text of a node on one line."""
        return " ".join(self.slice(node).decode("utf-8", "backslashreplace").split())

    def source(self, path: Path, content: bytes) -> CSource:
        """Return all facts; `content` is the text before masking."""
        self.read()
        includes, local, calls, certain = self._inside()
        conventions = conventions_of(content, cplusplus=self.cplusplus)
        return CSource(
            path,
            content,
            tuple(replace(f, convention=conventions.get(f.name, "")) for f in self.functions.values()),
            tuple(self.globals),
            tuple(self.state),
            includes,
            local,
            calls,
            certain,
            tuple(sorted(self.unread)),
        )

    def read(self) -> None:
        """Record the definitions at file scope."""
        for node in self._file_scope():
            if node.type == "function_definition":
                function = self.function(node)
                if function is not None:
                    # Keep the first of several definitions: the others are in #else branches.
                    self.functions.setdefault(function.name, function)
            elif node.type == "declaration":
                self.at_file_scope.add(node.start_byte)
                self.variables(node, file_scope=True)

    def _file_scope(self) -> Iterator[Node]:
        """Yield the nodes outside functions, in order, including those in conditionals and ERROR nodes."""
        pending = [self.root]
        while pending:
            node = pending.pop()
            if node.type == "ERROR" or node.is_missing:
                self.unread.add(node.start_point.row + 1)
            if node.type in _CONTAINERS:
                pending.extend(reversed(node.children))
            else:
                yield node

    def _inside(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Find static variables in functions; return the includes, the quoted ones, the calls and the certain ones."""
        captures = QueryCursor(self.inside).captures(self.root)
        for storage in _in_order(captures, "storage"):
            declaration = storage.parent
            if declaration is None or declaration.start_byte in self.at_file_scope:
                continue
            if self.slice(storage) == b"static":
                self.variables(declaration, file_scope=False)
        includes: dict[str, None] = {}
        local: dict[str, None] = {}
        for node in _in_order(captures, "include"):
            written = self.word(node)
            includes[written.strip('<>"')] = None
            if written.startswith('"'):
                local[written.strip('"')] = None
        names: dict[str, bool] = {}
        standard: dict[str, None] = {}
        for node in _in_order(captures, "call"):
            name = self.word(node)
            names[name] = names.get(name, False) or not self._is_conditional(node)
        for node in _in_order(captures, "qualified"):
            name = self.word(node).removeprefix("std::")
            if name.isidentifier() and name != "remove" and not self._is_conditional(node):  # <algorithm> has another
                standard[name] = None
        own = {function.name for function in self.functions.values()}
        calls = tuple(name for name in names if name not in own)
        other = {self.word(node) for node in captures.get("variable", []) if not _is_prototype(node)}
        other.update(match[1].decode("utf-8", "backslashreplace") for match in _MACRO.finditer(self.text))
        certain = [name for name in calls if names[name] and name not in other]
        return tuple(includes), tuple(local), calls, tuple(dict.fromkeys((*certain, *standard)))

    def _is_conditional(self, node: Node) -> bool:
        """Whether a node is in a conditional of the preprocessor, without the guard of a header."""
        above = node.parent
        while above is not None:
            if above.type in _CONDITIONALS and not self._is_guard(above):
                return True
            above = above.parent
        return False

    def _is_guard(self, node: Node) -> bool:
        """Whether a conditional is `#ifndef NAME` before `#define NAME`."""
        name = node.child_by_field_name("name")
        first = next((child for child in node.named_children if child.type == "preproc_def"), None)
        defined = first.child_by_field_name("name") if first is not None else None
        return name is not None and defined is not None and self.word(name) == self.word(defined)

    def function(self, node: Node) -> CFunction | None:
        """Return a function definition; None if it cannot be read."""
        name_node, declarators = _declarators(node.child_by_field_name("declarator"))
        # In `int (*f(void))(int)` the inner declarator belongs to the function.
        function = next((d for d in reversed(declarators) if d.type == "function_declarator"), None)
        if name_node is None or function is None or self.slice(name_node) in _NOT_NAMES:
            self.unread.add(node.start_point.row + 1)
            return None
        name, line = self.word(name_node), name_node.start_point.row + 1
        outer = itertools.takewhile(lambda d: d.type != "function_declarator", declarators)
        stars = sum(d.type in ("pointer_declarator", "reference_declarator") for d in outer)
        returns = self._return_type(node) + (" " + "*" * stars if stars else "")
        static = b"static" in self.storage(node)
        return CFunction(name, returns, self._parameters(function), static, line, self._parameter_types(function))

    def _return_type(self, node: Node) -> str:
        """Return the type words of a function definition, without storage class and the like."""
        words: list[str] = []
        for child in node.children:
            if child == node.child_by_field_name("declarator"):
                break
            # After a macro that looks like a type, the type name is in an ERROR node.
            if child.type == "ERROR":
                words = [w for w in words if w == "const"] + [self.word(child)]
            elif child.type == "type_qualifier" or child == node.child_by_field_name("type"):
                words.append(self.word(child))
        return " ".join(words) or "int"

    def _parameters(self, function: Node) -> int | None:
        """Return how many parameters; None for `...`."""
        listed = function.child_by_field_name("parameters")
        children = listed.children if listed is not None else []
        if any(c.type in _VARIADIC for c in children):
            return None
        real = [c for c in children if c.type in (*_PARAMETERS, "identifier")]
        is_void = len(real) == 1 and self.slice(real[0]).split() == [b"void"]
        return 0 if is_void else len(real)

    def _parameter_types(self, function: Node) -> tuple[CParameter, ...]:
        """Return the types of the parameters; empty where there are none, or `...`."""
        if not self._parameters(function):
            return ()
        listed = function.child_by_field_name("parameters")
        types = []
        for child in listed.named_children if listed is not None else []:
            if child.type in _PARAMETERS:
                words = child.child_by_field_name("type")
                base = self.word(words) if words is not None else ""
                written = self.word(child)
                stars = 0
                declarator = child.child_by_field_name("declarator")
                while declarator is not None:
                    stars += declarator.type in _POINTERS
                    declarator = declarator.child_by_field_name("declarator")
                const = self._points_to_const(child) if stars and not child.has_error else None
                types.append(CParameter(base, stars, written, self._declared(child), const))
            elif child.type == "identifier":
                types.append(CParameter("", 0, self.word(child)))  # K&R, or a macro
        return tuple(types)

    def _declared(self, parameter: Node) -> str:
        """Return the name that a parameter declares; empty where there is none."""
        name, _ = _declarators(parameter.child_by_field_name("declarator"))
        return self.word(name) if name is not None else ""

    def _points_to_const(self, parameter: Node) -> bool | None:
        """Return whether the type that a pointer or array parameter points to is const.

        Declarators nest from the outside in: of `const char *const *p` the inner pointer is that of p, and it points to
        what the outer one qualifies.
        """
        type_ = parameter.child_by_field_name("type")
        const = self._has_const(parameter)
        if type_ is not None and not const:  # `unsigned const char` is one node
            in_words = type_.type == "sized_type_specifier" and self._has_const(type_)
            const = in_words or self.word(type_) in self._const_types
        levels: list[bool] = []
        for node in _declarators(parameter.child_by_field_name("declarator"))[1]:
            if node.type in ("pointer_declarator", "abstract_pointer_declarator"):
                levels.append(const)
                const = self._has_const(node)
            elif node.type in ("array_declarator", "abstract_array_declarator"):
                levels.append(const)  # the elements of an array have its qualifiers
            elif node.type not in ("parenthesized_declarator", "attributed_declarator"):
                return None
        return levels[-1] if levels else None

    def _has_const(self, node: Node) -> bool:
        return any(c.type == "type_qualifier" and self.slice(c) in _CONST for c in node.children)

    @cached_property
    def _const_types(self) -> set[str]:
        """The typedefs of const types that the file contains."""
        names: set[str] = set()
        for node in QueryCursor(self.typedefs).captures(self.root).get("typedef", []):
            type_ = node.child_by_field_name("type")
            if self._has_const(node) or (type_ is not None and self.word(type_) in names):
                names.update(self.word(d) for d in node.children_by_field_name("declarator"))
        return names

    def storage(self, node: Node) -> set[bytes]:
        """Return the storage classes of a declaration."""
        return {self.slice(c) for c in node.children if c.type == "storage_class_specifier"}

    def variables(self, node: Node, *, file_scope: bool) -> None:
        """Record the variables of a declaration."""
        storage = self.storage(node)
        qualifiers = {self.slice(c) for c in node.children if c.type == "type_qualifier"}
        constant = bool(qualifiers.intersection(_CONST)) or b"constexpr" in storage
        for declarator in node.children_by_field_name("declarator"):
            name, writable = self._variable(declarator, constant)
            if name is None or (b"extern" in storage and declarator.type != "init_declarator"):
                continue
            if file_scope and b"static" not in storage and self.has_linkage(storage, writable=writable):
                self.globals[name] = None
            if writable:
                self.state[name] = None

    def has_linkage(self, storage: set[bytes], *, writable: bool) -> bool:
        """Whether a variable at file scope that is not static has external linkage."""
        return True

    def _variable(self, declarator: Node, constant: bool) -> tuple[str | None, bool]:
        """Return the name that a declarator declares (None for a function) and whether it is writable.

        Declarators nest from the outside in: `const char *p[3]` is pointer, array, p. The innermost
        pointer or array determines the qualifiers of the name: a pointer has its own, an array has
        those of its elements.
        """
        name, declarators = _declarators(declarator)
        inner = [d for d in declarators if d.type in ("pointer_declarator", "array_declarator", "function_declarator")]
        for node in inner:
            if node.type == "pointer_declarator":
                constant = any(c.type == "type_qualifier" and self.slice(c) == b"const" for c in node.children)
        if name is None or (inner and inner[-1].type == "function_declarator"):
            return None, False
        return self.word(name), not constant

    def function_name(self, declarator: Node) -> str | None:
        """Return the name of the function that a declarator declares; None for a variable."""
        name, declarators = _declarators(declarator)
        is_function = bool(declarators) and declarators[-1].type == "function_declarator"
        return self.word(name) if name is not None and is_function else None


def _declarators(node: Node | None) -> tuple[Node | None, list[Node]]:
    """Return the name that a declarator declares (None without one) and the declarators around it, from the outside."""
    declarators: list[Node] = []
    while node is not None and node.type not in _NAMES:
        declarators.append(node)
        inner = node.child_by_field_name("declarator")
        node = inner or next((c for c in node.named_children if c.type in _DECLARATORS), None)
    return node, declarators


def _in_order(captures: dict[str, list[Node]], name: str) -> list[Node]:
    """Return the captured nodes of a name as in the source: tree-sitter has them in any order."""
    return sorted(captures.get(name, []), key=lambda node: node.start_byte)


def _is_prototype(node: Node) -> bool:
    """Whether the name is that of a function that returns a pointer: `void *malloc(size_t)`."""
    return node.parent is not None and node.parent.type == "function_declarator"

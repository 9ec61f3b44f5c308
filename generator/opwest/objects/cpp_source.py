# SPDX-License-Identifier: Apache-2.0
"""Read the definitions of a C++ source or header with tree-sitter, without compiler, preprocessor or headers."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import tree_sitter_cpp
from tree_sitter import Language, Node, Query, QueryCursor

from opwest.objects.c_masking import mask
from opwest.objects.c_source import INSIDE, MAX_SOURCE, TYPEDEFS, SourceReader, check_text, parse
from opwest.objects.facts import MINIMAL_CPP_HEADERS, CSource, ObjectError

_LANGUAGE = Language(tree_sitter_cpp.language())
_TYPES = frozenset(("class_specifier", "struct_specifier", "union_specifier", "enum_specifier"))
_PREPROCESSOR = frozenset(
    ("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef", "ERROR", "declaration_list")
)


class _Scope(NamedTuple):
    """The scope of a declaration."""

    c_linkage: bool = False
    internal: bool = False
    """Whether it is in a namespace without a name."""
    path: str = ""
    """The named namespaces, each followed by `::`."""


def read_cpp_source(path: Path, content: bytes) -> CSource:
    """Return the facts about a C++ source or header; raise ObjectError if the content cannot be C++."""
    check_text(content, "C++")
    text = mask(content, cplusplus=True)
    return _Reader(text, parse(_LANGUAGE, text)).source(path, content)


def with_headers(source: CSource, headers: Iterable[CSource]) -> CSource:
    """Return a source with the facts of the headers that it includes: linkage, names, includes."""
    every = [source, *headers]
    declared = {name for file in every for name in file.declared}
    functions = tuple(replace(f, mangled=f.mangled and f.name not in declared) for f in source.functions)
    scope = dict.fromkeys(name for file in every for name in file.scope)
    return replace(
        source,
        functions=functions,
        includes=tuple(dict.fromkeys(name for file in every for name in file.includes)),
        scope=tuple(name for name in scope if name not in declared and name not in source.globals),
    )


def needs_library(source: CSource) -> bool:
    """Whether a C++ source includes a header of the C++ library that Zephyr's minimal one lacks."""
    local = set(source.local_includes)
    return any(
        "." not in name and name not in MINIMAL_CPP_HEADERS and name not in local and "/" not in name
        for name in source.includes
    )


class _Reader(SourceReader):
    """Collects the facts from one tree of C++."""

    inside = Query(
        _LANGUAGE,
        INSIDE
        + """
    (call_expression function: (qualified_identifier !scope name: (identifier) @call))
    (call_expression function: (qualified_identifier) @qualified)
    (field_declaration (storage_class_specifier) @member)
    """,
    )

    cplusplus = True
    typedefs = Query(_LANGUAGE, TYPEDEFS)

    def __init__(self, text: bytes, root: Node) -> None:
        super().__init__(text, root)
        self.declared: dict[str, None] = {}
        self.scope: dict[str, None] = {}
        self.place = _Scope()

    def source(self, path: Path, content: bytes) -> CSource:
        source = super().source(path, content)
        for storage in QueryCursor(self.inside).captures(self.root).get("member", []):
            # `static` alone is a declaration of the definition outside the class.
            if storage.parent is not None and {b"inline", b"static"} <= self.storage(storage.parent):
                self.variables(storage.parent, file_scope=False)
        own = replace(
            source, language="C++", state=tuple(self.state), declared=tuple(self.declared), scope=tuple(self.scope)
        )
        return with_headers(own, ())

    def read(self) -> None:
        """Record the definitions outside functions and classes, in order."""
        pending = [(self.root, _Scope())]
        while pending:
            node, self.place = pending.pop()
            if node.type == "ERROR" or node.is_missing:
                self.unread.add(node.start_point.row + 1)
            inner = self._inner(node)
            if inner is not None:
                pending.extend((child, inner) for child in reversed(node.children))
            elif node.type == "function_definition":
                self._definition(node)
            elif node.type == "declaration":
                self._declaration(node)
            elif node.type in _TYPES and node.child_by_field_name("body") is not None:
                self._name(node.child_by_field_name("name"))

    def _inner(self, node: Node) -> _Scope | None:
        """Return the scope of a node's children; None for a declaration."""
        place = self.place
        if node.type == "translation_unit" or node.type in _PREPROCESSOR or node.type == "template_declaration":
            return place
        if node.type == "linkage_specification":
            value = node.child_by_field_name("value")
            return place._replace(c_linkage=value is not None and self.slice(value) == b'"C"')
        if node.type == "namespace_definition":
            name = node.child_by_field_name("name")
            if name is None:
                return place._replace(internal=True)
            self._name(name)
            return place._replace(path=f"{place.path}{self.word(name)}::")
        return None

    def _name(self, node: Node | None) -> None:
        """Record a name of the outermost scope."""
        if node is None or self.place.path or self.place.internal:
            return
        name = self.word(node).split("::")[0].split("<")[0].strip()
        if name.isidentifier() and name != "std":
            self.scope[name] = None

    def _definition(self, node: Node) -> None:
        """Record the definition of a function."""
        function = self.function(node)
        if function is None:
            return
        place = self.place
        is_template = node.parent is not None and node.parent.type == "template_declaration"
        is_member = "::" in function.name
        mangled = is_template or is_member or not place.c_linkage
        if mangled and not function.is_static and not place.internal and not place.path and not is_member:
            self.scope[function.name] = None
        name = place.path + function.name if mangled else function.name
        function = replace(
            function, name=name, is_static=function.is_static or (place.internal and mangled), mangled=mangled
        )
        # A second function of the same name and kind of linkage is an overload, or in an #else branch.
        self.functions.setdefault((name, mangled), function)

    def _declaration(self, node: Node) -> None:
        """Record the variables of a declaration, and the functions that it declares `extern "C"`."""
        self.at_file_scope.add(node.start_byte)
        type_ = node.child_by_field_name("type")
        if type_ is not None and type_.type in _TYPES and type_.child_by_field_name("body") is not None:
            self._name(type_.child_by_field_name("name"))
        # Without braces, `extern "C" int x;` is not a definition.
        alone = node.parent is not None and node.parent.type == "linkage_specification"
        if not alone or any(d.type == "init_declarator" for d in node.children_by_field_name("declarator")):
            self.variables(node, file_scope=True)
        if self.place.c_linkage:
            for declarator in node.children_by_field_name("declarator"):
                declared = self.function_name(declarator)
                if declared is not None:
                    self.declared[declared] = None

    def has_linkage(self, storage: set[bytes], *, writable: bool) -> bool:
        if self.place.internal or self.place.path:  # their symbols contain the namespace
            return False
        return writable or b"extern" in storage or b"inline" in storage


_MAX_HEADERS = 1000


def read_with_headers(path: Path, content: bytes, include_dirs: Sequence[Path] = ()) -> CSource:
    """Return the facts about a C++ source and the headers in its directories; raise ObjectError as `read_cpp_source`.

    A header in quotes is searched for in the directory of the including file, then every header in `include_dirs`.
    Headers that are not found are left out.
    """
    source = read_cpp_source(path, content)
    files: dict[str, CSource] = {os.path.normpath(path): source}
    waiting = [source]
    while waiting and len(files) <= _MAX_HEADERS:
        file = waiting.pop(0)
        for name in file.includes:
            folders = [*([file.path.parent] if name in file.local_includes else []), *include_dirs]
            for place in (os.path.normpath(folder / name) for folder in folders):
                if place in files:
                    break
                header = _read(Path(place))
                if header is not None:
                    files[place] = header
                    waiting.append(header)
                    break
    return with_headers(source, list(files.values())[1:])


def _read(path: Path) -> CSource | None:
    """Return a header; None if it is not readable, or not text."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SOURCE:
            return None
        return read_cpp_source(path, path.read_bytes())
    except (OSError, ValueError, RuntimeError, ObjectError):  # the compiler reports it
        return None

# SPDX-License-Identifier: Apache-2.0
"""The compiled half of a folder: C sources and objects, and where main is."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import PurePosixPath

from opwest.importers.faults import fault
from opwest.importers.mlf.c_text import Function, functions
from opwest.importers.mlf.library import Library
from opwest.importers.mlf.wrapper import Pool, Wrapper, read_pools, read_wrapper
from opwest.objects.facts import Member, ObjectError
from opwest.objects.inspect import read_member
from opwest.records import dataclass

_HOST = "codegen/host/"
_ENTRY_POINTS = ("TVMSystemLibEntryPoint", "TVMGetModule")
_CODE = (".c", ".o")
_CPP = (".cc", ".cpp", ".cxx")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,100}")
_LARGEST_SOURCE = 1 << 25
_MOST_FUNCTIONS = 5000


@dataclass
class Code:
    """Sources and objects by name. `main` is the symbol of the whole model; empty where there is none."""

    texts: dict[str, str] = field(default_factory=dict)
    objects: dict[str, tuple[bytes, Member]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """The file of each function, for messages."""
    pools: dict[str, Pool] = field(default_factory=dict)
    wrapper: Wrapper | None = None
    main: str = ""
    glue: set[str] = field(default_factory=set)
    """Functions that opwest's own code stands for: run, the registry, the metadata."""

    @property
    def undefined(self) -> set[str]:
        """Symbols that the objects do not define."""
        defined = {s for _, m in self.objects.values() for s in m.defined}
        return {s for _, m in self.objects.values() for s in m.undefined} - defined


def read_code(library: Library, module: str) -> Code:
    """Return what codegen/host holds. Raises OpwestError for files that can't be used."""
    code = Code()
    for name in library.under(_HOST):
        place, suffix = library.place(name), PurePosixPath(name).suffix
        if suffix in (*_CODE, *_CPP) and not _PLAIN.fullmatch(PurePosixPath(name).name):
            expected = "up to 100 letters, digits, _ . + and -"
            raise fault(f"the file name {name[:80]!r} can't stand in a manifest", place, expected)
        if suffix == ".c":
            _add_source(code, PurePosixPath(name).name, library.files[name], place)
        elif suffix == ".o":
            _add_object(code, PurePosixPath(name).name, library.files[name], place)
        elif suffix in _CPP:
            raise fault(f"{name} is C++", place, "C or objects", "TVM writes C with the target `c`")
    if not code.texts and not code.objects:
        expected = "codegen/host/src/*.c, or codegen/host/lib/*.o"
        raise fault("the folder has no code", str(library.path), expected)
    prefix = f"tvmgen_{module}_"
    code.glue = {f"{prefix}run", f"{prefix}get_c_metadata", *_ENTRY_POINTS}
    for text in code.texts.values():
        code.wrapper = code.wrapper or read_wrapper(text, module)
    defined = {s for _, m in code.objects.values() for s in m.defined} | set(code.functions)
    mains = [code.wrapper.main] if code.wrapper else []
    mains += [f"{prefix}__tvm_main__", f"{prefix}run_model"]
    code.main = next((m for m in mains if m in defined), "")
    _drop_glue(code, library)
    return code


def _add_source(code: Code, name: str, content: bytes, place: str) -> None:
    if len(content) > _LARGEST_SOURCE:
        raise fault(f"the source has {len(content)} bytes", place, f"at most {_LARGEST_SOURCE}")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise fault("the source is not UTF-8", place, "C as TVM writes it") from None
    if "\0" in text:
        raise fault("the source holds NUL characters", place, "C as TVM writes it")
    code.texts[name] = text
    for symbol, function in functions(text).items():
        if symbol in code.functions:
            raise fault(f"{symbol} is defined twice", place, f"one definition; the other is in {code.places[symbol]}")
        code.functions[symbol] = function
        code.places[symbol] = place
    if len(code.functions) > _MOST_FUNCTIONS:
        raise fault(f"the sources define more than {_MOST_FUNCTIONS} functions", place, "a model for a microcontroller")


def _add_object(code: Code, name: str, content: bytes, place: str) -> None:
    try:
        member = read_member(name, content)
    except ObjectError as error:
        raise fault(error.message, place, error.expected, error.hint) from None
    if member.faults:
        raise fault(member.faults[0], place, "an object that can be linked")
    code.objects[name] = (content, member)


def _drop_glue(code: Code, library: Library) -> None:
    """Take the pools from sources that are nothing but TVM's wrapper, registry or metadata, and leave those out."""
    for name, text in list(code.texts.items()):
        if "global_" in text or "workspace" in text:
            code.pools |= read_pools(text, library.place(f"{_HOST}src/{name}"))
        defined = set(functions(text))
        entry_points = any(f"{e}(" in text for e in _ENTRY_POINTS)
        if defined <= code.glue and (defined or entry_points):
            del code.texts[name]
    for name, (_, member) in list(code.objects.items()):
        defined = {s for s, d in member.defined.items() if d.kind == "function"}
        if defined and defined <= code.glue:
            del code.objects[name]
    for symbol in code.glue & set(code.functions):
        del code.functions[symbol]

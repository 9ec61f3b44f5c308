# SPDX-License-Identifier: Apache-2.0
"""What compilers of Ada, D, Fortran, Nim and Python add to objects: helpers, unwritten variables, run-time libraries.

Sources: "GNAT User's Guide" (binding, elaboration), "The GNU Fortran Compiler" (naming conventions), "D ABI" (name
mangling), Nim's `compiler/ccgutils.nim`, numba's `core/environment.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.facts import CSource, Member

_D_NAME: Final = re.compile(r"_D\d+\w+|_Dmain|_d_run_main")
_FORTRAN_MODULE: Final = "_MOD_"
_NIM_NAME: Final = re.compile(r"NimMain(Inner|Module)?|NimDestroyGlobals|PreMain(Inner)?|[^.]*dotnim_[^.]*")
_NIM_MANGLED: Final = re.compile(r"_u?\d+$")
"""The end of `name__module_12`."""
_NIM_PROGRAM: Final = frozenset(("cmdCount", "cmdLine", "gEnv"))
"""Variables that only a program's main() writes."""
_NUMBA_PREFIX: Final = "cfunc."
_NUMBA_LIBRARY: Final = re.compile(r"(numba|NRT)_\w+")
_LENGTH: Final = re.compile(r"\d{1,4}")
_NUMBA_ENVIRONMENT: Final = "_ZN08NumbaEnv"
"""numba's own process writes these variables."""
_ELABORATION: Final = "_E"
"""Ada's counters of elaboration, `unit_E`: two bytes that only a main program in Ada writes."""


def is_unwritten(name: str) -> bool:
    """Return whether a variable of any object is one that operators neither read nor write, from its name alone."""
    return name.startswith(_NUMBA_ENVIRONMENT)


def unwritten(item: Member | CSource) -> set[str]:
    """Return the writable variables that the code of operators neither reads nor writes."""
    if isinstance(item, CSource):
        return set(_NIM_PROGRAM) if _is_nim(item) else set()
    names = set(filter(is_unwritten, item.stateful_symbols))
    if "NimMain" in item.defined:
        names |= _NIM_PROGRAM
    return names | {unit + _ELABORATION for unit in _ada_units(item)}


def _ada_units(member: Member) -> set[str]:
    """Return the units of Ada in an object, as in symbols: `parent__child`."""
    if b".adb\0" not in member.content and b".ads\0" not in member.content:
        return set()
    counters = (s for s in member.symbols if s.name.endswith(_ELABORATION) and s.size == 2)
    return {s.name.removesuffix(_ELABORATION) for s in counters if s.section in ("data", "bss")}


def _is_nim(item: Member | CSource) -> bool:
    if isinstance(item, CSource):
        return "nimbase.h" in item.includes
    return "NimMain" in item.defined or b".nim.c\0" in item.content


def helpers(item: Member | CSource | None, functions: Iterable[str], variables: Collection[str]) -> dict[str, str]:
    """Return the functions that cannot be operators because of their language, with the reason.

    `item` is None for LLVM IR.
    """
    units = tuple(unit + "__" for unit in _ada_units(item)) if isinstance(item, Member) else ()
    is_nim = item is not None and _is_nim(item)
    found = {}
    for name in functions:
        if _D_NAME.fullmatch(name):
            found[name] = "a D function: declare it extern(C)"
        elif name.startswith("__") and _FORTRAN_MODULE in name:
            found[name] = "a procedure of a Fortran module: declare it bind(C)"
        elif units and name.startswith(units):
            found[name] = "a part of an Ada package: export it with Convention => C and External_Name"
        elif is_nim and (_NIM_NAME.fullmatch(name) or ("__" in name and _NIM_MANGLED.search(name))):
            found[name] = "a Nim function: declare it {.exportc, cdecl.}"
        elif name.startswith(_NUMBA_PREFIX):
            python = _python_name(name.removeprefix(_NUMBA_PREFIX))
            found[name] = f"a cfunc of numba: rename it to {python!r} with objcopy --redefine-sym, or in its LLVM IR"
        elif name.startswith("NRT_") or _NUMBA_ENVIRONMENT + name.removeprefix("_ZN") in variables:
            found[name] = "a part of numba's code"
        elif name.startswith("PyInit_"):
            found[name] = f"a module of Python: {_PYTHON.hint}"
    return found


def _python_name(mangled: str) -> str:
    """Return the last part of a mangled name: `saxpy` of `_ZN8__main__5saxpyB2v1...`."""
    last, at = mangled, len("_ZN")
    while length := _LENGTH.match(mangled, at):
        at = length.end() + int(length[0])
        last = mangled[length.end() : at]
    return last


@dataclass(frozen=True, slots=True)
class Library:
    """A run-time library that operators cannot use."""

    name: str
    symbols: re.Pattern[str]
    hint: str
    """What to compile instead."""
    evidence: re.Pattern[str] | None = None
    """What one of the symbols must match, if other libraries have the same symbols."""


_NUMBA: Final = Library(
    "numba's run-time library",
    re.compile(r"(numba|NRT)_\w+|_?Py[A-Z]\w*|_?Py_\w+"),
    "in the cfunc, use only pointers and loops: arrays, exceptions, `/`, min and max need this library",
    _NUMBA_LIBRARY,
)
_PYTHON: Final = Library(
    "Python's C API",
    re.compile(r"_?Py[A-Z]\w*|_?Py_\w+"),
    "only Python's interpreter can call it: write the operator in C, as a cfunc of numba, or around `pythran -E`",
)
_NIM: Final = Library(
    "Nim's run-time library",
    re.compile(
        r"raise(Overflow|DivByZero|IndexError\d?|RangeError\w*|FieldError\w*|Exception\w*|NilAccess)|[^.]*dotnim_[^.]*"
        r"|nim[A-Z]\w+|rawNewString|(newObj|newSeq|setLength|resize|addChar|appendString|copyString)\w*"
        r"|[^.]*__(system|std[^.]*)_u?\d+"
    ),
    "compile with -d:danger --os:standalone --gc:none, without seq, string, ref and exceptions",
)
_CPP: Final = Library(
    "the C++ standard library",
    re.compile(
        r"_ZN?K?S[tabsiod]\w+|_Z(nw|na|dl|da)\w+|_ZT[VISN](St|S[abiods]|N10__cxxabiv1|[a-z]|P)\w*|__cxa_\w+"
        r"|__gxx_personality_v0|_Unwind_Resume"
    ),
    "compile with -fno-exceptions -fno-rtti; use arrays in place of containers, new and streams",
)
"""Other languages unwind the stack with its functions, so it is the last one."""
LIBRARIES: Final = (
    _NUMBA,
    _PYTHON,
    Library(
        "Fortran's run-time library",
        re.compile(r"_gfortran_\w+|_Fortran\w+"),
        "remove read, write, print, allocate and stop; write matmul and the like as loops; compile without -fcheck",
    ),
    Library(
        "Ada's run-time library",
        re.compile(r"_*gnat_\w+|(ada|system|gnat|interfaces)__\w+"),
        "compile with -gnatp (no run-time checks); remove exceptions, tasks, Text_IO and results of unknown size",
    ),
    Library(
        "D's run-time library",
        re.compile(r"_d_\w+|_D\d\w+|_aa[A-Z]\w+|_adEq\w*"),
        "compile with -betterC -checkaction=halt; use pointers in place of arrays from the heap",
    ),
    _NIM,
    _CPP,
)
_STATE_HINTS: Final = (
    (re.compile(r"_D\d+\w+"), "compile with -betterC: these are D's descriptions of modules and types"),
    (re.compile(r"L\.\d+"), "set `stateful: true`: tcc writes constants of float and double to .data"),
)


def missing_libraries(item: Member, symbols: Iterable[str]) -> list[tuple[Library, list[str]]]:
    """Return the run-time libraries that undefined symbols of an object belong to, each with its symbols."""
    rest = list(symbols)
    libraries: list[tuple[Library, list[str]]] = []
    for library in LIBRARIES if rest else ():
        found = [name for name in rest if library.symbols.fullmatch(name)]
        if not found or (library is _NIM and not _is_nim(item)):
            continue
        if library.evidence is not None and not any(map(library.evidence.fullmatch, found)):
            continue
        rest = [name for name in rest if not library.symbols.fullmatch(name)]
        if library is _CPP and libraries:  # the other library is the cause
            libraries[-1][1].extend(found)
        else:
            libraries.append((library, found))
    return libraries


def description(library: Library, symbols: Sequence[str]) -> str:
    """Return a text with the first of the symbols: `undefined symbols of numba's run-time library ('NRT_Free', …)`."""
    named = ", ".join(repr(symbol) for symbol in symbols[:3]) + (", …" if len(symbols) > 3 else "")
    return f"undefined symbol{'s' if len(symbols) > 1 else ''} of {library.name} ({named})"


def state_hint(names: Collection[str]) -> str | None:
    """Return how to avoid variables that a compiler adds; None if it adds none of `names`."""
    return next((hint for pattern, hint in _STATE_HINTS if names and all(map(pattern.fullmatch, names))), None)

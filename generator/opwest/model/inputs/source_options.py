# SPDX-License-Identifier: Apache-2.0
"""Options of sources: the keys `include_dirs`, `defines`, `cflags` and `optimize` of an entry of `objects`.

The options are arguments of CMake, of ninja's shell and of the compiler; the accepted characters have no meaning in any
of them. Flags that read or write other files, that hide state from the inspection of objects, or that have a key of
their own are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import PurePosixPath

from opwest.base.diagnostics import Location, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, located_items
from opwest.model.inputs.headers import normal
from opwest.model.types.builds import NO_OPTIONS, CompileOptions
from opwest.objects.compilers import abi_effect
from opwest.objects.facts import CSource, Member, ObjectError
from opwest.objects.stack import StackEntry, read_su

KEYS = ("include_dirs", "defines", "cflags")
OPTIMIZE = "optimize"
"""Of sources and of LLVM IR."""
_DEFINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(=[A-Za-z0-9_+*/.,:<>(){}\"' =!&|^~?-]*)?")
_FLAG = re.compile(r"-(O|f|m|W|w$|std=|g|pedantic)[A-Za-z0-9_=+.,:-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDINARY = "a flag of code generation, optimization or warnings: -O3, -fno-math-errno, -mfpu=auto, -Wno-unused"


_REFUSED: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(
        ("-I", "-isystem", "-iquote", "-idirafter"),
        ("adds a directory of headers", "list the directory under 'include_dirs'"),
    ),
    **dict.fromkeys(("-D", "-U"), ("defines a macro", "list the macro under 'defines'")),
    **dict.fromkeys(
        ("-flto", "-fprofile", "-fsanitize", "-finstrument", "--coverage"),
        ("hides or adds state", "set it for the whole firmware"),
    ),
    **dict.fromkeys(
        ("-fdump", "-fstack-usage", "-fcallgraph-info", "-fsave-optimization", "-fopt-info", "-ftime-trace", "-gsplit"),
        ("writes files besides the object", None),
    ),
    "-fsyntax-only": ("writes no object", None),
    **dict.fromkeys(("-fplugin", "-Wl,", "-Wa,", "-Wp,"), ("passes options to another program", None)),
}
"""The reason why a flag is refused, and a hint, by the begin of the flag."""


def compile_options(context: Context, entry: Mapping) -> CompileOptions:
    """Return the options of an entry; report invalid ones."""
    if not any(key in entry for key in (*KEYS, OPTIMIZE)):
        return NO_OPTIONS
    folders = [_directory(context, *item) for item in located_items(context.items("include_dirs", entry))]
    defines: dict[str, str] = {}
    for define, at in located_items(context.items("defines", entry)):
        parts = _DEFINE.fullmatch(define)
        if parts is None:
            context.faults.error(
                f"invalid macro definition {define!r}",
                at,
                expected="NAME or NAME=VALUE, without ; $ # % \\ ` @ [ and ]",
                hint="define other values in a header",
            )
        elif parts[1] in defines:
            context.faults.error(f"duplicate macro {parts[1]!r}", at, expected="each macro once")
        else:
            defines[parts[1]] = define
    flags = [flag for flag, at in located_items(context.items("cflags", entry)) if _accepted(context, flag, at)]
    return CompileOptions(
        tuple(folder for folder in folders if folder is not None),
        tuple(defines.values()),
        tuple(flags),
        entry.get(OPTIMIZE, NO_OPTIONS.optimize),
    )


def refuse_options_of_ir(context: Context, entry: Mapping, file: str) -> None:
    """Report options of sources in an entry with LLVM IR, which has `optimize` only."""
    _refuse(context, entry, file, "LLVM IR", KEYS, "C or C++ sources only")


def refuse_options_of_object(context: Context, entry: Mapping, file: str) -> None:
    """Report options in an entry with a file that is already compiled."""
    _refuse(context, entry, file, "compiled file", KEYS, "C or C++ sources only")
    _refuse(context, entry, file, "compiled file", (OPTIMIZE,), "C or C++ sources or LLVM IR only")


def _refuse(context: Context, entry: Mapping, file: str, kind: str, keys: Iterable[str], expected: str) -> None:
    for key in keys:
        if key in entry:
            context.faults.error(
                f"{key!r} in an entry with {kind} {file!r}",
                entry.key_location(key),
                expected=f"{key!r} in an entry with {expected}",
                hint="move the sources to a separate entry",
            )


def expanded(source: CSource, options: CompileOptions) -> CSource:
    """Return a source with the names of functions and variables that macros of the options replace."""
    named = {name: value for name, _, value in (define.partition("=") for define in options.defines) if value}
    names = {name: value for name, value in named.items() if _IDENTIFIER.fullmatch(value)}
    if not names.keys() & {*(f.name for f in source.functions), *source.globals, *source.state, *source.calls}:
        return source
    return replace(
        source,
        functions=tuple(replace(f, name=names.get(f.name, f.name)) for f in source.functions),
        globals=tuple(names.get(name, name) for name in source.globals),
        state=tuple(names.get(name, name) for name in source.state),
        calls=tuple(names.get(name, name) for name in source.calls),
        library_calls=tuple(names.get(name, name) for name in source.library_calls),
    )


def _directory(context: Context, name: str, at: Location) -> PurePosixPath | None:
    path = context.file(name, at)
    if path is None:
        return None
    if not path.is_dir():
        context.faults.error(f"{name!r} is not a directory", at, expected="a directory with headers")
        return None
    return PurePosixPath(normal(PurePosixPath(name)) or ".")


def _accepted(context: Context, flag: str, at: Location) -> bool:
    """Return whether a flag can be passed to the compiler; report one that cannot."""
    refusal = next((refusal for begin, refusal in _REFUSED.items() if flag.startswith(begin)), None)
    if refusal is not None:
        reason, hint = refusal
        context.faults.error(f"flag {flag!r} {reason}", at, expected=_ORDINARY, hint=hint)
    elif (effect := abi_effect(flag)) is not None:
        context.faults.error(f"flag {flag!r} changes the calling convention: {effect}", at, expected=_ORDINARY)
    elif _FLAG.fullmatch(flag) is None:
        context.faults.error(f"invalid flag {flag!r}", at, expected=_ORDINARY)
    else:
        return True
    return False


_SHOWN = 5


@dataclass
class StackFiles:
    """The `.su` files of one entry."""

    functions: dict[str, StackEntry] = field(default_factory=dict)
    """The union of all files; for functions of one name, the larger entry."""
    _files: list[tuple[str, Location, frozenset[str]]] = field(default_factory=list)

    def check(self, context: Context, members: Iterable[Member]) -> None:
        """Warn about functions absent from the entry's objects: the files belong to other objects."""
        if not self._files:
            return
        known = {s.name for member in members for s in member.symbols if s.section == "code"}
        known |= {re.sub(r"\.\d+$", "", name) for name in known}
        for file, at, names in self._files:
            foreign = sorted(names - known)
            if foreign:
                listed = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
                context.faults.warning(
                    f"{file} lists functions that are in no object of this entry: {listed}",
                    at,
                    expected="the .su files of these objects",
                    hint=nearest(foreign[0], known),
                )


def read_stack_files(context: Context, entry: Mapping) -> StackFiles:
    """Return the content of the `.su` files of an entry; report unusable files."""
    stack_files = StackFiles()
    if "stack_usage" in entry and "target" not in entry:
        context.faults.error(
            "'stack_usage' requires 'target'",
            entry.key_location("stack_usage"),
            expected="target: the target of the objects",
            hint="C sources and LLVM IR are compiled once per target, with different frame sizes",
        )
        return stack_files
    for file, at in located_items(context.items("stack_usage", entry)):
        path = context.regular_file(file, at, "a .su file written by a compiler")
        if path is None:
            continue
        try:
            entries = read_su(path)
        except ObjectError as error:
            message = f"{file}: {error.message.removeprefix(path.name).lstrip(': ')}"
            context.faults.error(message, at, expected=error.expected, hint=error.hint)
            continue
        stack_files._files.append((file, at, frozenset(entries)))
        for name, frame in entries.items():
            old = stack_files.functions.get(name)
            if old is None or (frame.exact, -frame.bytes) < (old.exact, -old.bytes):
                stack_files.functions[name] = frame
    return stack_files

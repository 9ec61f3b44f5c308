# SPDX-License-Identifier: Apache-2.0
"""Check compiled operators for writable state and hidden effects, in the build of the firmware and `opwest run --host`.

`opwest check` reads the C and C++ sources of operators, but not their headers and macros. This program reads the
compiled objects: ELF relocatable files (System V ABI, gABI 4.1, chapters "Sections" and "Symbol Table"). `effects.py`
judges the functions that they call. It requires Python 3.8 and the standard library only. pyelftools takes seconds for
objects with thousands of sections.

Link-time optimisation removes state from objects, and instrumentation (coverage, sanitizers, profiling) adds counters.
Operators that were compiled with such flags are compiled again without them, for this check only. Operators with data
that has no symbols are compiled again as position-dependent code.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

EXPECTED = "operators without .data and .bss, so that models are reentrant"
HINT = "make it const, declare it under `run.state` and pass it as an argument, or set `stateful: true`"
IGNORED = frozenset(
    """
    __TVMAPISetLastError __TVMArrayAlloc __TVMArrayFree __TVMBackendAllocWorkspace __TVMBackendFreeWorkspace
    __TVMBackendGetFuncFromEnv __TVMBackendParallelBarrier __TVMBackendParallelLaunch __TVMBackendRunOnce
    __TVMCFuncSetReturn __TVMDeviceAllocDataSpace __TVMDeviceAllocDataSpaceWithScope __TVMDeviceCopyDataFromTo
    __TVMDeviceFreeDataSpace __TVMFFIEnvModLookupFromImports __TVMFFIErrorMoveFromRaised __TVMFFIErrorSetRaised
    __TVMFFIErrorSetRaisedFromCStr __TVMFFIErrorSetRaisedFromCStrParts __TVMFFIFunctionCall
    __TVMFFIFunctionGetGlobal __TVMFFIObjectDecRef __TVMFFIObjectIncRef __TVMFuncCall __TVMFuncGetGlobal
    __TVMSetStream __TVMSynchronize __tvm_ffi__library_ctx __tvm_module_ctx
    """.split()
)
"""Variables in sources that TVM writes, which nothing writes here: handles of a library, pointers to functions."""

_SHT_NULL, _SHT_SYMTAB, _SHT_SYMTAB_SHNDX = 0, 2, 18
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR = 0x1, 0x2, 0x4
_STT_OBJECT, _STT_FUNC, _STT_SECTION, _STT_FILE, _STT_COMMON, _STT_TLS, _STT_IFUNC = 1, 2, 3, 4, 5, 6, 10
_PADDING = 15
"""Bytes before a function that compilers insert to align it, at most."""
_COMMON = (0xFFF2, 0xFF02)
"""SHN_COMMON, and that of the large code model of x86-64."""
_XINDEX = 0xFFFF
_CONSTANT = ".data.rel.ro"
"""The section that is constant after relocation; a period and more can follow."""
_CONSTANT_SYMBOL = "DW.ref."
"""References to the personality routine of C++ exceptions."""

_HIDES_OR_ADDS = (
    "-flto",
    "-fsanitize",
    "--coverage",
    "-coverage",
    "-fcoverage",
    "-fcondition-coverage",
    "-fprofile",
    "-fcs-profile",
    "-ftest-coverage",
    "-fpatchable-function-entry",
    "-finstrument-functions",
)
"""Flags that remove state from objects or add it, by their beginnings."""
_HIDES_OR_ADDS_EXACTLY = ("-pg", "-p")
_OUTPUT = re.compile(r" -o ([^\s'\"\\]+)(?: |$)")
_IS_WINDOWS = os.name == "nt"
_WORD_OF_WINDOWS = re.compile(r'(?:\\"|"(?:\\"|[^"])*"|[^\s"])+')
"""A word as CMake writes it for Windows: a backslash is part of a path, except before a quote."""
_RULES = ("check_operators.py", "effects.py")
_DEPENDENCY_FLAGS = ("-MD", "-MMD", "-MP")
_DEPENDENCY_FLAGS_WITH_VALUE = ("-MF", "-MT", "-MQ", "-MJ")


class NotElfError(Exception):
    """The content is not an ELF object of a known class."""


class State(NamedTuple):
    """Writable data in one section."""

    section: str
    size: int
    symbols: tuple[str, ...]


class Symbol(NamedTuple):
    """A symbol: its offset in the section and its size, bytes."""

    name: str
    kind: int
    value: int
    size: int


class Source(NamedTuple):
    """A source of operators."""

    path: str
    place: str
    """The position in the manifest, as in messages of a compiler: `manifest.yaml:3:20`."""
    permits: tuple[str, ...]
    """The effects that the manifest permits: `state`, and those of effects.py."""


class Facts(NamedTuple):
    """What a compiled object contains and needs."""

    states: list[State]
    undefined: list[str]
    """The functions and variables of other objects and libraries that it names."""


def facts(content: bytes, prefix: str = "") -> Facts:
    """Return the writable data of an object, by section, and what it needs; `prefix` is removed from its symbols.

    Raises NotElfError.
    """
    try:
        return _facts(content, prefix)
    except (struct.error, IndexError, ValueError) as error:
        raise NotElfError("the object is damaged") from error


def _facts(content: bytes, prefix: str) -> Facts:
    if content[:4] != b"\x7fELF" or content[4] not in (1, 2) or content[5] not in (1, 2):
        raise NotElfError("the object is not an ELF file")
    wide, order = content[4] == 2, "<" if content[5] == 1 else ">"
    table = struct.unpack_from(order + ("Q" if wide else "I"), content, 40 if wide else 32)[0]
    count, names = struct.unpack_from(order + "HH", content, 60 if wide else 48)
    header = struct.Struct(order + ("IIQQQQIIQQ" if wide else "10I"))
    first = header.unpack_from(content, table)
    count, names = count or first[5], first[6] if names == _XINDEX else names
    sections = [header.unpack_from(content, table + index * header.size) for index in range(count)]
    strings = _data(content, sections[names])
    symbols, common, undefined = _symbols(content, sections, order, wide)
    return Facts(list(_states(sections, strings, symbols, common, prefix)), undefined)


def _states(
    sections: Sequence[tuple[int, ...]],
    strings: bytes,
    symbols: dict[int, list[Symbol]],
    common: Sequence[tuple[str, int]],
    prefix: str,
) -> Iterator[State]:
    for index, section in enumerate(sections):
        kind, flags, size = section[1], section[2], section[5]
        if kind == _SHT_NULL or size == 0 or flags & (_SHF_WRITE | _SHF_ALLOC) != _SHF_WRITE | _SHF_ALLOC:
            continue
        name = _name(strings, section[0])
        own = symbols.get(index, [])
        data = [symbol for symbol in own if symbol.kind in (_STT_OBJECT, _STT_TLS, _STT_COMMON)]
        if flags & _SHF_EXECINSTR:
            size = _variables(own, data, size)
        shown = _shown([symbol.name for symbol in data or own], prefix)
        if not size or f"{name}.".startswith(f"{_CONSTANT}.") or (data and not shown):
            continue
        yield State(name, size, shown)
    for name, size in common:
        shown = _shown([name], prefix)
        if shown:
            yield State("COMMON", size, shown)


def _symbols(
    content: bytes, sections: Sequence[tuple[int, ...]], order: str, wide: bool
) -> tuple[dict[int, list[Symbol]], list[tuple[str, int]], list[str]]:
    """Return the symbols by section, the common symbols with their sizes, and the undefined symbols."""
    found: dict[int, list[Symbol]] = {}
    common: list[tuple[str, int]] = []
    undefined: list[str] = []
    entry = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
    for number, section in enumerate(sections):
        if section[1] != _SHT_SYMTAB:
            continue
        strings = _data(content, sections[section[6]])
        extended = [_data(content, s) for s in sections if s[1] == _SHT_SYMTAB_SHNDX and s[6] == number]
        for position, fields in enumerate(entry.iter_unpack(_data(content, section))):
            name, info, index, value, size = (fields[i] for i in ((0, 1, 3, 4, 5) if wide else (0, 3, 5, 1, 2)))
            kind = info & 0xF
            if kind in (_STT_SECTION, _STT_FILE):
                continue
            text = _name(strings, name)
            if index == 0:
                undefined += [text] * bool(text)
                continue
            if index in _COMMON:
                common.append((text, size))
                continue
            if index == _XINDEX and extended:
                index = struct.unpack_from(order + "I", extended[0], 4 * position)[0]
            if kind not in (_STT_FUNC, _STT_IFUNC) and (not text or text.startswith((".L", "$"))):
                continue  # local labels, mapping symbols of Arm and RISC-V
            found.setdefault(index, []).append(Symbol(text, kind, value, size))
    return found, common, undefined


def _variables(symbols: Sequence[Symbol], data: Sequence[Symbol], size: int) -> int:
    """Return the bytes of variables in a writable section with code; functions there are code in RAM."""
    functions = [symbol for symbol in symbols if symbol.kind in (_STT_FUNC, _STT_IFUNC)]
    if not functions:
        return size
    variables = _covered(data, size)
    # Local variables without symbols: bytes that belong to no function. Assembly may give no sizes.
    rest = size - _covered(functions, size) if all(symbol.size for symbol in functions) else 0
    return max(variables, rest) if rest > _PADDING * len(functions) else variables


def _covered(symbols: Sequence[Symbol], size: int) -> int:
    """Return the number of bytes of a section that symbols cover. Bit 0 of a function's address is set for Thumb."""
    end = total = 0
    places = ((s.value & ~1 if s.kind in (_STT_FUNC, _STT_IFUNC) else s.value, s.size) for s in symbols)
    for begin, length in sorted(places):
        stop = min(begin + length, size)
        total += max(0, stop - max(begin, end))
        end = max(end, stop)
    return total


def _shown(symbols: Sequence[str], prefix: str) -> tuple[str, ...]:
    """Return the names as in the source: without the model's prefix and the compiler's number of a static variable."""
    names = []
    for name in symbols:
        plain = re.sub(r"\.\d+$", "", name[len(prefix) :] if prefix and name.startswith(prefix) else name)
        if plain not in IGNORED and not plain.startswith(_CONSTANT_SYMBOL):
            names.append(plain)
    return tuple(dict.fromkeys(names))


def _data(content: bytes, section: tuple[int, ...]) -> bytes:
    return content[section[4] : section[4] + section[5]]


def _name(strings: bytes, offset: int) -> str:
    return strings[offset : strings.index(b"\0", offset)].decode("utf-8", "backslashreplace") if strings else ""


def plain_command(command: Sequence[str], output: str) -> list[str]:
    """Return a compiler's command without flags that hide or add state.

    The new command writes its object to `output`, and no list of dependencies.
    """
    words: list[str] = []
    waiting = iter(command)
    for word in waiting:
        if word in _DEPENDENCY_FLAGS_WITH_VALUE:
            next(waiting, None)
        elif word == "-o":
            next(waiting, None)
            words += ["-o", output]
        elif not _hides_or_adds(word) and word not in _DEPENDENCY_FLAGS and not word.startswith("-Wp,-M"):
            words.append(word)
    return words


def object_facts(obj: str, command: Sequence[str], folder: str, prefix: str = "") -> Facts:
    """Return the facts about an object; compile it again if its flags hide or add state.

    `command` compiled it in the directory `folder`. Raises NotElfError, OSError and subprocess.CalledProcessError.
    """
    plain = plain_command(command, f"{obj}.plain")
    if any(map(_hides_or_adds, command)):
        found = _compiled_facts(plain, f"{obj}.plain", folder, prefix)
    else:
        found = facts(Path(folder, obj).read_bytes(), prefix)
    if any(not state.symbols for state in found.states):
        # In position-independent code, GCC writes the initial values of local arrays of pointers to .data.
        found = _compiled_facts([*plain, "-fno-pic", "-fno-pie"], f"{obj}.plain", folder, prefix)
    return found


def _hides_or_adds(word: str) -> bool:
    return word.startswith(_HIDES_OR_ADDS) or word in _HIDES_OR_ADDS_EXACTLY


def _compiled_facts(command: Sequence[str], obj: str, folder: str, prefix: str) -> Facts:
    try:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return facts(Path(folder, obj).read_bytes(), prefix)
    finally:
        Path(folder, obj).unlink(missing_ok=True)


def message(name: str, found: Sequence[State]) -> str:
    """Return the text of the error for a source, without position, expected form and hint."""
    parts = [f"{_listed(state.symbols) or 'unnamed data'} in section {state.section}" for state in found[:5]]
    more = f" and {len(found) - 5} more sections" if len(found) > 5 else ""
    size = sum(state.size for state in found)
    return f"{name} has writable state of {size} bytes when compiled: {'; '.join(parts)}{more}"


def failure(name: str, error: subprocess.CalledProcessError) -> str:
    """Return the text of the error for a source whose second compilation failed, without position."""
    text = error.stderr.decode("utf-8", "replace").strip()
    return f"{name} cannot be compiled again to check its state:\n{text}"


def _listed(symbols: Sequence[str]) -> str:
    return ", ".join([*symbols[:5], *["..."] * (len(symbols) > 5)])


def _words(command: str) -> list[str]:
    """Return the words of a command in compile_commands.json."""
    if not _IS_WINDOWS:
        return shlex.split(command)
    words = _WORD_OF_WINDOWS.findall(command)
    return [re.sub(r'(\\?)"', lambda quote: '"' if quote[1] else "", word) for word in words]


def _key(path: str) -> str:
    """Return a path for comparisons; Windows ignores case and accepts both slashes."""
    return os.path.normcase(os.path.normpath(path))


def _commands(file: str, targets: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """Return object, command and directory by source, for the object libraries `targets`."""
    found = {}
    marks = [f"{target}.dir/" for target in targets]
    for entry in json.loads(Path(file).read_text(encoding="utf-8")):
        command = entry["command"]
        slashes = command.replace("\\", "/") if _IS_WINDOWS else command
        mark = next((mark for mark in marks if mark in slashes), None)
        if mark is not None:
            plain = _OUTPUT.search(slashes)  # shlex takes half a second for a thousand commands
            words = [] if plain else _words(command)
            obj = plain[1] if plain else words[words.index("-o") + 1]
            if mark in (obj.replace("\\", "/") if _IS_WINDOWS else obj):
                found[_key(entry["file"])] = obj, command, entry["directory"]
    return found


def _sources(file: str) -> list[Source]:
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line]
    return [Source(path, place, tuple(permits.split(","))) for path, place, permits in rows]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all changed objects of a library; return the exit code."""
    parser = argparse.ArgumentParser(description="Check compiled operators for writable state and hidden effects.")
    parser.add_argument("--model", required=True, help="name of the model, the prefix of its symbols")
    parser.add_argument("--library", required=True, nargs="+", help="CMake's object libraries with the operators")
    parser.add_argument("--sources", required=True, help="lines of source, position in the manifest, effects")
    parser.add_argument("--libc", required=True, help="the C library: host, picolibc, newlib or minimal")
    parser.add_argument("--commands", required=True, help="CMake's compile_commands.json")
    parser.add_argument("--record", required=True, help="file with the objects that were checked; written")
    options = parser.parse_args(arguments)
    record = Path(options.record)
    try:
        known = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    checked: dict[str, Any] = {}
    faults = 0
    version = [(Path(__file__).parent / name).stat().st_mtime_ns for name in _RULES]
    commands = _commands(options.commands, options.library)
    for source in _sources(options.sources):
        obj, command, folder = commands[_key(source.path)]
        status = Path(folder, obj).stat()
        key = [status.st_mtime_ns, status.st_size, version, command, options.libc, *source.permits]
        if known.get(obj) != key:
            found = list(_check(source, obj, _words(command), folder, f"{options.model}__", options.libc))
            if found:
                print("\n".join(found), file=sys.stderr)
                faults += len(found)
                continue
        checked[obj] = key
    record.write_text(json.dumps(checked), encoding="utf-8")
    return 1 if faults else 0


def _check(source: Source, obj: str, command: Sequence[str], folder: str, prefix: str, libc: str) -> Iterator[str]:
    """Yield the texts of the errors for a source."""
    from effects import EXPECTED as EFFECT_EXPECTED
    from effects import hidden

    at = f"{source.place}: error: "
    try:
        found = object_facts(obj, command, folder, prefix)
    except (NotElfError, OSError) as error:
        yield f"{at}{source.path}: cannot read its object {obj}: {error}"
        return
    except subprocess.CalledProcessError as error:
        yield at + failure(source.path, error)
        return
    if found.states and "state" not in source.permits:
        yield f"{at}{message(source.path, found.states)}\n  expected: {EXPECTED}\n  hint: {HINT}"
    for one in hidden(found.undefined, [libc], source.permits):
        yield f"{at}{source.path} {one.text}\n  expected: {EFFECT_EXPECTED}\n  hint: {one.hint}"


if __name__ == "__main__":
    sys.dont_write_bytecode = True  # CMake runs again if a file is added to the application
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The causes of a failed build, from the output of west: Kconfig, devicetree, CMake, the compiler, the linker.

The forms are those of Kconfiglib (scripts/kconfig), dtlib and edtlib (scripts/dts), CMake, GCC, Clang and
GNU ld.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from opwest.base.diagnostics import Diagnostic, Location, beginning
from opwest.base.result import counted

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MOST = 8
"""The causes that are shown."""
_LONG = 200
_WIDTH, _PARAGRAPH = 2000, 20_000
"""The characters of a line and of a paragraph that are read: the time of the expressions is quadratic."""
_LINES = 24
"""The lines of a message of CMake that are shown."""
_SIZE_HINT = "the service requires additional memory: one more workspace per model"

_ASSIGNED = re.compile(r"warning: (\w+) \(defined at .*?\) was assigned the value (\S+) but got the value (\S+)\. (.*)")
_UNMET = re.compile(r"Check these unsatisfied dependencies: (.*?)\. See http")
_UNDEFINED = re.compile(r"(?:(.+?):(\d+): )?warning: attempt to assign the value (\S+) to the undefined symbol (\w+)")
_KCONFIG = re.compile(r"(?:(.+?):(\d+): )?(?:warning|error): (.*)")
_TREE = re.compile(r"devicetree error: (?:(.+?):(\d+) \(column (\d+)\): )?(.*)")
_DTC = re.compile(r"Error: (.+?):(\d+)\.(\d+)(?:-\S+)? (.*)")
_COMPILER = re.compile(r"(.+?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)")
_ERROR = re.compile(r"\berror\b", re.IGNORECASE)
_EXPANSION = re.compile(r"(.+?):(\d+):(\d+): note: in expansion of macro .BUILD_ASSERT.")
_OVERFLOW = re.compile(r"region [`']?(\w+)'? overflowed by (\d+) bytes?")
_LINKER = re.compile(
    r"(undefined reference to .*|multiple definition of [`'][^`']+'|cannot find -l\S+"
    r"|.* uses VFP register arguments,.*)"
)
_CMAKE = re.compile(r"CMake Error(?: at (.+?):(\d+) \((\S+)\)| in (\S+))?:\s*(.*)")
_ABOVE = re.compile(r"^(?:No (?:board|shield|snippet) named .*|Snippets? not found: .*|ERROR: .*)", re.IGNORECASE)
_FOLLOWING = ("command failed with return code", "execute_process failed", "Invalid SHIELD", "Invalid BOARD")
"""Messages of CMake about a program that has reported the cause."""
_OWN = "opwest: "
_HINTS = {
    'Could not find a package configuration file provided by "Zephyr-sdk"': (
        "install the Zephyr SDK, or select another compiler with ZEPHYR_TOOLCHAIN_VARIANT"
    ),
    "depends on: ['opwest']": (
        "the application needs the Zephyr module opwest: west update, or opwest generate MANIFEST --runtime=vendored"
    ),
}
_WEST = re.compile(r"(?:FATAL ERROR|ERROR): (?!command exited)(.*)")


def causes(output: str, application: Path) -> list[Diagnostic]:
    """Return the causes of a failure that an output contains, the first ones, in its order; empty if there is none."""
    lines = [line[:_WIDTH] for line in _ESCAPE.sub("", output).splitlines()]
    found: dict[Diagnostic, None] = {}
    for read in (_kconfig, _devicetree, _compiler, _cmake):
        for diagnostic in read(lines, application):
            found.setdefault(diagnostic)
        if found:  # CMake reports later that Kconfig failed
            break
    if not found:
        found = {Diagnostic("error", beginning(match[1])): None for line in lines if (match := _WEST.match(line))}
    return list(found)[:_MOST]


def end_of(output: str) -> str:
    """Return the lines of an output that contain the word error, indented; without any, the last lines."""
    lines = [line.rstrip() for line in _ESCAPE.sub("", output).splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.search(line) and "command exited with status" not in line]
    return "\n".join(f"  {line[:300]}" for line in (named[:_MOST] or lines[-_MOST:]))


def is_overflow(output: str) -> bool:
    """Whether an image is larger than a memory of the board."""
    return _OVERFLOW.search(output) is not None


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Yield the text between empty lines, each as one line: Kconfig wraps its messages."""
    whole: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            whole.append(line.strip())
        elif whole:
            yield " ".join(whole)[:_PARAGRAPH]
            whole = []


def _kconfig(lines: Sequence[str], application: Path) -> Iterator[Diagnostic]:
    """Yield the warnings of Kconfig, of which builds make errors, with the place of the assignment."""
    aborted = any(re.match(r"error: Aborting due to Kconfig|.*kconfig(?:lib)?\.\w*Error", line) for line in lines)
    if not aborted:
        return
    for text in _paragraphs(lines):
        start = re.search(r"(?:\S{1,300}:\d+: )?warning: ", text)
        if start is None or text.startswith("error: Aborting"):
            continue
        text = text[start.start() :]
        if match := _UNDEFINED.match(text):
            file, line, value, name = match.groups()
            at = Location(file, int(line), 1) if file else _assignment(name, application)
            yield Diagnostic(
                "error",
                f"CONFIG_{name} is assigned {_plain(value)}, but no Kconfig file defines it",
                at,
                hint="correct the name; an option of a module requires the module (west update)",
            )
        elif match := _ASSIGNED.match(text):
            name, value, got, rest = match.groups()
            unmet = _UNMET.search(rest)
            hint = f"its dependencies are not met: {_shortened(unmet[1])}" if unmet else None
            what = f"CONFIG_{name} is assigned {_plain(value)}, but has the value {_plain(got)}"
            yield Diagnostic("error", what, _assignment(name, application), hint=hint)
        elif match := _KCONFIG.match(text):
            file, line, message = match.groups()
            at = Location(file, int(line), 1) if file else None
            yield Diagnostic("error", f"Kconfig: {_shortened(message)}", at)


def _plain(value: str) -> str:
    return value.strip("'\"().,").removeprefix("set =")


def _shortened(text: str) -> str:
    """Return a text; a long condition keeps its begin and its end."""
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]} … {text[-_LONG // 2 :]}"


def _assignment(name: str, application: Path) -> Location | None:
    """Return the last place in the files of an application that assigns a symbol."""
    pattern = re.compile(rf"\s*CONFIG_{re.escape(name)}\s*=")
    for file in (*sorted((application / "boards").glob("*.conf")), application / "prj.conf"):
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        numbers = [number for number, line in enumerate(lines, 1) if pattern.match(line)]
        if numbers:
            return Location(str(file), numbers[-1], 1)
    return None


def _devicetree(lines: Sequence[str], _application: Path) -> Iterator[Diagnostic]:
    for line in lines:
        if match := _TREE.match(line):
            file, number, column, message = match.groups()
            at = Location(file, int(number), int(column)) if file else None
            yield Diagnostic("error", beginning(f"devicetree: {message}"), at)
        elif match := _DTC.match(line):
            file, number, column, message = match.groups()
            yield Diagnostic("error", beginning(f"devicetree: {message}"), Location(file, int(number), int(column)))


def _compiler(lines: Sequence[str], _application: Path) -> Iterator[Diagnostic]:
    """Yield the errors of the compiler, then those of the linker."""
    for index, line in enumerate(lines):
        if match := _COMPILER.match(line):
            file, number, column, message = match.groups()
            at = Location(file, int(number), int(column or 1))
            if message.startswith("static assertion failed"):
                at = next((place for place in map(_place_of_assertion, lines[index + 1 : index + _LINES]) if place), at)
            yield Diagnostic("error", beginning(message), at)
    yield from _linker(lines)


def _place_of_assertion(line: str) -> Location | None:
    """Return the place of a BUILD_ASSERT in the notes of an error, which is in Zephyr's definition of the macro."""
    match = _EXPANSION.match(line)
    return Location(match[1], int(match[2]), int(match[3])) if match else None


def _linker(lines: Sequence[str]) -> Iterator[Diagnostic]:
    hint: str | None = _SIZE_HINT  # of the first region
    for line in lines:
        if match := _OVERFLOW.search(line):
            text = f"the image does not fit: region {match[1]} lacks {counted(int(match[2]), 'byte')}"
            yield Diagnostic("error", text, hint=hint)
            hint = None
        elif match := _LINKER.search(line):
            yield Diagnostic("error", beginning(f"linker: {match[1]}"), _place_of_linker(line))


def _place_of_linker(line: str) -> Location | None:
    """Return the line of the source that a message of the linker names; None without debug information."""
    match = re.match(r"(?:\S*ld\S*: )?(\S+\.(?:c|cc|cpp|cxx|h|S)):(\d+): ", line)
    return Location(match[1], int(match[2]), 1) if match else None


def _cmake(lines: Sequence[str], _application: Path) -> Iterator[Diagnostic]:
    """Yield the errors of CMake, each with all lines of its message."""
    for index, line in enumerate(lines):
        match = _CMAKE.match(line)
        if match is None:
            continue
        block = [match[5]] if match[5] else []
        for following in lines[index + 1 :]:
            if following.startswith(("Call Stack", "-- ", "CMake ", "FATAL ERROR")):
                break
            block.append(following.strip())
        text = "\n".join(block).strip()
        if text.startswith(_FOLLOWING):
            text = next((above for above in reversed(lines[:index]) if _ABOVE.match(above)), text)
        hint = next((hint for part, hint in _HINTS.items() if part in text), None)
        at = Location(match[1], int(match[2]), 1) if match[1] else Location(match[4]) if match[4] else None
        if text.startswith(_OWN):  # the place is a function of opwest
            text, at = text.removeprefix(_OWN), None
        yield Diagnostic("error", _message(text), at, hint=hint)


def _message(text: str) -> str:
    """Return a message of CMake: its paragraphs, of which only indented lists keep their lines."""
    shown = text.splitlines()[:_LINES]
    return "\n  ".join(beginning(line) for line in shown if line)

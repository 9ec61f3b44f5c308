# SPDX-License-Identifier: Apache-2.0
"""Headers that the sources of a manifest include; those in its directory are copied with the model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from opwest.base.diagnostics import Location
from opwest.base.files import with_lf
from opwest.base.paths import spelled
from opwest.base.resources import resource
from opwest.model.inputs.context import Context
from opwest.model.types.builds import CompileOptions, SourceFile
from opwest.objects.facts import SOURCE_SUFFIXES

_NAME = re.compile(r'"([^"]+)"|<([^>]+)>')


def copy_source(
    context: Context,
    copies: dict[PurePosixPath, SourceFile],
    path: PurePosixPath,
    content: bytes,
    at: Location,
    options: CompileOptions,
) -> None:
    """Add a source at `path`, and the headers that it includes, to the files of the emitted model.

    A quoted header is searched for in the directory of the including file (the first step of GCC's search), then every
    header in the directories of `options`. `at` is the location of the source in the manifest.
    """
    copies.pop(path, None)  # a source can be included by an earlier one
    copies[path] = SourceFile(path, with_lf(content), True, options, line=at.line, column=at.column)
    waiting = [(path, content)]
    while waiting:
        file, text = waiting.pop(0)
        for line, name, quoted in includes(text):
            folders = [*([file.parent] if quoted else []), *options.include_dirs]
            places = [PurePosixPath(normal(folder / name)) for folder in folders]
            header, included = _first(context.folder, places, copies)
            if header in copies:
                continue
            if header is None or included is None:
                for place in places:
                    if ".." not in place.parts and not place.is_absolute():
                        context.missing(spelled(place))
                if quoted and not _in_runtime(name):
                    context.faults.note(
                        f"{file}:{line}: header {name!r} not found in the manifest's directory",
                        at,
                        hint="copy the header there, unless the build of the firmware provides it",
                    )
                continue
            context.files.add(spelled(header))
            copies[header] = SourceFile(header, with_lf(included), False)
            waiting.append((header, included))


def _first(
    folder: Path, places: Sequence[PurePosixPath], known: Collection[PurePosixPath]
) -> tuple[PurePosixPath | None, bytes | None]:
    """Return the first place with a header, and its bytes if it is not known yet."""
    for place in places:
        if place in known:
            return place, None
        content = read_header(folder, place)
        if content is not None:
            return place, content
    return None, None


def read_header(folder: Path, header: PurePosixPath) -> bytes | None:
    """Return a header's bytes, None if there is no readable file of that name in the directory."""
    path = folder / header
    try:
        if (
            ".." in header.parts
            or header.is_absolute()
            or not path.is_file()
            or not path.resolve().is_relative_to(folder.resolve())
        ):
            return None
        return path.read_bytes()
    except (OSError, RuntimeError):  # invalid name, loop of links, no permission
        return None


def _in_runtime(name: str) -> bool:
    """Whether the runtime provides a header (opwest's, or TVM's for operators compiled by TVM)."""
    runtime = resource("zephyr_module")
    return any(read_header(runtime / folder, PurePosixPath(name)) is not None for folder in ("include", "include_tvm"))


def includes(content: bytes) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the name of each include, also in inactive branches, and whether the name is in quotes."""
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), 1):
        words = line.strip()
        if words.startswith("#") and words[1:].lstrip().startswith("include"):
            parts = _NAME.search(words)
            if parts:
                yield number, parts[1] or parts[2], parts[1] is not None


def normal(path: PurePosixPath) -> str:
    """Return a path without `.` and inner `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


_ROOT = PurePosixPath("src")
_OTHERS = frozenset(("models", "modules", "tests", "boards", "build"))
"""Directories of an application with other content."""


def places(files: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Return the paths in the application of each file, by its path relative to the manifest.

    A header is also copied to src/ itself if an include of its plain name cannot be resolved otherwise.
    """
    copies: dict[str, dict[str, None]] = {name: {} for name in files}
    plain: set[str] = set()
    # A header by its own place, after a file that includes it.
    waiting = [
        (name, str(_ROOT / PurePosixPath(name).name)) for name in files if name.endswith((*SOURCE_SUFFIXES, ".S"))
    ]
    for name, place in waiting:
        copies[name][place] = None
    while waiting:
        name, place = waiting.pop()
        for include in (include for _, include, quoted in includes(files[name]) if quoted):
            header = normal(PurePosixPath(name).parent / include)
            if header not in files:
                plain.add(PurePosixPath(include).name)
                continue
            wanted = normal(PurePosixPath(place).parent / include)
            if wanted not in copies[header] and _is_allowed(wanted):
                copies[header][wanted] = None
                waiting.append((header, wanted))
    for name, every in copies.items():
        flat = str(_ROOT / PurePosixPath(name).name)
        if not every or PurePosixPath(name).name in plain:
            every[flat] = None
    return {name: list(every) for name, every in copies.items()}


def _is_allowed(place: str) -> bool:
    """Whether a path is in a directory of the application that has no other content."""
    parts = PurePosixPath(place).parts
    return len(parts) > 1 and parts[0] not in _OTHERS and not any(part.startswith(".") for part in parts)

# SPDX-License-Identifier: Apache-2.0
"""The headers of `signatures`: the prototypes of operators, for each data model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.paths import spelled
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, located_items
from opwest.model.inputs.headers import normal, read_header
from opwest.model.inputs.source_options import compile_options
from opwest.model.types.builds import NO_OPTIONS, CompileOptions
from opwest.objects.facts import ObjectError
from opwest.objects.inspect import read_file

if TYPE_CHECKING:
    from opwest.objects.c_preprocessor import Fault, Place
    from opwest.objects.c_prototypes import Declarations, Prototype
    from opwest.objects.c_types import DataModel

MISSING_HEADER = "list the directory of its header under 'include_dirs' of an entry of 'signatures'"
_MOST_FAULTS = 8
"""Faults that are reported for one entry."""


class Declared(NamedTuple):
    """The declaration of a function in a header."""

    prototype: Prototype
    location: Location
    """That of its entry in the manifest."""


class _Group(NamedTuple):
    """Headers that are read together."""

    files: dict[PurePosixPath, Path]
    options: CompileOptions
    location: Location


class Signatures:
    """The functions that the headers of a manifest declare."""

    def __init__(self, context: Context) -> None:
        """Read the headers; report those that are not readable."""
        self._context = context
        self._known: dict[DataModel, dict[str, Declared]] = {}
        self.names: list[str] = []
        """The headers, as the manifest names them."""
        self._groups: list[_Group] = []
        single: dict[PurePosixPath, Path] = {}
        for item, at in located_items(context.items("signatures")):
            if isinstance(item, Mapping):
                files: dict[PurePosixPath, Path] = {}
                for name, where in located_items(item["files"]):
                    self._add(name, where, files)
                self._groups.append(_Group(files, compile_options(context, item), at))
            else:
                self._add(item, at, single)
        if single:
            self._groups.insert(0, _Group(single, NO_OPTIONS, context.manifest.value_location("signatures")))

    def _add(self, name: str, at: Location, files: dict[PurePosixPath, Path]) -> None:
        path = self._context.regular_file(name, at, "a C header with the prototypes of operators")
        if path is not None:
            self.names.append(name)
            files[PurePosixPath(normal(PurePosixPath(name)))] = path

    def of(self, model: DataModel) -> dict[str, Declared]:
        """Return the functions by name; report what cannot be read."""
        if model not in self._known:
            found: dict[str, Declared] = {}
            for group in self._groups:
                for symbol, prototype in self._declarations(group, model).items():
                    found.setdefault(symbol, Declared(prototype, group.location))
            self._known[model] = found
        return self._known[model]

    def location(self, place: Place) -> Location:
        """Return the location of a line of a header."""
        return Location(str(self._context.folder / place.file), place.line, 1)

    def _declarations(self, group: _Group, model: DataModel) -> dict[str, Prototype]:
        from opwest.objects.c_prototypes import read_declarations

        context, options = self._context, group.options
        try:
            read = read_declarations(
                {name: read_file(path) for name, path in group.files.items()},
                lambda path: read_header(context.folder, path),
                model,
                folders=options.include_dirs,
                defines=options.defines,
            )
        except ObjectError as error:
            context.faults.error(error.message, group.location, expected=error.expected, hint=error.hint)
            return {}
        self._record(read)
        report_faults(context.faults, read.faults, lambda file: str(context.folder / file))
        return dict(read.functions)

    def _record(self, read: Declarations) -> None:
        """Record the headers as inputs of the build."""
        for header in read.files:
            self._context.files.add(spelled(header))
        for place in read.missing:
            if ".." not in place.parts and not place.is_absolute():
                self._context.missing(spelled(place))


def report_faults(faults: Diagnostics, unread: tuple[Fault, ...], path_of: Callable[[str], str]) -> None:
    """Warn of the parts of headers that were not read; `path_of` returns the path of a file in messages."""
    for fault in unread[:_MOST_FAULTS]:
        is_missing = fault.reason.startswith("header ")
        hint = MISSING_HEADER if is_missing else None
        faults.warning(fault.reason, Location(path_of(fault.place.file), fault.place.line, 1), hint=hint)
    if len(unread) > _MOST_FAULTS:
        last = unread[_MOST_FAULTS].place
        more = len(unread) - _MOST_FAULTS
        faults.warning(f"{more} more parts were not read", Location(path_of(last.file), last.line, 1))

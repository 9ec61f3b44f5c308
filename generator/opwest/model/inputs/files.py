# SPDX-License-Identifier: Apache-2.0
"""Read the files of `objects`, sort them by target, report faults of single files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from opwest.base.diagnostics import Location
from opwest.base.frozen_dataclass import dataclass
from opwest.manifest.located import Mapping
from opwest.model.inputs.context import Context, IrFile, fault_of_file, located_items
from opwest.model.inputs.headers import copy_source, normal
from opwest.model.inputs.source_options import (
    StackFiles,
    compile_options,
    expanded,
    read_stack_files,
    refuse_options_of_ir,
    refuse_options_of_object,
)
from opwest.model.inputs.targets import read_targets
from opwest.model.types.builds import NO_OPTIONS, CompileOptions, Examined, SourceFile, Target, is_ir, permitted_effects
from opwest.objects.compat import abi_warnings
from opwest.objects.compilers import Origins, origins_of
from opwest.objects.facts import CFunction, CSource, Member, ObjectError, ObjectFile
from opwest.objects.inspect import inspect_object
from opwest.objects.library_symbols import EFFECTS
from opwest.objects.linkability import Reason, judge_file

if TYPE_CHECKING:
    from opwest.objects.llvm.facts import IrModule

_WORD = re.compile(rb"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Linkable:
    """An archive member, an object or a source, with the manifest's keys for its file."""

    item: Member | CSource
    name: str
    location: Location
    permits: frozenset[str]
    """The effects that the entry of its file permits."""
    examined: Examined
    archived: bool = False
    entry_points: frozenset[str] = frozenset()
    rejected: bool = False
    """Whether its format or its ABI has faults. Its symbols are checked nevertheless."""
    faults: tuple[Reason, ...] = ()
    """Of a member of an archive: the faults to report if it is linked."""
    options: CompileOptions = NO_OPTIONS
    """Of a source: its macros, and the directories of its headers."""

    @cached_property
    def c_functions(self) -> dict[str, CFunction]:
        """The functions of a source whose symbol is their name."""
        if isinstance(self.item, Member):
            return {}
        return {function.name: function for function in reversed(self.item.c_functions)}

    @cached_property
    def origins(self) -> Origins:
        """The compilers of its functions."""
        return origins_of(self.item)

    @property
    def called(self) -> set[str]:
        """The undefined symbols of an object; the functions that a source calls and does not define."""
        return set(self.item.undefined if isinstance(self.item, Member) else self.item.calls)

    @cached_property
    def defined_functions(self) -> set[str]:
        """Functions with external linkage."""
        if isinstance(self.item, Member):
            known = {} if self.item.opaque else self.item.defined
            return {n for n, s in known.items() if s.kind == "function" or s.section == "code"}
        return self.c_functions.keys() | self.entry_points

    @cached_property
    def defined(self) -> set[str]:
        """Symbols with external linkage."""
        if isinstance(self.item, Member):
            return set() if self.item.opaque else set(self.item.defined)
        return self.defined_functions | set(self.item.globals)


@dataclass
class Files:
    """The files of `objects`: per target, and for any target."""

    named: dict[str, Target] = field(default_factory=dict)
    """The usable targets that `objects` names."""
    declared: tuple[Target, ...] = ()
    """The usable targets that the manifest declares."""
    targets: dict[str, list[Linkable]] = field(default_factory=dict)
    sources: list[Linkable] = field(default_factory=list)
    copies: dict[PurePosixPath, SourceFile] = field(default_factory=dict)
    modules: list[tuple[IrFile, IrModule]] = field(default_factory=list)
    unread: dict[str | None, list[str]] = field(default_factory=dict)
    """Files with unknown definitions, by target; None: for every target."""
    elsewhere: set[str] = field(default_factory=set)
    """The definitions of files without a usable target."""
    rejected: bool = False
    """Whether a file has faults."""

    def unread_for(self, target: str | None) -> list[str]:
        """Return the files that may define any symbol for a target."""
        return self.unread.get(None, []) + (self.unread.get(target, []) if target else [])

    def effects_of(self, symbols: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the effects that entries of `objects` permit, by the symbol of the operator that may have them.

        Every operator can call a file that defines none.
        """
        effects_by_symbol: dict[str, set[str]] = {symbol: set() for symbol in symbols}
        for linkable in chain(self.sources, *self.targets.values()):
            if linkable.permits:
                for symbol in linkable.defined_functions & effects_by_symbol.keys() or symbols:
                    effects_by_symbol[symbol] |= linkable.permits
        return {symbol: tuple(e for e in EFFECTS if e in effects) for symbol, effects in effects_by_symbol.items()}

    def reject(self, file: str | None = None, target: str | None = None) -> None:
        """Record a file with faults; `file` is named if its definitions are unknown."""
        self.rejected = True
        if file is not None:
            self.unread.setdefault(target, []).append(file)


def inspect_objects(context: Context) -> Files:
    """Read every file of `objects`; report unusable files, and a manifest without a usable file."""
    files = _Inspection(context).read()
    if not files.targets and not files.sources and not files.rejected:
        context.faults.error(
            "no object file exists for any target",
            context.manifest.value_location("objects"),
            expected="at least one existing file",
            hint="compile the operators first",
        )
        files.reject(context.items("objects")[0]["files"][0])
    return files


class _Inspection:
    """Reads the files of a manifest, each once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.faults = context.faults
        self.files = Files(*read_targets(context))
        self._known: dict[tuple[Path, tuple[Path, ...]], ObjectFile | CSource] = {}
        """The facts about files, by path and directories of headers."""

    def read(self) -> Files:
        """Return the files of all entries."""
        files = self.files
        seen: dict[tuple[str | None, str], Location] = {}
        ir_files: list[IrFile] = []
        for entry, _ in located_items(self.context.items("objects")):
            name = entry.get("target")
            if name is not None and name not in files.named:
                self._examine_without_target(entry)
                continue
            if self._left_out(entry):
                continue
            if name is not None:
                files.targets.setdefault(name, [])
            stack = read_stack_files(self.context, entry)
            options = compile_options(self.context, entry)
            folders = tuple(self.context.folder / folder for folder in options.include_dirs)
            objects: list[Member] = []
            for file, at in located_items(entry["files"]):
                if (name, file) in seen:
                    self.faults.error(
                        f"duplicate file {file!r} for this target",
                        at,
                        expected="each file once",
                        hint=f"first listed at line {seen[name, file].line}",
                    )
                    continue
                seen[name, file] = at
                path = self._existing(file, name, at)
                if path is not None and is_ir(path):
                    refuse_options_of_ir(self.context, entry, file)
                    ir_files.append(IrFile(file, path, at, entry))
                    continue
                item = None if path is None else self._read(file, path, name, at, folders)
                if item is None:
                    files.reject(file, name)
                elif isinstance(item, CSource):
                    self._add_source(entry, file, item, at, options)
                else:
                    refuse_options_of_object(self.context, entry, file)
                    objects += item.members
                    self._add_object(entry, item, file, files.named.get(name or ""), at, stack)
            stack.check(self.context, objects)
        if ir_files:
            self._add_ir(ir_files)
        return files

    def _add_ir(self, ir_files: list[IrFile]) -> None:
        """Compile LLVM IR to objects."""
        from opwest.model.inputs.ir import compile_ir_files

        files = self.files
        objects, files.modules, failed = compile_ir_files(self.context, ir_files, files.named, tuple(files.targets))
        for name in failed:
            files.reject(name)
        for item in objects:
            reasons = judge_file(item.member, files.named[item.target])
            for reason in reasons:
                item.examined.error(reason.text, item.file.location, expected=reason.expected, hint=reason.hint)
            if reasons:
                files.reject(item.file.name if item.member.opaque else None, item.target)
            permits = frozenset(permitted_effects(item.file.entry))
            linkable = Linkable(
                item.member, item.file.name, item.file.location, permits, item.examined, rejected=bool(reasons)
            )
            files.targets.setdefault(item.target, []).append(linkable)

    def _examine_without_target(self, entry: Mapping) -> None:
        """Read the files of an entry with an invalid target: their definitions and their own faults."""
        name = entry["target"]
        if self._left_out(entry):
            return
        why = f"invalid target {name!r}"
        for file, at in located_items(entry["files"]):
            path = self._existing(file, name, at)
            if path is not None and is_ir(path):
                self.context.examine(file, name).refuse(why)
                self.files.reject(file)
                continue
            item = None if path is None else self._read(file, path, name, at)
            if isinstance(item, ObjectFile):
                self._note_unlinkable(item, file, name, why)
            else:
                if item is not None:
                    examined = self.context.examine(file, name, f"{item.language} source")
                    examined.item = item
                    examined.refuse(why)
                self.files.reject(file)

    def _note_unlinkable(self, item: ObjectFile, file: str, target: str | None, why: str) -> None:
        """Record the objects of a file without a usable target: their facts, their own faults and their definitions."""
        for label, member in _members(item, file):
            examined = self.context.examine(label, target, _kind(item))
            examined.refuse(why)
            examined.item = member
            for reason in judge_file(member):
                examined.refuse(reason.text)
            self.files.elsewhere |= set() if member.opaque else set(member.defined)
            self.files.reject(file if member.opaque else None)

    def _left_out(self, entry: Mapping) -> bool:
        """Return whether an optional entry has no existing file; note it."""
        folder = self.context.folder
        if not entry.get("optional"):
            return False
        if any(os.path.exists(folder / file) for file in entry["files"]):  # noqa: PTH110 - it never raises
            return False
        for file in entry["files"]:
            self.context.missing(file)
        what = f"target {entry['target']!r} is" if "target" in entry else "these files are"
        self.faults.note(f"{what} skipped: {entry['files'][0]!r} does not exist", entry.value_location("files"))
        return True

    def _existing(self, file: str, target: str | None, at: Location) -> Path | None:
        """Return the path of a file; report and record one that cannot be read."""
        path = self.context.regular_file(file, at, "an existing file", "list the objects in it")
        if path is None:
            reason = fault_of_file(self.context.folder / file)
            why = f"cannot read the file: {reason}" if reason else "invalid path"
            self.context.examine(file, target).refuse(why)
        return path

    def _read(
        self, file: str, path: Path, target: str | None, at: Location, folders: tuple[Path, ...] = ()
    ) -> ObjectFile | CSource | None:
        """Return the facts about a file; `folders` are the directories of its headers."""
        if (path, folders) not in self._known:
            try:
                self._known[path, folders] = inspect_object(path, folders)
            except ObjectError as error:
                self.context.examine(file, target).error(error.message, at, expected=error.expected, hint=error.hint)
                return None
        return self._known[path, folders]

    def _add_source(self, entry: Mapping, file: str, source: CSource, at: Location, options: CompileOptions) -> None:
        source = expanded(source, options)
        kind = f"{source.language} {'header' if source.is_header else 'source'}"
        examined = self.context.examine(file, None, kind)
        examined.item = source
        if "target" in entry:
            examined.refuse(f"{kind} in an entry with 'target'")
            self.faults.error(
                f"{kind} {file!r} in an entry with 'target'",
                at,
                expected="an entry without 'target': sources are compiled for every target",
                hint="move it to a separate entry",
            )
        copies = self.files.copies
        copy_source(self.context, copies, PurePosixPath(normal(PurePosixPath(file))), source.text, at, options)
        if source.is_header and not source.c_functions and not entry.get("entry_points"):
            self.faults.warning(
                f"header {file!r} defines no function",
                at,
                expected="a source, or a header with functions",
                hint="list headers that only declare functions under 'signatures'",
            )
        source = _without_headers(source, copies.values())
        permits, entry_points = frozenset(permitted_effects(entry)), frozenset(entry.get("entry_points", ()))
        linkable = Linkable(source, file, at, permits, examined, entry_points=entry_points, options=options)
        self.files.sources.append(linkable)

    def _add_object(
        self, entry: Mapping, item: ObjectFile, file: str, target: Target | None, at: Location, stack: StackFiles
    ) -> None:
        if target is None:
            self._note_unlinkable(item, file, None, "no 'target' in its entry")
            self.faults.error(
                f"compiled file {file!r} ({item.members[0].abi.machine}) in an entry without 'target'",
                at,
                expected="target: the target that it was compiled for",
                hint="`opwest targets` lists the targets",
            )
            return
        archived = item.kind == "archive"
        permits = frozenset(permitted_effects(entry))
        reported: set[str] = set()
        for name, member in _members(item, file):
            examined = self.context.examine(name, target.name, _kind(item))
            examined.item, examined.stack_files = member, stack.functions
            every = judge_file(member, target)
            later = tuple(r for r in every if archived and r.kind != "abi" and not member.opaque)
            reasons = [r for r in every if r not in later]
            for reason in every:
                examined.refuse(reason.text)
                if reason in later:
                    continue
                if reason.kind == "abi" and reason.text in reported:
                    continue  # once per archive, not once per member
                reported.add(reason.text)
                self.faults.error(reason.message(name), at, expected=reason.expected, hint=reason.hint)
            rejected = any(reason.kind != "relocation" for reason in reasons)
            if rejected:
                self.files.reject(name if member.opaque else None, target.name)
            for warning in () if rejected else abi_warnings(member.abi, target):
                if warning.message not in reported:
                    reported.add(warning.message)
                    text = f"{name}: {warning.message}"
                    self.faults.warning(text, at, expected=warning.expected, hint=warning.hint)
            linkable = Linkable(member, name, at, permits, examined, archived=archived, rejected=rejected, faults=later)
            self.files.targets[target.name].append(linkable)


def _members(item: ObjectFile, file: str) -> list[tuple[str, Member]]:
    """Return the members of a file with their names in the table."""
    return [(f"{file}({member.name})" if item.kind == "archive" else file, member) for member in item.members]


def _kind(item: ObjectFile) -> str:
    return "archive member" if item.kind == "archive" else "ELF object"


def _without_headers(source: CSource, copies: Iterable[SourceFile]) -> CSource:
    """Return a source without the library calls whose names its headers may define; the compiled object has them."""
    if not source.library_calls:
        return source
    headers = [copy.content for copy in copies if not copy.compiled]
    words = {word for text in headers for word in _WORD.findall(text)}
    kept = tuple(name for name in source.library_calls if name.encode() not in words)
    return source if kept == source.library_calls else replace(source, library_calls=kept)

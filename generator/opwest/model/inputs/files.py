# SPDX-License-Identifier: Apache-2.0
"""Read the files of `objects`, sort them by target, report faults of single files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
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
from opwest.model.inputs.source_options import StackFiles, compile_options, expanded, read_stack_files, refuse_options
from opwest.model.inputs.targets import read_targets, target_abi
from opwest.model.types.builds import CompileOptions, Examined, SourceFile, Target, is_ir, permitted_effects
from opwest.objects.compat import abi_warnings
from opwest.objects.facts import CFunction, CSource, Member, ObjectError, ObjectFile
from opwest.objects.inspect import inspect_object
from opwest.objects.library_symbols import EFFECTS
from opwest.objects.linkability import Reason, judge_file

if TYPE_CHECKING:
    from opwest.objects.llvm.facts import IrModule

_WORD = re.compile(rb"[A-Za-z_]\w*")
_Cache = dict[tuple[Path, tuple[Path, ...]], ObjectFile | CSource]
"""The facts about files, by path and directories of headers."""


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

    @cached_property
    def c_functions(self) -> dict[str, CFunction]:
        """The functions of a source whose symbol is their name."""
        if isinstance(self.item, Member):
            return {}
        return {function.name: function for function in reversed(self.item.c_functions)}

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
    copies: list[SourceFile] = field(default_factory=list)
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
    files = _read_files(context, *read_targets(context))
    if not files.targets and not files.sources and not files.rejected:
        context.faults.error(
            "no object file exists for any target",
            context.manifest.value_location("objects"),
            expected="at least one existing file",
            hint="compile the operators first",
        )
        files.reject(context.items("objects")[0]["files"][0])
    return files


def _read_files(context: Context, targets: dict[str, Target], declared: tuple[Target, ...]) -> Files:
    files = Files(targets, declared)
    cache = _Cache()
    seen: dict[tuple[str | None, str], Location] = {}
    ir_files: list[IrFile] = []
    for entry, _ in located_items(context.items("objects")):
        name = entry.get("target")
        if name is not None and name not in targets:
            _examine_without_target(context, files, entry, cache)
            continue
        if _left_out(context, entry):
            continue
        if name is not None:
            files.targets.setdefault(name, [])
        stack = read_stack_files(context, entry)
        options = compile_options(context, entry)
        folders = tuple(context.folder / folder for folder in options.include_dirs)
        objects: list[Member] = []
        for file, at in located_items(entry["files"]):
            if (name, file) in seen:
                context.faults.error(
                    f"duplicate file {file!r} for this target",
                    at,
                    expected="each file once",
                    hint=f"first listed at line {seen[name, file].line}",
                )
                continue
            seen[name, file] = at
            path = _existing(context, file, name, at)
            if path is not None and is_ir(path):
                refuse_options(context, entry, file, "LLVM IR")
                ir_files.append(IrFile(file, path, at, entry))
                continue
            item = None if path is None else _read(context, file, path, name, at, cache, folders)
            if item is None:
                files.reject(file, name)
            elif isinstance(item, CSource):
                _add_source(context, files, entry, file, item, at, options)
            else:
                refuse_options(context, entry, file, "compiled file")
                objects += item.members
                _add_object(context, files, entry, item, file, targets.get(name or ""), at, stack)
        stack.check(context, objects)
    if ir_files:
        _add_ir(context, files, ir_files, targets)
    return files


def _add_ir(context: Context, result: Files, files: list[IrFile], targets: dict[str, Target]) -> None:
    """Compile LLVM IR to objects."""
    from opwest.model.inputs.ir import compile_ir_files

    objects, result.modules, failed = compile_ir_files(context, files, targets, tuple(result.targets))
    for name in failed:
        result.reject(name)
    for item in objects:
        target = targets[item.target]
        reasons = judge_file(item.member, target_abi(target))
        for reason in reasons:
            item.examined.error(reason.text, item.file.location, expected=reason.expected, hint=reason.hint)
        if reasons:
            result.reject(item.file.name if item.member.opaque else None, item.target)
        permits = permitted_effects(item.file.entry)
        linkable = Linkable(
            item.member, item.file.name, item.file.location, frozenset(permits), item.examined, rejected=bool(reasons)
        )
        result.targets.setdefault(item.target, []).append(linkable)


def _examine_without_target(context: Context, files: Files, entry: Mapping, cache: _Cache) -> None:
    """Read the files of an entry with an invalid target: their definitions and their own faults."""
    name = entry["target"]
    if _left_out(context, entry):
        return
    for file, at in located_items(entry["files"]):
        path = _existing(context, file, name, at)
        if path is not None and is_ir(path):
            context.examine(file, name).refuse(f"invalid target {name!r}")
            files.reject(file)
            continue
        item = None if path is None else _read(context, file, path, name, at, cache)
        if isinstance(item, ObjectFile):
            _note_unlinkable(context, files, item, file, name, f"invalid target {name!r}")
        else:
            if item is not None:
                examined = context.examine(file, name, f"{item.language} source")
                examined.item = item
                examined.refuse(f"invalid target {name!r}")
            files.reject(file)


def _note_unlinkable(context: Context, files: Files, item: ObjectFile, file: str, target: str | None, why: str) -> None:
    """Record the objects of a file without a usable target: their facts, their own faults and their definitions."""
    for label, member in _members(item, file):
        examined = context.examine(label, target, _kind(item))
        examined.refuse(why)
        examined.item = member
        for reason in judge_file(member):
            examined.refuse(reason.text)
        files.elsewhere |= set() if member.opaque else set(member.defined)
        files.reject(file if member.opaque else None)


def _members(item: ObjectFile, file: str) -> list[tuple[str, Member]]:
    """Return the members of a file with their names in the table."""
    return [(f"{file}({member.name})" if item.kind == "archive" else file, member) for member in item.members]


def _kind(item: ObjectFile) -> str:
    return "archive member" if item.kind == "archive" else "ELF object"


def _left_out(context: Context, entry: Mapping) -> bool:
    """Return whether an optional entry has no existing file; note it."""
    if not entry.get("optional"):
        return False
    if any(os.path.exists(context.folder / file) for file in entry["files"]):  # noqa: PTH110 - it never raises
        return False
    for file in entry["files"]:
        context.missing(file)
    what = f"target {entry['target']!r} is" if "target" in entry else "these files are"
    context.faults.note(f"{what} skipped: {entry['files'][0]!r} does not exist", entry.value_location("files"))
    return True


def _existing(context: Context, file: str, target: str | None, at: Location) -> Path | None:
    """Return the path of a file; report and record one that cannot be read."""
    path = context.regular_file(file, at, "an existing file", "list the objects in it")
    if path is None:
        reason = fault_of_file(context.folder / file)
        context.examine(file, target).refuse(f"cannot read the file: {reason}" if reason else "invalid path")
    return path


def _read(
    context: Context,
    file: str,
    path: Path,
    target: str | None,
    at: Location,
    cache: _Cache,
    folders: tuple[Path, ...] = (),
) -> ObjectFile | CSource | None:
    """Return the facts about a file; `folders` are the directories of its headers."""
    if (path, folders) not in cache:
        try:
            cache[path, folders] = inspect_object(path, folders)
        except ObjectError as error:
            context.examine(file, target).error(error.message, at, expected=error.expected, hint=error.hint)
            return None
    return cache[path, folders]


def _add_source(
    context: Context,
    files: Files,
    entry: Mapping,
    file: str,
    source: CSource,
    at: Location,
    options: CompileOptions,
) -> None:
    source = expanded(source, options)
    kind = f"{source.language} {'header' if source.is_header else 'source'}"
    examined = context.examine(file, None, kind)
    examined.item = source
    entry_points = frozenset(entry.get("entry_points", ()))
    if "target" in entry:
        examined.refuse(f"{kind} in an entry with 'target'")
        context.faults.error(
            f"{kind} {file!r} in an entry with 'target'",
            at,
            expected="an entry without 'target': sources are compiled for every target",
            hint="move it to a separate entry",
        )
    copy_source(context, files.copies, PurePosixPath(normal(PurePosixPath(file))), source.text, at, options)
    source = _without_headers(source, files.copies)
    permits = frozenset(permitted_effects(entry))
    files.sources.append(Linkable(source, file, at, permits, examined, entry_points=entry_points))


def _without_headers(source: CSource, copies: list[SourceFile]) -> CSource:
    """Return a source without the library calls whose names its headers may define; the compiled object has them."""
    headers = [copy.content for copy in copies if not copy.compiled]
    words = {word for text in headers if source.library_calls for word in _WORD.findall(text)}
    kept = tuple(name for name in source.library_calls if name.encode() not in words)
    return source if kept == source.library_calls else replace(source, library_calls=kept)


def _add_object(
    context: Context,
    files: Files,
    entry: Mapping,
    item: ObjectFile,
    file: str,
    target: Target | None,
    at: Location,
    stack: StackFiles,
) -> None:
    if target is None:
        _note_unlinkable(context, files, item, file, None, "no 'target' in its entry")
        context.faults.error(
            f"compiled file {file!r} ({item.members[0].abi.machine}) in an entry without 'target'",
            at,
            expected="target: the target that it was compiled for",
            hint="`opwest targets` lists the targets",
        )
        return
    abi = target_abi(target)
    archived = item.kind == "archive"
    reported: set[str] = set()
    for name, member in _members(item, file):
        examined = context.examine(name, target.name, _kind(item))
        examined.item, examined.stack_files = member, stack.functions
        every = judge_file(member, abi)
        later = tuple(r for r in every if archived and r.kind != "abi" and not member.opaque)
        reasons = [r for r in every if r not in later]
        for reason in every:
            examined.refuse(reason.text)
            if reason in later:
                continue
            if reason.kind == "abi" and reason.text in reported:
                continue  # once per archive, not once per member
            reported.add(reason.text)
            context.faults.error(reason.message(name), at, expected=reason.expected, hint=reason.hint)
        rejected = any(reason.kind != "relocation" for reason in reasons)
        if rejected:
            files.reject(name if member.opaque else None, target.name)
        else:
            for warning in abi_warnings(member.abi, abi):
                if warning.message not in reported:
                    reported.add(warning.message)
                    context.faults.warning(
                        f"{name}: {warning.message}", at, expected=warning.expected, hint=warning.hint
                    )
        files.targets[target.name].append(
            Linkable(
                member,
                name,
                at,
                frozenset(permitted_effects(entry)),
                examined,
                archived=archived,
                rejected=rejected,
                faults=later,
            )
        )

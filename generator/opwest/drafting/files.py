# SPDX-License-Identifier: Apache-2.0
"""The input files of a draft: content, names relative to the manifest, and signatures of their functions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.drafting.signatures import Signature, from_dwarf, from_ir
from opwest.model.inputs.headers import read_header
from opwest.model.inputs.ir import matching_targets
from opwest.model.inputs.targets import make_target
from opwest.model.types.builds import is_ir
from opwest.objects.dwarf_signatures import signatures
from opwest.objects.facts import CSource, Member, ObjectError, ObjectFile
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.llvm.api import compile_many, is_available, missing, read_many
from opwest.objects.llvm.facts import CompileJob, IrModule, LlvmError
from opwest.objects.targets import named_targets

_PLAIN_TARGET = "x86-64"


@dataclass(eq=False)
class Unit:
    """A compilation unit: an object, a member of an archive, a source, a module of IR."""

    label: str
    """The name in messages: `lib.a(conv.o)`."""
    defines: dict[str, None]
    """Global functions, in the order of the file."""
    needs: frozenset[str]
    """Symbols that it refers to and does not define."""
    variables: frozenset[str] = frozenset()
    """Other global symbols that it defines."""
    certain_needs: bool = True
    """Whether each of `needs` is an undefined symbol; in C sources, an apparent call can be a macro."""
    signatures: dict[str, Signature] = field(default_factory=dict)
    member: Member | None = None

    @property
    def definitions(self) -> frozenset[str]:
        """The global symbols that it defines."""
        return self.variables.union(self.defines)


@dataclass(eq=False)
class Given:
    """One input file."""

    name: str
    """The path relative to the manifest's directory, with forward slashes."""
    item: ObjectFile | CSource | IrModule
    units: list[Unit]
    is_signatures: bool = False
    """Whether it only declares functions of other files."""
    include_dirs: tuple[str, ...] = ()
    """Of a C source or header: the directories of headers, guessed."""

    @property
    def functions(self) -> list[str]:
        """The names of global functions."""
        return list(dict.fromkeys(name for unit in self.units for name in unit.defines))


def read_files(paths: Sequence[Path], folder: Path, faults: Diagnostics) -> list[Given]:
    """Return the content of the files; report every unusable file. `folder` is the manifest's directory."""
    named: dict[str, Path] = {}
    for path in paths:
        name = _relative(path, folder, faults)
        if name is not None:
            named.setdefault(name, path)
    modules = _modules([path for path in named.values() if is_ir(path)], faults)
    files = []
    for name, path in named.items():
        if is_ir(path):
            if path in modules:
                files.append(Given(name, modules[path], [_ir_unit(name, modules[path])]))
            continue
        try:
            item = inspect_object(path)
        except ObjectError as error:
            faults.error(error.message, Location(str(path)), expected=error.expected, hint=error.hint)
            continue
        given = Given(name, item, [])
        if isinstance(item, CSource):
            _read_source(given, item, folder)
        else:
            given.units = list(_units(name, item))
        files.append(given)
    return files


def _relative(path: Path, folder: Path, faults: Diagnostics) -> str | None:
    """Return a file's path relative to `folder`, the manifest's directory."""
    where = Location(str(path))
    plain = (Path(os.path.abspath(path)), Path(os.path.abspath(folder)))  # noqa: PTH100
    for file, base in (plain, (path.resolve(), folder.resolve())):
        if file.is_relative_to(base):
            name = spelled(file.relative_to(base))
            break
    else:
        faults.error(
            "the file is outside the manifest's directory",
            where,
            expected="files in the manifest's directory or below",
            hint="choose a directory that contains all files with -o",
        )
        return None
    if not name.isprintable() or any("\ud800" <= c <= "\udfff" for c in name):
        faults.error("invalid file name for a manifest", where, expected="printable characters")
        return None
    return name


def _modules(paths: list[Path], faults: Diagnostics) -> dict[Path, IrModule]:
    modules: dict[Path, IrModule] = {}
    if not paths:
        return modules
    if not is_available():
        fault = missing()
        faults.error(fault.message, Location(str(paths[0])), expected=fault.expected, hint=fault.hint)
        return modules
    for path, answer in zip(paths, read_many(paths, uses=True), strict=True):
        if isinstance(answer, LlvmError):
            faults.error(answer.message, Location(str(path)), expected=answer.expected, hint=answer.hint)
        else:
            modules[path] = answer
    return modules


def _read_source(given: Given, item: CSource, folder: Path) -> None:
    """Set the functions of a source or header, and the directories of the headers that it includes."""
    from opwest.drafting.sources import from_source, include_dirs

    def read(header: PurePosixPath) -> bytes | None:
        return read_header(folder, header)

    file = PurePosixPath(given.name)
    folders = include_dirs(file, item.text, read) if item.language == "C" else []
    given.include_dirs = tuple(spelled(one) for one in folders)
    seen = from_source(file, item, read, folders)
    calls, variables = frozenset(item.calls), frozenset(item.globals)
    given.units = [Unit(given.name, dict.fromkeys(seen), calls, variables, certain_needs=False, signatures=seen)]


def _units(name: str, item: ObjectFile) -> Iterator[Unit]:
    for member in item.members:
        label = f"{name}({member.name})" if item.kind == "archive" else name
        defines = {n: None for n, s in member.defined.items() if s.kind == "function" or s.section == "code"}
        needs, variables = frozenset(member.undefined_strong), frozenset(member.defined)
        yield Unit(label, defines, needs, variables, signatures=_described(member), member=member)


def _described(member: Member) -> dict[str, Signature]:
    """Return the signatures in an object's debug information."""
    known = signatures(member, names=True)
    return {} if isinstance(known, str) else {name: from_dwarf(seen) for name, seen in known.items()}


def _ir_unit(name: str, module: IrModule) -> Unit:
    functions = {f.name: f for f in module.functions if f.is_definition and f.name in module.defined}
    known = {symbol: from_ir(function) for symbol, function in functions.items()}
    if module.has_debug_information:
        known.update(_compiled(name, module))
    return Unit(name, dict.fromkeys(functions), module.undefined, module.defined, signatures=known)


def _compiled(name: str, module: IrModule) -> dict[str, Signature]:
    """Return the signatures in the debug information of IR, from an object compiled from it."""
    named = next(iter(matching_targets(module, name)), _PLAIN_TARGET)
    target = make_target(named, named_targets()[named]).llvm
    answer = compile_many([CompileJob(module.content, target, name=name)])[0] if target else None
    if not isinstance(answer, bytes):
        return {}
    try:
        return _described(read_member(name, answer))
    except ObjectError:
        return {}

# SPDX-License-Identifier: Apache-2.0
"""The content of a draft: files by target, functions that become operators, and undefined symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from opwest.diagnostics import Diagnostics
from opwest.drafting.files import Given, Unit
from opwest.drafting.from_dwarf import ORIGIN as DWARF
from opwest.drafting.from_ir import ORIGIN as IR
from opwest.drafting.from_source import ORIGIN as SOURCE
from opwest.drafting.signatures import Signature, enriched
from opwest.drafting.targets import OwnTarget, faults_for, fitting, own_target
from opwest.llvm.facts import IrModule
from opwest.model.identifiers import fault_of_name, is_symbol
from opwest.model.ir import matching_targets
from opwest.objects.closure import needed_members
from opwest.objects.facts import CSource, Member, ObjectFile
from opwest.objects.judgement import DEFAULT_LIBC, RUNTIME_SYMBOLS, state_of
from opwest.objects.providers import LIBCS, provider_of
from opwest.records import dataclass
from opwest.targets import named_targets

_BEST_FIRST = (DWARF, SOURCE, IR)


@dataclass
class Entry:
    """One entry of `objects`."""

    target: str | None
    files: list[str] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    targets: tuple[str, ...] = ()
    """The targets to compile IR for; empty: those of other entries, or unknown."""
    is_ir: bool = False
    also: tuple[str, ...] = ()
    """Other compatible named targets."""
    state: list[str] = field(default_factory=list)
    """Writable variables of the files."""


@dataclass
class Chosen:
    """A function that becomes an operator."""

    name: str
    symbol: str
    signature: Signature | None
    place: str
    """Its file, or member of an archive."""
    missing_in: tuple[str, ...] = ()
    """Targets whose files do not define it."""


@dataclass
class Selection:
    """The content of a draft except for `run`."""

    entries: list[Entry] = field(default_factory=list)
    own_targets: list[OwnTarget] = field(default_factory=list)
    operators: list[Chosen] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """By symbol, the reason why it is not an operator."""
    unlisted: dict[str, str] = field(default_factory=dict)
    """By file, the reason why it is not in `objects`."""
    externals: dict[str, list[str]] = field(default_factory=dict)
    """By undefined symbol, the units that refer to it."""


def select(files: Sequence[Given], targets: Sequence[str], faults: Diagnostics) -> Selection:
    """Return the content of a draft for `files` and named `targets`; without targets, they are guessed."""
    found = Selection()
    linked = _linked(files, found)
    if targets and linked and all(isinstance(given.item, CSource) for given in linked):
        faults.error(
            "--target has no effect: C and C++ sources are compiled for every board",
            hint="omit --target, or add objects",
        )
    _sort_by_target(linked, targets, found, faults)
    _choose_operators(linked, files, found)
    _find_externals(found)
    return found


def _linked(files: Sequence[Given], found: Selection) -> list[Given]:
    """Return the files to link, without programs and files with duplicate functions."""
    linked: list[Given] = []
    owners: dict[str, str] = {}
    for kind in (ObjectFile, CSource, IrModule):
        for given in (one for one in files if isinstance(one.item, kind)):
            first = next((name for name in given.functions if name in owners), None)
            if "main" in given.functions and not (isinstance(given.item, ObjectFile) and given.item.kind == "archive"):
                found.unlisted[given.name] = "a program: it defines main(); C sources can be listed in 'application'"
            elif first is not None and kind is not ObjectFile:
                found.unlisted[given.name] = f"duplicate '{first}', also in {owners[first]}; used for signatures only"
            else:
                linked.append(given)
        for given in linked:
            for name in given.functions:
                owners.setdefault(name, given.name)
    return [one for one in files if one in linked]


def _sort_by_target(linked: Sequence[Given], targets: Sequence[str], found: Selection, faults: Diagnostics) -> None:
    """Create the entries of `objects`."""
    entries: dict[tuple[str, ...], Entry] = {}
    sources = Entry(None)
    modules: list[Given] = []
    for given in linked:
        if isinstance(given.item, ObjectFile):
            entry = _entry_of_objects(given, given.item.members, targets, entries, found, faults)
            if entry is None:
                continue
            entry.state += [name for member in given.item.members for name in state_of(member).names]
            for member in given.item.members:
                for fault in member.faults:
                    faults.warning(f"{given.name}: {fault}", hint="'opwest check' reports it as an error")
        elif isinstance(given.item, CSource):
            entry = sources
            entry.state += state_of(given.item).names
        else:
            modules.append(given)
            continue
        entry.files.append(given.name)
        entry.units += given.units
    found.entries = [*entries.values(), *([sources] if sources.files else [])]
    for given in modules:
        _add_module(given, targets, bool(entries), found)


def _entry_of_objects(
    given: Given,
    members: Sequence[Member],
    targets: Sequence[str],
    entries: dict[tuple[str, ...], Entry],
    found: Selection,
    faults: Diagnostics,
) -> Entry | None:
    """Return the entry for a file of objects."""
    fits = fitting(members, given.name)
    choices = [name for name in targets if name in fits] if targets else fits
    if targets and not choices:
        reason = faults_for(members, targets[0])[0]
        faults.error(f"{given.name}: {reason.message}", expected=reason.expected, hint=reason.hint)
        return None
    free = [n for n in choices if not _clashes(given, entries.get((n,)))]
    if choices:
        name = (free or choices)[0]
        entry = entries.setdefault((name,), Entry(name))
        if not targets:
            entry.also = tuple(n for n in fits if n != name)
        return entry
    own = own_target(members[0].abi)
    if own not in found.own_targets:
        found.own_targets.append(own)
    return entries.setdefault((own.name,), Entry(own.name))


def _clashes(given: Given, entry: Entry | None) -> bool:
    """Return whether a file defines a symbol that the entry already defines."""
    defined = {name for unit in entry.units for name in unit.defines} if entry else set()
    return any(name in defined for name in given.functions if not name.startswith("__"))


def _add_module(given: Given, targets: Sequence[str], compiled: bool, found: Selection) -> None:
    """Put a module of IR into the entry for its targets."""
    assert isinstance(given.item, IrModule)
    fits = matching_targets(given.item, given.name)
    also: tuple[str, ...] = ()
    if targets:
        chosen = tuple(targets)
    elif compiled:
        chosen = ()  # the targets of the objects
    else:
        chosen, also = tuple(fits[:1]) or ("",), tuple(fits[1:])
    entry = next((one for one in found.entries if one.is_ir and one.targets == chosen), None)
    if entry is None:
        entry = Entry(None, targets=chosen, is_ir=True, also=also)
        found.entries.append(entry)
    entry.files.append(given.name)
    entry.units += given.units
    entry.state += given.item.state


def _choose_operators(linked: Sequence[Given], files: Sequence[Given], found: Selection) -> None:
    """Select the functions that can be operators; record the reason for the others."""
    units = [unit for given in linked for unit in given.units if "main" not in unit.defines]
    every: dict[str, list[Unit]] = {}
    for unit in (unit for given in files for unit in given.units):
        for symbol in unit.defines:
            every.setdefault(symbol, []).append(unit)
    callers: dict[str, str] = {}
    for unit in units:
        for symbol in unit.needs:
            callers.setdefault(symbol, unit.label)
    chosen: set[str] = set()
    for unit in units:
        for symbol in unit.defines:
            if symbol in found.left_out or symbol in chosen:
                continue
            signature, place = _best(symbol, every[symbol])
            reason = _no_operator(symbol, signature, callers.get(symbol))
            if reason:
                found.left_out[symbol] = reason
            else:
                name = symbol if fault_of_name(symbol) is None else f"op_{symbol}"
                missing = _missing_in(symbol, found.entries)
                chosen.add(symbol)
                found.operators.append(Chosen(name, symbol, signature, place or unit.label, missing))


def _best(symbol: str, units: Iterable[Unit]) -> tuple[Signature | None, str | None]:
    """Return the most detailed signature, and its unit."""
    known = [(unit.signatures[symbol], unit.label) for unit in units if symbol in unit.signatures]
    if not known:
        return None, None
    signature, place = min(known, key=lambda one: _BEST_FIRST.index(one[0].origin))
    source = next((one for one, _ in known if one.origin == SOURCE), None)
    return enriched(signature, source), place


def _no_operator(symbol: str, signature: Signature | None, caller: str | None) -> str | None:
    """Return the reason why a function is not an operator, or None."""
    if symbol.startswith("_Z"):
        return 'a C++ function: declare it extern "C"'
    if symbol.startswith("__tvm_ffi_"):
        return "a function of tvm-ffi: the object does not record its arguments; declare it with convention: ffi"
    if symbol == "main" or symbol in RUNTIME_SYMBOLS or symbol.startswith("__"):
        return "a function of the system, the compiler or the runtime"
    if not is_symbol(symbol):
        return "not a C identifier"
    if any(provider_of(symbol, "", libc) for libc in LIBCS):
        return "a function of the C library"
    if signature is not None and signature.unfit:
        return signature.unfit
    return f"a helper, called by {caller}" if caller else None


def _missing_in(symbol: str, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the targets without a definition of a symbol."""
    defined = {e.target for e in entries if any(symbol in unit.defines for unit in e.units)}
    if None in defined:
        return ()
    return tuple(e.target for e in entries if e.target is not None and e.target not in defined)


def _find_externals(found: Selection) -> None:
    """Find undefined symbols like a linker: per target, for the members that the operators need."""
    roots = [operator.symbol for operator in found.operators]
    anywhere = [unit for entry in found.entries if entry.target is None for unit in entry.units]
    roots += sorted({name for unit in anywhere for name in unit.needs})
    entries = [entry for entry in found.entries if entry.target is not None]
    shared = {name for unit in anywhere for name in _definitions(unit)}
    for entry in entries or [Entry(None)]:
        members = {id(unit.member): unit for unit in entry.units if unit.member is not None}
        needed = needed_members([unit.member for unit in members.values() if unit.member], roots)
        linked = [members[id(member)] for member in needed]
        linked += [unit for unit in anywhere if unit.certain_needs]
        known = shared.union(*(_definitions(unit) for unit in linked))
        named = named_targets().get(entry.target or "")
        machine = linked[0].member.abi.machine if linked and linked[0].member else ""
        libc = "host" if named and named.get("host") else DEFAULT_LIBC
        for unit in linked:
            for symbol in sorted(unit.needs - known - RUNTIME_SYMBOLS):
                if provider_of(symbol, machine, libc) is None and is_symbol(symbol):
                    places = found.externals.setdefault(symbol, [])
                    if unit.label not in places:
                        places.append(unit.label)


def _definitions(unit: Unit) -> frozenset[str]:
    return unit.variables | set(unit.defines)

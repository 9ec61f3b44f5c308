# SPDX-License-Identifier: Apache-2.0
"""The content of a draft: files by target, functions that become operators, and undefined symbols."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import field
from fnmatch import fnmatchcase
from itertools import chain, count

from opwest.base.diagnostics import Diagnostics, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.drafting.files import Given, Unit
from opwest.drafting.signatures import C_ORIGIN, DWARF_ORIGIN, HEADER_ORIGIN, IR_ORIGIN, Signature, enriched
from opwest.drafting.skipped import reason_to_skip
from opwest.model.inputs.ir import matching_targets
from opwest.model.inputs.targets import OwnTarget, faults_for, fitting, own_target
from opwest.model.types.c_names import fault_of_name, is_symbol
from opwest.objects.archives import needed_members
from opwest.objects.compilers import (
    FFI_PREFIX,
    HOSTED,
    HOSTED_HINT,
    MLIR_PREFIX,
    Origin,
    Origins,
    is_hosted,
    is_rust_symbol,
    is_standard,
)
from opwest.objects.facts import CSource, Member, ObjectFile
from opwest.objects.library_symbols import hidden_effects, provider_of
from opwest.objects.linkability import DEFAULT_LIBC, RUNTIME_SYMBOLS, effects, state_of
from opwest.objects.llvm.facts import IrModule
from opwest.objects.targets import named_targets

_BEST_FIRST = (DWARF_ORIGIN, HEADER_ORIGIN, C_ORIGIN, IR_ORIGIN)


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
    include_dirs: dict[str, None] = field(default_factory=dict)
    """The directories of the headers of sources, guessed."""
    state: list[str] = field(default_factory=list)
    """Writable variables of the files, and called functions with state."""
    uses: dict[str, list[str]] = field(default_factory=dict)
    """Other effects, with the functions and instructions that have them."""

    def add(self, given: Given) -> None:
        """Add a file."""
        self.files.append(given.name)
        self.include_dirs |= dict.fromkeys(given.include_dirs)
        self.units += given.units

    def add_effects(self, name: str, effects: Iterable[str]) -> None:
        """Add the effects of a function or an instruction."""
        for effect in effects:
            names = self.state if effect == "state" else self.uses.setdefault(effect, [])
            names.append(name)

    def add_state_of(self, item: Member | CSource) -> None:
        """Add the writable variables and the effects of an object or a source."""
        self.state += state_of(item).names
        for reason in effects(item):
            self.add_effects(reason.symbol, reason.effects)


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
    origin: Origin | None = None
    """Its compiler, for a function with a convention of its own; its signature is then unknown."""


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
    signatures: list[Given] = field(default_factory=list)
    """The headers and C sources that only describe functions of other files."""
    externals: dict[str, dict[str, None]] = field(default_factory=dict)
    """By undefined symbol, the units that refer to it."""


def select(files: Sequence[Given], targets: Sequence[str], patterns: Sequence[str], faults: Diagnostics) -> Selection:
    """Return the content of a draft for `files` and named `targets`; without targets, they are guessed.

    With `patterns` (as of `fnmatch`), the operators are the matching functions, helpers included.
    """
    selection = Selection()
    linked = _linked(files, selection)
    if targets and linked and all(isinstance(given.item, CSource) for given in linked):
        faults.error(
            "--target has no effect: C and C++ sources are compiled for every board",
            hint="omit --target, or add objects",
        )
    _sort_by_target(linked, targets, selection, faults)
    _choose_operators(linked, files, patterns, selection)
    _report_unmatched(patterns, linked, faults)
    _find_state(selection, faults)
    _find_externals(selection)
    return selection


def _linked(files: Sequence[Given], selection: Selection) -> list[Given]:
    """Return the files to link, without programs and files with duplicate functions."""
    linked: list[Given] = []
    owners: dict[str, str] = {}
    for kind in (ObjectFile, CSource, IrModule):
        for given in (file for file in files if isinstance(file.item, kind)):
            if given.is_signatures:
                selection.signatures.append(given)
                continue
            first = next((name for name in given.functions if name in owners), None)
            is_archive = isinstance(given.item, ObjectFile) and given.item.kind == "archive"
            if "main" in given.functions and not is_archive:
                reason = "a program: it defines main(); C sources can be listed in 'application'"
            elif first is not None and kind is not ObjectFile:
                if isinstance(given.item, CSource) and given.item.language == "C":
                    selection.signatures.append(given)
                    continue
                reason = f"duplicate '{first}', also in {owners[first]}; used for signatures only"
            else:
                linked.append(given)
                continue
            selection.unlisted[given.name] = reason
        for given in linked:
            for name in given.functions:
                owners.setdefault(name, given.name)
    return [file for file in files if file in linked]


def _sort_by_target(linked: Sequence[Given], targets: Sequence[str], selection: Selection, faults: Diagnostics) -> None:
    """Create the entries of `objects`."""
    entries: dict[str, Entry] = {}
    sources = Entry(None)
    for given in linked:
        if isinstance(given.item, CSource):
            sources.add(given)
            sources.add_state_of(given.item)
        elif isinstance(given.item, ObjectFile):
            _add_objects(given, given.item.members, targets, entries, selection, faults)
    selection.entries = [*entries.values(), *([sources] if sources.files else [])]
    for given in linked:
        if isinstance(given.item, IrModule):
            _add_module(given, given.item, targets, bool(entries), selection)


def _add_objects(
    given: Given,
    members: Sequence[Member],
    targets: Sequence[str],
    entries: dict[str, Entry],
    selection: Selection,
    faults: Diagnostics,
) -> None:
    """Put a file of objects into the entry for its target."""
    fits = fitting(members, given.name)
    choices = [name for name in targets if name in fits] if targets else fits
    if targets and not choices:
        reason = faults_for(members, targets[0])[0]
        faults.error(f"{given.name}: {reason.message}", expected=reason.expected, hint=reason.hint)
        return
    if choices:
        name = next((n for n in choices if not _clashes(given, entries.get(n))), choices[0])
    else:
        own = own_target(members[0].abi)
        name = own.name
        if own not in selection.own_targets:
            selection.own_targets.append(own)
    entry = entries.setdefault(name, Entry(name))
    if choices and not targets:
        entry.also = tuple(n for n in fits if n != name)
    entry.add(given)


def _clashes(given: Given, entry: Entry | None) -> bool:
    """Return whether a file defines a symbol that the entry already defines."""
    defined = {name for unit in entry.units for name in unit.defines} if entry else set()
    return any(name in defined for name in given.functions if not name.startswith("__"))


def _add_module(given: Given, module: IrModule, targets: Sequence[str], compiled: bool, selection: Selection) -> None:
    """Put a module of IR into the entry for its targets."""
    fits = matching_targets(module, given.name)
    also: tuple[str, ...] = ()
    if targets:
        chosen = tuple(targets)
    elif compiled:
        chosen = ()  # the targets of the objects
    else:
        chosen, also = tuple(fits[:1]) or ("",), tuple(fits[1:])
    entry = next((other for other in selection.entries if other.is_ir and other.targets == chosen), None)
    if entry is None:
        entry = Entry(None, targets=chosen, is_ir=True, also=also)
        selection.entries.append(entry)
    entry.add(given)
    entry.state += module.state
    for effect in hidden_effects(sorted(module.undefined), ("host", DEFAULT_LIBC)):
        entry.add_effects(effect.name, effect.effects)


def _choose_operators(
    linked: Sequence[Given], files: Sequence[Given], patterns: Sequence[str], selection: Selection
) -> None:
    """Select the functions that can be operators; record the reason for the others."""
    units = [unit for given in linked for unit in _candidates(given)]
    every: dict[str, list[Unit]] = defaultdict(list)
    for given in files:
        for unit in given.units:
            for symbol in unit.defines:
                every[symbol].append(unit)
    callers: dict[str, str] = {}
    for unit in units:
        for symbol in unit.needs:
            callers.setdefault(symbol, unit.label)
    targets: dict[str, set[str | None]] = defaultdict(set)
    for entry in selection.entries:
        for unit in entry.units:
            for symbol in unit.defines:
                targets[symbol].add(entry.target)
    every_target = [entry.target for entry in selection.entries if entry.target is not None]
    reserved = every.keys() - _wrapped(units)
    headers = ", ".join(given.name for given in selection.signatures)
    names: set[str] = set()
    chosen: set[str] = set()
    for unit in units:
        origins = Origins(unit.definitions, unit.needs)
        for symbol in unit.defines:
            is_requested = not patterns or any(_matches(symbol, pattern) for pattern in patterns)
            if symbol in selection.left_out or symbol in chosen or not is_requested:
                continue
            origin = origins.of(symbol)
            signature, place = _best(symbol, every[symbol]) if origin is None else (None, None)
            caller = None if patterns else callers.get(symbol)
            reason = reason_to_skip(symbol, signature, caller, origin)
            if reason is None and signature is None and origin is None and headers and not patterns:
                reason = f"not declared in {headers}"
            if reason:
                selection.left_out[symbol] = reason
                continue
            name = _name(symbol, origin, reserved, names)
            names.add(name)
            chosen.add(symbol)
            defined = targets[symbol]  # None: for every target
            missing = () if None in defined else tuple(t for t in every_target if t not in defined)
            selection.operators.append(Chosen(name, symbol, signature, place or unit.label, missing, origin))
    if selection.operators:
        selection.left_out = {symbol: why for symbol, why in selection.left_out.items() if not is_rust_symbol(symbol)}


def _candidates(given: Given) -> list[Unit]:
    """Return the units of a file whose functions can be operators."""
    return [u for u in given.units if "main" not in u.defines and not (u.member and is_standard(u.member))]


def _matches(symbol: str, pattern: str) -> bool:
    """Whether a pattern matches a symbol, with or without its compiler's prefix."""
    return fnmatchcase(symbol, pattern) or fnmatchcase(_without_prefix(symbol), pattern)


def _without_prefix(symbol: str) -> str:
    return symbol.removeprefix(MLIR_PREFIX).removeprefix(FFI_PREFIX)


def _wrapped(units: Iterable[Unit]) -> set[str]:
    """Return the functions that are only parts of MLIR's operators, which can have their names."""
    both = [(symbol, MLIR_PREFIX + symbol in unit.defines) for unit in units for symbol in unit.defines]
    return {symbol for symbol, is_part in both if is_part} - {symbol for symbol, is_part in both if not is_part}


def _report_unmatched(patterns: Sequence[str], linked: Sequence[Given], faults: Diagnostics) -> None:
    """Report patterns that match no function."""
    functions = [symbol for given in linked for unit in _candidates(given) for symbol in unit.defines]
    for pattern in patterns:
        if not any(_matches(symbol, pattern) for symbol in functions):
            short = dict.fromkeys(_without_prefix(symbol) for symbol in functions if not is_rust_symbol(symbol))
            known = [name for name in short if not name.startswith("_")]
            faults.error(
                f"no function matches --symbols {pattern!r}",
                expected="the name of a global function in the files, or a pattern: conv*",
                hint=nearest(pattern, known),
            )


def _best(symbol: str, units: Iterable[Unit]) -> tuple[Signature | None, str | None]:
    """Return the most detailed signature, and its unit."""
    known = [(unit.signatures[symbol], unit.label) for unit in units if symbol in unit.signatures]
    if not known:
        return None, None
    signature, place = min(known, key=lambda pair: _BEST_FIRST.index(pair[0].origin))
    source = next((other for other, _ in known if other.origin in (HEADER_ORIGIN, C_ORIGIN)), None)
    return enriched(signature, source), place


def _name(symbol: str, origin: Origin | None, reserved: Set[str], names: Set[str]) -> str:
    """Return the name of the operator for a function: none of `names`, nor another function of `reserved`."""

    def is_free(name: str) -> bool:
        return name not in names and (name == symbol or name not in reserved)

    name = _without_prefix(symbol)
    if fault_of_name(name) is not None:
        name = f"op_{name}"
    if is_free(name):
        return name
    if origin and origin.convention:
        name = f"{name}_{origin.convention}"
    return next(filter(is_free, chain((name,), (f"{name}_{number}" for number in count(2)))))


def _linked_members(selection: Selection, entry: Entry) -> list[Unit]:
    """Return the objects of an entry that the operators need, like a linker."""
    anywhere = [unit for other in selection.entries if other.target is None for unit in other.units]
    roots = [operator.symbol for operator in selection.operators]
    roots += sorted({name for unit in anywhere for name in unit.needs})
    units = {id(unit.member): unit for unit in entry.units}
    needed = needed_members([unit.member for unit in entry.units if unit.member is not None], roots)
    return [units[id(member)] for member in needed]


def _find_state(selection: Selection, faults: Diagnostics) -> None:
    """Find the writable variables, the effects and the faults of the objects that the operators need."""
    hosted: set[str] = set()
    for entry in selection.entries:
        for unit in _linked_members(selection, entry):
            assert unit.member is not None
            if is_hosted(unit.member):
                file = unit.label.partition("(")[0]
                if file not in hosted:
                    faults.warning(f"{unit.label}: {HOSTED}", hint=HOSTED_HINT)
                hosted.add(file)
                continue
            entry.add_state_of(unit.member)
            for fault in unit.member.faults:
                faults.warning(f"{unit.label}: {fault}", hint="'opwest check' reports it as an error")


def _find_externals(selection: Selection) -> None:
    """Find undefined symbols like a linker: per target, for the members that the operators need."""
    anywhere = [unit for entry in selection.entries if entry.target is None for unit in entry.units]
    entries = [entry for entry in selection.entries if entry.target is not None]
    shared = {name for unit in anywhere for name in unit.definitions}
    for entry in entries or [Entry(None)]:
        linked = _linked_members(selection, entry)
        linked += [unit for unit in anywhere if unit.certain_needs]
        known = shared.union(*(unit.definitions for unit in linked))
        named = named_targets().get(entry.target or "")
        machine = linked[0].member.abi.machine if linked and linked[0].member else ""
        libc = "host" if named and named.get("host") else DEFAULT_LIBC
        for unit in linked:
            if unit.member is not None and is_hosted(unit.member):
                continue
            for symbol in sorted(unit.needs - known - RUNTIME_SYMBOLS):
                if provider_of(symbol, machine, libc) is None and is_symbol(symbol):
                    selection.externals.setdefault(symbol, {})[unit.label] = None

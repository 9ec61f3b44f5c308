# SPDX-License-Identifier: Apache-2.0
"""Check before the link that each target defines every operator and every undefined symbol."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from opwest.base.diagnostics import Location, nearest, similar
from opwest.model.checks.firmware import checks_of, report_checks
from opwest.model.checks.prototypes import check_prototype, reports_foreign
from opwest.model.checks.signatures import SignatureCheck
from opwest.model.inputs.context import Context
from opwest.model.inputs.files import Files, Linkable
from opwest.model.inputs.headers import normal
from opwest.model.inputs.signatures import Signatures
from opwest.model.types.builds import CppNeeds, External, LinkObject, SourceFile, Target, TargetBuild
from opwest.model.types.c_names import is_symbol
from opwest.model.types.model import Operator
from opwest.objects.archives import needed_members
from opwest.objects.compilers import is_hosted
from opwest.objects.facts import CFunction, CSource, Member
from opwest.objects.halide_symbols import PROVIDED as HALIDE_PROVIDED
from opwest.objects.library_symbols import EFFECTS, is_soft_float, provider_of, uses_libm
from opwest.objects.linkability import (
    DEFAULT_LIBC,
    RUNTIME_SYMBOLS,
    Link,
    Reason,
    judge_symbols,
    records_conventions,
    unrecorded_options,
)
from opwest.objects.rewriting import without_sections
from opwest.objects.tvm_symbols import CONTEXTS, POINTERS, PROVIDED, tvm_functions

if TYPE_CHECKING:
    from opwest.objects.entry_code import EntryCode


_UNWINDING = ("_Unwind_", "__cxa_", "__gxx_personality", "rust_eh_personality", "__gcc_personality")
"""Functions that raise or catch exceptions, or walk the stack. Without them, no code reads unwind tables."""


def resolve_builds(
    context: Context,
    files: Files,
    operators: dict[str, Operator],
    externals: dict[str, External],
) -> list[TargetBuild]:
    """Return the files linked for each target; report undefined and duplicate symbols."""
    needed: set[str] = set()
    builds = []
    missing: dict[str, list[_Link]] = {}
    headers = Signatures(context)
    every: list[Target | None] = [files.named[name] for name in files.targets] or [None]
    for target in every:
        linkables = files.targets[target.name] if target else []
        link = _Link(context, target, linkables, files, operators, externals, headers)
        builds.append(link.build())
        needed |= link.needed
        for symbol in link.missing:
            missing.setdefault(symbol, []).append(link)
    for operator in operators.values():
        if operator.symbol in missing:
            _report_missing(context, operator, missing.pop(operator.symbol))
    for symbol, external in externals.items():
        if symbol not in needed and not files.sources and not files.rejected:
            context.faults.warning(f"unused external {symbol!r}", external.location)
    return builds


def _report_missing(context: Context, operator: Operator, links: list[_Link]) -> None:
    """Report a missing symbol once for all targets."""
    names = [repr(link.target.name) for link in links if link.target]
    where = f" for target{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""
    every = [linkable for link in links for linkable in link.all]
    files = ", ".join(sorted({linkable.name.split("(")[0] for linkable in every})) or "an object"
    functions = set().union(*(linkable.defined_functions for linkable in every)) if every else set()
    context.faults.error(
        f"no object{where} defines symbol {operator.symbol!r} of operator {operator.name!r}",
        _symbol_place(context, operator),
        expected=f"a function in {'each of ' * (len(names) > 1)}{files}",
        hint=nearest(operator.symbol, functions),
    )


class _Link:
    """The link of one target."""

    def __init__(
        self,
        context: Context,
        target: Target | None,
        linkables: list[Linkable],
        files: Files,
        operators: dict[str, Operator],
        externals: dict[str, External],
        headers: Signatures,
    ) -> None:
        self.context = context
        self.faults = context.faults
        self.target = target
        self.files = files
        self.operators = operators
        self.externals = externals
        self.needed: set[str] = set()
        """The external symbols that objects need."""
        self.where = f" for target {target.name!r}" if target else ""
        self.checks = checks_of(operators.values())
        self.symbols = {operator.symbol for operator in operators.values()} | self.checks.keys()
        self.libc = "host" if target and target.host else context.manifest.get("libc", DEFAULT_LIBC)
        self.permits = {operator.symbol: frozenset(operator.declared_effects) for operator in operators.values()}
        self.missing: list[str] = []
        self.entry_code: dict[str, EntryCode] = {}
        self.records: dict[str, bool] = {}
        """By object, whether it records the calling conventions of its functions."""
        self.compiled = frozenset(file.name for file, _ in files.modules)
        """The objects compiled from LLVM IR."""
        self.signatures = SignatureCheck(context, headers, self.compiled, single=len(files.targets) < 2)
        self.uncertain: list[str] = []
        """Operators whose calling convention nothing shows."""
        self.unread = files.unread_for(target.name if target else None)
        # A rejected file does not hide the members of archives that define the same symbols.
        self.extracted = self._closure(linkables)
        accepted = self._closure([linkable for linkable in linkables if not linkable.rejected])
        kept = set(map(id, (*self.extracted, *accepted)))
        self.linked = [linkable for linkable in linkables if id(linkable) in kept]
        for linkable in linkables:
            linkable.examined.linked = id(linkable) in kept
        self.all = [*self.linked, *files.sources]
        self.definitions = self._definitions(self.all)

    def build(self) -> TargetBuild:
        """Run all checks and return the files that go into the firmware."""
        self._check_operators()
        unread = bool(self.unread) or not self.files.elsewhere.isdisjoint(self.checks)
        report_checks(self.context, self.checks, self.all, self.where, unread=unread)
        self._check_duplicates()
        self._check_symbols()
        taken: set[PurePosixPath] = set()
        firmware = self.target is not None and not self.target.host
        unwinds = any(_unwinds(linkable.item) for linkable in self.all)
        objects = tuple(
            LinkObject(_object_name(linkable, taken), self._content(linkable.item, firmware, unwinds), linkable.name)
            for linkable in self.linked
            if isinstance(linkable.item, Member)
        )
        renames = tuple(sorted(self.definitions))
        scope = tuple(sorted(self._scope() - self.definitions.keys()))
        called = self._called()
        return TargetBuild(
            self.target,
            objects,
            self._sources(),
            renames,
            self.libc,
            scope,
            libm=tuple(sorted(filter(uses_libm, called))),
            soft_float=tuple(sorted(filter(is_soft_float, called))),
            unverified=self._unverified(),
            uncertain=tuple(self.uncertain),
            unverified_signatures=tuple(self.signatures.unverified),
        )

    @staticmethod
    def _content(item: Member, firmware: bool, unwinds: bool) -> bytes:
        """Return an object without sections that firmware cannot use; unwind tables only if nothing unwinds."""
        if not firmware or item.opaque:
            return item.content
        return without_sections(item.content, unwind_tables=item.abi.machine == "arm" and not unwinds, stack_note=True)

    def _unverified(self) -> tuple[str, ...]:
        """Return the objects with operators whose ABI options are not known; LLVM IR has none."""
        return tuple(
            linkable.name
            for linkable in self.linked
            if isinstance(linkable.item, Member)
            and linkable.name not in self.compiled
            and self.symbols & linkable.defined_functions
            and unrecorded_options(linkable.item)
        )

    def _sources(self) -> tuple[SourceFile, ...]:
        """Return the sources and headers, with their operators that are static, and the effects that they may have."""
        sources = {PurePosixPath(normal(PurePosixPath(source.name))): source for source in self.files.sources}
        copies = []
        for copy in self.files.copies.values():
            source = sources.get(copy.path)
            if source is not None:
                effects = self._permits(source)
                exports = tuple(sorted(_static(source) & self.symbols))
                copy = replace(copy, exports=exports, permits=tuple(e for e in EFFECTS if e in effects))
            copies.append(copy)
        return tuple(copies)

    def _permits(self, linkable: Linkable) -> frozenset[str]:
        """Return the effects that the entry of a file, or an operator that the file defines, may have."""
        operators = self.permits.keys() & linkable.defined_functions
        return linkable.permits.union(*(self.permits[symbol] for symbol in operators))

    def _called(self) -> set[str]:
        """Return the functions that the files call and do not define."""
        called = set().union(*(linkable.called for linkable in self.all))
        return called - self.definitions.keys() - self.externals.keys()

    def _scope(self) -> set[str]:
        """Return the names of the outermost scope in C++ sources, without overloads of functions of a library."""
        names = {
            name for source in self.files.sources if isinstance(source.item, CSource) for name in source.item.scope
        }
        machine = self.target.machine if self.target else ""
        return {
            name
            for name in names
            if name not in self.externals
            and name not in RUNTIME_SYMBOLS
            and provider_of(name, machine, self.libc) is None
        }

    def _closure(self, linkables: list[Linkable]) -> list[Linkable]:
        """Return the loose files, and the archive members that the operators need."""
        members = [linkable.item for linkable in linkables if isinstance(linkable.item, Member)]
        roots = set(self.symbols)
        for source in self.files.sources:
            roots |= source.called
        for linkable in linkables:
            if not linkable.archived and isinstance(linkable.item, Member):
                roots |= set(linkable.item.undefined_strong)
        kept = {id(member) for member in needed_members(members, roots)}
        return [linkable for linkable in linkables if not linkable.archived or id(linkable.item) in kept]

    def _definitions(self, linked: Iterable[Linkable]) -> dict[str, list[Linkable]]:
        definitions: dict[str, list[Linkable]] = {}
        for linkable in linked:
            for symbol in linkable.defined:
                if symbol in POINTERS:  # replaced by those of the runtime
                    continue
                if symbol in _static(linkable) and symbol not in self.symbols:
                    continue
                definitions.setdefault(symbol, []).append(linkable)
        return definitions

    def _check_operators(self) -> None:
        reported = set()
        for operator in self.operators.values():
            if operator.symbol in reported or not is_symbol(operator.symbol):
                continue
            reported.add(operator.symbol)
            owners = self.definitions.get(operator.symbol, [])
            if not owners:
                self._note_missing(operator)
                continue
            before = len(self.faults)
            for owner in owners:
                if operator.symbol not in owner.defined_functions:
                    self.faults.error(
                        f"symbol {operator.symbol!r} of operator {operator.name!r} is not a function in {owner.name}",
                        _symbol_place(self.context, operator),
                        expected="a function",
                    )
                elif reports_foreign(self.faults, operator, owner):
                    continue
                elif operator.symbol in owner.c_functions:  # a macro may define others: entry_points
                    source = owner.item if isinstance(owner.item, CSource) else None
                    function = owner.c_functions[operator.symbol]
                    check_prototype(self.faults, operator, owner.name, function, source)
            if all(fault.severity != "error" for fault in list(self.faults)[before:]):
                self._check_signature(operator, owners)

    def _check_signature(self, operator: Operator, owners: list[Linkable]) -> None:
        """Compare an operator with the description of its function, if any, and with its instructions."""
        for owner in owners:
            if not self.signatures.check(operator, owner):
                continue
            if isinstance(owner.item, Member) and operator.symbol in owner.defined_functions:
                self._check_convention(operator, owner, owner.item)

    def _check_convention(self, operator: Operator, linkable: Linkable, item: Member) -> None:
        """Report a function that does not take its arguments as C does, as far as its instructions show it."""
        if item.opaque or item.abi.machine not in ("x86-64", "i386", "arm", "riscv"):
            return  # all attributes of other machines change only which registers a function preserves
        if linkable.name in self.compiled:
            return  # IR records the convention
        from opwest.objects.entry_code import EntryCode

        code = self.entry_code.get(linkable.name)
        if code is None:
            code = self.entry_code[linkable.name] = EntryCode(item)
        judgement = code.convention(operator.symbol, [c_type for _, c_type in operator.parameters], operator.c_result)
        if judgement.verdict == "refused":
            self.faults.error(
                f"{linkable.name}: function {operator.symbol!r} {judgement.text}",
                operator.location,
                expected=judgement.expected,
                hint="compile it without an attribute or option that changes its calling convention, or compare the "
                "arguments of the operator with its source",
            )
        elif judgement.verdict == "unknown" and not self._records_conventions(linkable.name, item):
            self.uncertain.append(f"{operator.symbol} ({linkable.name})")

    def _records_conventions(self, name: str, item: Member) -> bool:
        if name not in self.records:
            self.records[name] = records_conventions(item)
        return self.records[name]

    def _note_missing(self, operator: Operator) -> None:
        """Report a local definition; record a symbol without any definition."""
        at = _symbol_place(self.context, operator)
        symbol = operator.symbol
        for linkable in self.all:
            mangled = _mangled(linkable, symbol)
            if mangled is not None:
                place = f"{linkable.name}:{mangled.line}"
                self.faults.error(
                    f"{place}: function {symbol!r} of operator {operator.name!r} has C++ linkage",
                    at,
                    expected='extern "C"',
                    hint="list it under 'entry_points' if a header outside the manifest's directory declares it",
                )
                return
            if symbol in _local_names(linkable):
                self.faults.error(
                    f"symbol {symbol!r} of operator {operator.name!r} has only a local definition in {linkable.name}",
                    at,
                    expected="a global function",
                    hint="remove `static` and recompile",
                )
                return
        if not self.unread and symbol not in self.files.elsewhere:  # otherwise a faulty file may define it
            self.missing.append(symbol)

    def _check_duplicates(self) -> None:
        for symbol, owners in self._definitions([*self.extracted, *self.files.sources]).items():
            strong = [owner for owner in owners if _is_strong(owner, symbol)]
            if symbol in CONTEXTS and all(isinstance(owner.item, CSource) for owner in strong):
                continue  # TVM emits one per source; they are made weak
            if len(strong) > 1:
                first, second = strong[0], strong[1]
                self.faults.error(
                    f"multiple definitions of symbol {symbol!r}{self.where}: in {first.name} and {second.name}",
                    second.location,
                    expected="one definition",
                    hint="remove one of the files, or make one definition static",
                )
                second.examined.refuse(f"symbol {symbol!r} is also defined in {first.name}")

    def _check_symbols(self) -> None:
        """Report undefined symbols, functions of TVM's runtime, and state."""
        defined = self.definitions.keys() | self.externals.keys() | self.files.elsewhere
        workspace = any(operator.workspace for operator in self.operators.values())
        hosted: set[str] = set()  # archives with a reported member
        for linkable in self.all:
            foreign = False
            if isinstance(linkable.item, Member):
                foreign = self.target is not None and linkable.item.abi.machine != self.target.machine
                self.needed |= self.externals.keys() & set(linkable.item.undefined_strong)
            link = Link(
                None if foreign else self.libc,
                defined,
                externals=self.externals.keys() - self.definitions.keys(),
                permits=self._permits(linkable),
                workspace=workspace,
            )
            for reason in (*linkable.faults, *judge_symbols(linkable.item, link)):
                linkable.examined.refuse(reason.text)
                if isinstance(linkable.item, Member) and is_hosted(linkable.item):
                    if linkable.name.partition("(")[0] in hosted:
                        continue
                    hosted.add(linkable.name.partition("(")[0])
                    reason = judge_symbols(linkable.item)[0]
                hint = self._hint_for_undefined(reason) if reason.kind == "undefined" else reason.hint
                self.faults.error(
                    reason.message(linkable.name, self.where), linkable.location, expected=reason.expected, hint=hint
                )

    def _hint_for_undefined(self, reason: Reason) -> str:
        if reason.hint is not None:
            return reason.hint
        close = similar(reason.symbol, self.definitions)
        if close is not None:
            return close
        if self.unread:
            return f"{self.unread[0]} may define it"
        return f"for a symbol of a library, add externals: [{{symbol: {reason.symbol}, from: ...}}]"


def _static(linkable: Linkable) -> frozenset[str]:
    """Return the static functions of a header."""
    item = linkable.item
    return item.static_functions if isinstance(item, CSource) and item.is_header else frozenset()


def _unwinds(item: Member | CSource) -> bool:
    """Return whether code can raise or catch exceptions; C++ sources may."""
    if isinstance(item, CSource):
        return item.language == "C++"
    return any(name.startswith(_UNWINDING) for name in item.undefined)


def _local_names(linkable: Linkable) -> set[str]:
    if isinstance(linkable.item, Member):
        return {s.name for s in linkable.item.symbols if s.binding == "local" and s.kind == "function"}
    return {f.name for f in linkable.item.functions if f.is_static}


def _mangled(linkable: Linkable, symbol: str) -> CFunction | None:
    """Return the function of a C++ source whose symbol is not its name, if the symbol is meant to be."""
    if isinstance(linkable.item, Member):
        return None
    functions = (f for f in linkable.item.functions if f.mangled and not f.is_static)
    return next((f for f in functions if f.name.rsplit("::", 1)[-1] == symbol), None)


def _is_strong(linkable: Linkable, symbol: str) -> bool:
    if isinstance(linkable.item, Member):
        definition = linkable.item.defined[symbol]
        return definition.binding == "global" and definition.section != "common"
    return True


def _symbol_place(context: Context, operator: Operator) -> Location:
    section = context.section("operators")
    entry = section.get(operator.name)
    if entry is not None and "symbol" in entry:
        place: Location = entry.value_location("symbol")
        return place
    return operator.location


def _object_name(linkable: Linkable, taken: set[PurePosixPath]) -> PurePosixPath:
    """Return a unique file name for an object: its own, or archive and member joined."""
    file, _, member = linkable.name.partition("(")
    stem = PurePosixPath(file).stem
    if member:
        stem += "__" + PurePosixPath(member.removesuffix(")")).stem
    stem = re.sub(r"[^A-Za-z0-9_.+-]", "_", stem)
    path, count = PurePosixPath(f"{stem}.o"), 1
    while path in taken:
        count += 1
        path = PurePosixPath(f"{stem}_{count}.o")
    taken.add(path)
    return path


def needs_full_libc(files: Files) -> bool:
    """Return whether an operator uses libm, which Zephyr's minimal C library lacks."""
    return any(
        not {"math.h", "cmath"}.isdisjoint(linkable.item.includes)
        if isinstance(linkable.item, CSource)
        else any(map(uses_libm, linkable.item.undefined))
        for linkable in _linked(files)
    )


def cpp_needs(files: Files) -> CppNeeds:
    """Return what the C++ sources of operators need."""
    items = [source.item for source in files.sources]
    sources = [item for item in items if isinstance(item, CSource) and item.language == "C++"]
    if not sources:
        return CppNeeds(False, False)
    from opwest.objects.cpp_source import needs_library

    return CppNeeds(True, any(needs_library(source) for source in sources))


def needs_tvm(files: Files) -> bool:
    """Return whether an object or source calls functions of TVM's runtime."""
    return any(tvm_functions(linkable.item) & PROVIDED for linkable in _linked(files))


def needs_halide(files: Files) -> bool:
    """Return whether an object or source calls functions of Halide's runtime."""
    return any(linkable.called & HALIDE_PROVIDED for linkable in _linked(files))


def _linked(files: Files) -> list[Linkable]:
    """Return the sources and linked objects, without the archive members that no operator needs."""
    objects = [linkable for linkables in files.targets.values() for linkable in linkables if linkable.examined.linked]
    return [*objects, *files.sources]

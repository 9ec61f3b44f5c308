# SPDX-License-Identifier: Apache-2.0
"""Check before the link that each target defines every operator and every undefined symbol."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from opwest.diagnostics import Location, nearest
from opwest.model.context import Context
from opwest.model.files import Files, Linkable
from opwest.model.identifiers import is_symbol
from opwest.model.model import External, LinkObject, Operator, Target, TargetBuild
from opwest.objects.closure import needed_members
from opwest.objects.facts import CSource, Member
from opwest.objects.providers import provider_of, uses_libm
from opwest.objects.tvm_symbols import ALLOCATE, CONTEXTS, POINTERS, PROVIDED, REFUSED, own_state, tvm_functions

if TYPE_CHECKING:
    from opwest.objects.dwarf import DwarfSignature

DEFAULT_LIBC = "picolibc"
RUNTIME_SYMBOLS = (
    frozenset(
        """opwest_call opwest_call_check opwest_call_on_device opwest_dtype_name opwest_dtype_size opwest_find
    opwest_launch opwest_model_input opwest_model_output opwest_model_step_name opwest_own opwest_port_cache_line
    opwest_port_device_is_ready opwest_port_log_failure opwest_release opwest_status_already opwest_status_failed
    opwest_wait""".split()
    )
    | PROVIDED
)
"""The functions declared in zephyr_module/include."""


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
    every: list[Target | None] = [files.named[name] for name in files.targets] or [None]
    for target in every:
        linkables = files.targets[target.name] if target else []
        link = _Link(context, target, linkables, files, operators, externals, needed)
        builds.append(link.build())
        for symbol in link.missing:
            missing.setdefault(symbol, []).append(link)
    for operator in operators.values():
        if operator.symbol in missing:
            _report_missing(context, operator, missing.pop(operator.symbol))
    for symbol, external in externals.items():
        if symbol not in needed and not files.sources and not files.broken:
            context.faults.warning(f"unused external {symbol!r}", external.location)
    return builds


def _report_missing(context: Context, operator: Operator, links: list[_Link]) -> None:
    """Report a missing symbol once for all targets."""
    names = [repr(link.target.name) for link in links if link.target]
    where = f" for target{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""
    every = [one for link in links for one in link.all]
    files = ", ".join(sorted({one.name.split("(")[0] for one in every})) or "an object"
    functions = set().union(*(one.defined_functions for one in every)) if every else set()
    context.faults.error(
        f"no object{where} defines symbol {operator.symbol!r} of operator {operator.name!r}",
        _symbol_place(context, operator),
        expected=f"a function in {'each of ' * (len(names) > 1)}{files}",
        hint=nearest(operator.symbol, functions),
    )


def needs_full_libc(files: Files) -> bool:
    """Return whether an operator uses libm, which Zephyr's minimal C library lacks."""
    for linkables in (*files.targets.values(), files.sources):
        for linkable in linkables:
            item = linkable.item
            if isinstance(item, CSource):
                if "math.h" in item.includes:
                    return True
            elif any(uses_libm(symbol) for symbol in item.undefined):
                return True
    return False


def needs_tvm(files: Files) -> bool:
    """Return whether an object or source calls functions of TVM's runtime."""
    every = [one for linkables in (*files.targets.values(), files.sources) for one in linkables]
    return any(tvm_functions(one.item) & PROVIDED for one in every)


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
        needed: set[str],
    ) -> None:
        self.context = context
        self.faults = context.faults
        self.target = target
        self.files = files
        self.operators = operators
        self.externals = externals
        self.needed_externals = needed
        self.where = f" for target {target.name!r}" if target else ""
        self.libc = "host" if target and target.host else context.manifest.get("libc", DEFAULT_LIBC)
        self.missing: list[str] = []
        self.signatures: dict[str, dict[str, DwarfSignature] | str] = {}
        self.linked = self._closure(linkables)
        self.all = [*self.linked, *files.sources]
        self.definitions = self._definitions()

    def build(self) -> TargetBuild:
        """Run all checks and return the files that go into the firmware."""
        self._check_operators()
        self._check_duplicates()
        self._check_undefined()
        self._check_tvm()
        self._check_state()
        taken: set[PurePosixPath] = set()
        objects = tuple(
            LinkObject(_object_name(one, taken), one.item.content, one.name)
            for one in self.linked
            if isinstance(one.item, Member)
        )
        renames = tuple(sorted(self.definitions))
        return TargetBuild(self.target, objects, tuple(self.files.copies), renames, self.libc)

    def _closure(self, linkables: list[Linkable]) -> list[Linkable]:
        """Return the loose files, and the archive members that the operators need."""
        members = [one.item for one in linkables if isinstance(one.item, Member)]
        roots = {operator.symbol for operator in self.operators.values()}
        for source in self.files.sources:
            if isinstance(source.item, CSource):
                roots |= set(source.item.calls)
        for one in linkables:
            if not one.archived and isinstance(one.item, Member):
                roots |= set(one.item.undefined_strong)
        kept = {id(member) for member in needed_members(members, roots)}
        for one in linkables:
            one.examined.linked = not one.archived or id(one.item) in kept
        return [one for one in linkables if not one.archived or id(one.item) in kept]

    def _definitions(self) -> dict[str, list[Linkable]]:
        found: dict[str, list[Linkable]] = {}
        for one in self.all:
            for symbol in one.defined:
                if symbol not in POINTERS:  # replaced by those of the runtime
                    found.setdefault(symbol, []).append(one)
        return found

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
            for one in owners:
                if operator.symbol not in one.defined_functions:
                    self.faults.error(
                        f"symbol {operator.symbol!r} of operator {operator.name!r} is not a function in {one.name}",
                        _symbol_place(self.context, operator),
                        expected="a function",
                    )
                elif isinstance(one.item, CSource):
                    from opwest.model.prototypes import check_prototype

                    check_prototype(self.faults, operator, one.name, one.item)
            self._check_signature(operator, owners)

    def _check_signature(self, operator: Operator, owners: list[Linkable]) -> None:
        """Compare an operator with the debug information of the object that defines it, if any."""
        for one in owners:
            if isinstance(one.item, Member) and b".debug_info" in one.item.content:
                from opwest.model.prototypes import check_debug_information
                from opwest.objects.dwarf import signatures

                if one.name not in self.signatures:
                    self.signatures[one.name] = signatures(one.item)
                known = self.signatures[one.name]
                if isinstance(known, dict) and operator.symbol in known:
                    check_debug_information(self.faults, operator, one.name, known[operator.symbol])

    def _note_missing(self, operator: Operator) -> None:
        """Report a local definition; record a symbol without any definition."""
        at = _symbol_place(self.context, operator)
        symbol = operator.symbol
        for one in self.all:
            if symbol in _local_names(one):
                self.faults.error(
                    f"symbol {symbol!r} of operator {operator.name!r} has only a local definition in {one.name}",
                    at,
                    expected="a global function",
                    hint="remove `static` and recompile",
                )
                return
        if not self.files.broken:  # otherwise a faulty file may define it
            self.missing.append(symbol)

    def _check_duplicates(self) -> None:
        for symbol, owners in self.definitions.items():
            strong = [one for one in owners if _is_strong(one, symbol)]
            if symbol in CONTEXTS and all(isinstance(one.item, CSource) for one in strong):
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

    def _check_undefined(self) -> None:
        machine = self.target.machine if self.target else ""
        for one in self.linked:
            if not isinstance(one.item, Member):
                continue
            for symbol in one.item.undefined_strong:
                if symbol in self.externals:
                    self.needed_externals.add(symbol)
                elif (
                    symbol not in self.definitions
                    and symbol not in RUNTIME_SYMBOLS
                    and symbol not in REFUSED
                    and provider_of(symbol, machine, self.libc) is None
                    and not self.files.broken
                ):
                    self._report_undefined(one, symbol)

    def _check_tvm(self) -> None:
        """Report references of operators compiled by TVM to unsupported runtime functions or undeclared memory."""
        for one in self.all:
            needed = tvm_functions(one.item) - self.externals.keys() - self.definitions.keys()
            for symbol in sorted(needed & REFUSED.keys()):
                one.examined.refuse(f"unsupported function {symbol!r}")
                self.faults.error(
                    f"unsupported function {symbol!r} in {one.name}: {REFUSED[symbol]}",
                    one.location,
                    expected="operators that use only their arguments and a workspace",
                    hint="in TVM, compile one function per operator, for the CPU, without threads",
                )
            if ALLOCATE in needed and not any(operator.workspace for operator in self.operators.values()):
                one.examined.refuse(f"calls {ALLOCATE}, but no operator has a workspace")
                self.faults.error(
                    f"{one.name} calls {ALLOCATE}, but no operator has a workspace",
                    one.location,
                    expected="'workspace' in the operators that allocate memory",
                )

    def _report_undefined(self, one: Linkable, symbol: str) -> None:
        hint = nearest(symbol, self.definitions)
        if hint is None or not hint.startswith("did you mean"):
            hint = f"for a symbol of a library, add externals: [{{symbol: {symbol}, from: ...}}]"
        if symbol.startswith("__stack_chk"):
            hint = "compile with -fno-stack-protector: prebuilt operators cannot use Zephyr's stack canaries"
        one.examined.refuse(f"undefined symbol {symbol!r}")
        self.faults.error(
            f"undefined symbol {symbol!r} in {one.name}{self.where}",
            one.location,
            expected=f"a definition in another object, the runtime, libgcc, {_libc_words(self.libc)}, or externals",
            hint=hint,
        )

    def _check_state(self) -> None:
        allowed = {operator.symbol for operator in self.operators.values() if operator.stateful}
        for one in self.all:
            if one.stateful or allowed & one.defined_functions:
                continue
            names, size = own_state(one.item)
            amount = f" of {size} bytes" if size else ""
            if not names and not amount:
                continue
            listed = ", ".join(sorted(set(names))[:5]) or "unnamed data"
            one.examined.refuse(f"writable state{amount}: {listed}")
            self.faults.error(
                f"{one.name} has writable state{amount}: {listed}",
                one.location,
                expected="operators without .data and .bss, so that models are reentrant",
                hint="make it const, pass it as a scratch argument, or set `stateful: true`",
            )


def _libc_words(libc: str) -> str:
    return "the host's C library" if libc == "host" else f"the C library ({libc})"


def _local_names(one: Linkable) -> set[str]:
    if isinstance(one.item, Member):
        return {s.name for s in one.item.symbols if s.binding == "local" and s.kind == "function"}
    return {f.name for f in one.item.functions if f.is_static}


def _is_strong(one: Linkable, symbol: str) -> bool:
    if isinstance(one.item, Member):
        found = one.item.defined[symbol]
        return found.binding == "global" and found.section != "common"
    return True


def _symbol_place(context: Context, operator: Operator) -> Location:
    section = context.section("operators")
    entry = section.get(operator.name)
    if entry is not None and "symbol" in entry:
        place: Location = entry.value_location("symbol")
        return place
    return operator.location


def _object_name(one: Linkable, taken: set[PurePosixPath]) -> PurePosixPath:
    """Return a unique file name for an object: its own, or archive and member joined."""
    file, _, member = one.name.partition("(")
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

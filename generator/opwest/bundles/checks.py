# SPDX-License-Identifier: Apache-2.0
"""The refusals: operators that an image cannot contain, before compilation and after the link."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.result import counted
from opwest.bundles.image import CompileUnit, ImageBuilder, loaded_relocations, named_symbols
from opwest.bundles.toolchain import Libraries
from opwest.model.types.builds import TargetBuild
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model
from opwest.objects.elf import SHF_ALLOC, SHF_TLS, SHF_WRITE, UNDEFINED, Elf, Section, parse_elf
from opwest.objects.linkability import Link, effects

_READ_ONLY = (".data.rel.ro", ".data.rel.local.DW.ref", ".got", ".igot", ".opwest_bundle")
_START = (".init_array", ".preinit_array", ".fini_array", ".ctors", ".dtors")
_WEAK = 2
_VOLATILE = frozenset(("one", "two", "tiny"))
"""Constants of tanh in picolibc, which are declared volatile, so compilers place them in writable data."""


def check_model(model: Model, build: TargetBuild, faults: Diagnostics) -> None:
    """Report what is known before compilation."""
    for operator in model.operators:
        if operator.stateful:
            faults.error(
                f"operator {operator.name!r} has writable state: a bundle has none",
                operator.location,
                expected="operators without 'stateful: true'",
                hint="keep the state in a tensor: 'state' in the manifest",
            )
        elif operator.uses_tvm:
            text = f"operator {operator.name!r} uses functions of TVM's runtime, which a bundle cannot call"
            faults.error(text, operator.location, expected="an operator without a workspace of TVM")
    for source in build.sources:
        if source.compiled and "state" in source.permits:
            faults.error(
                f"{str(source.path)!r} may have writable state ('stateful: true'): a bundle has none",
                Location(model.manifest, source.line, source.column),
                hint="keep the state in a tensor: 'state' in the manifest",
            )
    for device in model.devices:
        if device.handle is not None:
            text = f"device {device.name!r} has a handle of type {device.handle.type!r}, which a bundle cannot declare"
            faults.error(text, device.location, expected="a device of the devicetree: 'const struct device *'")
    check_vectors(model, faults)


def check_vectors(model: Model, faults: Diagnostics) -> None:
    """Report a model without golden vectors."""
    if not model.suite.vectors:
        faults.error(
            f"model {model.name!r} has no golden vectors: firmware refuses a bundle without them",
            model.location,
            expected="tests: {vectors: FILE.npz}",
            hint="store the inputs and expected outputs of some runs in an .npz file",
        )


def check_effects(units: Sequence[CompileUnit], build: TargetBuild, faults: Diagnostics) -> set[tuple[str, str]]:
    """Report the effects of compiled sources; return the functions with effects, each with the file that calls it."""
    known: set[tuple[str, str]] = set()
    permits = {str(source.path): source.permits for source in build.sources}
    for unit in units:
        if unit.origin in permits:
            for reason in effects(unit.member, Link(build.libc, permits=permits[unit.origin])):
                faults.error(reason.message(unit.origin), unit.location, expected=reason.expected, hint=reason.hint)
                known.add((unit.origin, reason.symbol))
    return known


def check_linked(
    elf: Elf, builder: ImageBuilder, libraries: Libraries, known: Collection[tuple[str, str]], faults: Diagnostics
) -> None:
    """Report undefined symbols, writable data and constructors of the relocatable object, each at its operator.

    `known` are functions that are reported already, with the files that call them.
    """
    blame = _Blame(builder, libraries, known)
    for symbol in _needed(elf):
        blame.add(symbol, f"undefined symbol {blame.shown(symbol)!r}")
    for section, objects in _writable(elf):
        if blame.is_constant(section, objects):
            continue
        what = "thread-local data" if section.flags & SHF_TLS else "writable data"
        if not objects:
            text = f"the image has {counted(section.size, 'byte')} of {what} in {section.name!r}: a bundle has none"
            faults.error(text, builder.model.location)
        for name, size in objects:
            blame.add(name, f"{what} {blame.shown(name)!r} ({counted(size, 'byte')})")
    blame.report(faults)
    for unit in builder.units:
        _check_start(unit, faults)


def _check_start(unit: CompileUnit, faults: Diagnostics) -> None:
    """Report functions that run when a program starts."""
    if unit.origin is None:
        return
    for section in parse_elf(unit.member.content).sections:
        if section.flags & SHF_ALLOC and section.size and section.name.startswith(_START):
            faults.error(
                f"{unit.origin!r} has functions that run when a program starts, in {section.name!r}: a bundle has none",
                unit.location,
                hint="initialise at the first call, or in constants",
            )


def _needed(elf: Elf) -> list[str]:
    """Return the undefined symbols that a relocation of the image refers to, without weak ones, sorted."""
    numbers = {entry.symbol for entry in loaded_relocations(elf)}
    symbols = [(name, raw) for name, raw in named_symbols(elf) if raw.number in numbers]
    return sorted({name for name, raw in symbols if name and raw.section == UNDEFINED and raw.binding != _WEAK})


def _writable(elf: Elf) -> Iterator[tuple[Section, list[tuple[str, int]]]]:
    """Yield the sections of writable data with the names and sizes of their objects, the largest first."""
    symbols = named_symbols(elf)
    for index, section in enumerate(elf.sections):
        if not (section.flags & SHF_ALLOC and section.flags & SHF_WRITE and section.size):
            continue
        if section.name.startswith((*_READ_ONLY, *_START)):
            continue
        objects = {name: raw.size for name, raw in symbols if name and raw.section == index and raw.size}
        yield section, sorted(objects.items(), key=lambda row: (-row[1], row[0]))


class _Blame:
    """Finds the operators that need a symbol."""

    def __init__(self, builder: ImageBuilder, libraries: Libraries, known: Collection[tuple[str, str]]) -> None:
        self.known = known
        self.model = builder.model
        self.units = builder.units
        self.libraries = libraries
        self.defined = {name: unit for unit in builder.units for name in unit.member.defined}
        self.own: list[tuple[CompileUnit, str]] = []
        self.called: dict[tuple[CompileUnit, str], list[str]] = {}
        self.unknown: list[str] = []

    def add(self, symbol: str, what: str) -> None:
        """Add a symbol for each object of the manifest that needs or contains it."""
        owners = [unit for unit in self.units if unit.origin is not None]
        is_known = False
        for unit in owners:
            if any(entry.name == symbol for entry in unit.member.symbols):
                self.own.append((unit, what))
                is_known = True
                continue
            chain = self.libraries.path_to(symbol, unit.member.undefined_strong, self.defined)
            if chain is not None and (unit.origin, chain[0]) in self.known:
                is_known = True
            elif chain is not None:
                self.called.setdefault((unit, chain[0]), []).append(what)
                is_known = True
        if not is_known:
            self.unknown.append(what)

    def report(self, faults: Diagnostics) -> None:
        """Report all symbols: those of a library together, at the function that the operator calls."""
        for unit, what in self.own:
            undefined = what.startswith("undefined")
            faults.error(
                f"{unit.origin!r} has {'the ' if undefined else ''}{what}: a bundle "
                f"{'calls only its own functions' if undefined else 'has none'}",
                unit.location,
                hint="add an object or a source with its definition to 'objects'"
                if undefined
                else "keep the state in a tensor: 'state' in the manifest",
            )
        for (unit, function), needs in self.called.items():
            others = f" and {len(needs) - 1} other{'s' * (len(needs) > 2)}" if len(needs) > 1 else ""
            text = f"{unit.origin!r} calls {function!r}, which needs {needs[0]}{others}: a bundle has none"
            faults.error(text, unit.location, hint="call a function without state, errno, heap and files")
        for what in self.unknown:
            faults.error(f"the generated code of model {self.model.name!r} has {what}", self.model.location)

    def is_constant(self, section: Section, objects: Sequence[tuple[str, int]]) -> bool:
        """Whether a section has only constants of the C library."""
        own = {name for unit in self.units for name in unit.member.stateful_symbols}
        complete = sum(size for _, size in objects) == section.size
        return bool(objects) and complete and all(name in _VOLATILE - own for name, _ in objects)

    def shown(self, symbol: str) -> str:
        """Return the name of a symbol in the source."""
        prefix = CNames(self.model.name).operator("")
        return symbol.removeprefix(prefix)

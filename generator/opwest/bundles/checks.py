# SPDX-License-Identifier: Apache-2.0
"""The refusals: operators that an image cannot contain, before compilation and after the link."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence

from opwest.base.diagnostics import Diagnostics, Location
from opwest.bundles.image import CompileUnit, named_symbols
from opwest.bundles.toolchain import Libraries
from opwest.model.types.builds import TargetBuild
from opwest.model.types.c_names import CNames
from opwest.model.types.model import Model
from opwest.objects.elf import SHF_ALLOC, SHF_TLS, SHF_WRITE, SHT_REL, SHT_RELA, UNDEFINED, Elf, Section, parse_elf
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
            faults.error(
                f"operator {operator.name!r} uses functions of TVM's runtime, which a bundle cannot call",
                operator.location,
                expected="an operator without a workspace of TVM",
            )
    for source in build.sources:
        if source.compiled and "state" in source.permits:
            faults.error(
                f"{str(source.path)!r} may have writable state ('stateful: true'): a bundle has none",
                Location(model.manifest, source.line, source.column),
                hint="keep the state in a tensor: 'state' in the manifest",
            )
    for device in model.devices:
        if device.handle is not None:
            faults.error(
                f"device {device.name!r} has a handle of type {device.handle.type!r}, which a bundle cannot declare",
                device.location,
                expected="a device of the devicetree: 'const struct device *'",
            )
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
    """Report the effects of compiled sources, as `opwest check` reports those of objects.

    Return the reported functions, each with the file that calls it.
    """
    known: set[tuple[str, str]] = set()
    permits = {str(source.path): source.permits for source in build.sources}
    for unit in units:
        if unit.origin in permits:
            for reason in effects(unit.member, Link(build.libc, permits=permits[unit.origin])):
                faults.error(reason.message(unit.origin), unit.location, expected=reason.expected, hint=reason.hint)
                known.add((unit.origin, reason.symbol))
    return known


def check_linked(
    elf: Elf,
    model: Model,
    units: Sequence[CompileUnit],
    libraries: Libraries,
    known: Collection[tuple[str, str]],
    faults: Diagnostics,
) -> None:
    """Report undefined symbols, writable data and constructors of the relocatable object, each at its operator.

    `known` are functions that are reported already, with the files that call them.
    """
    blame = _Blame(model, units, libraries, known)
    for symbol in _needed(elf):
        blame.add(symbol, f"undefined symbol {blame.shown(symbol)!r}")
    for section, objects in _writable(elf):
        if blame.is_constant(section, objects):
            continue
        what = "thread-local data" if section.flags & SHF_TLS else "writable data"
        if not objects:
            faults.error(
                f"the image has {section.size} bytes of {what} in {section.name!r}: a bundle has none", model.location
            )
        for name, size in objects:
            blame.add(name, f"{what} {blame.shown(name)!r} ({size} bytes)")
    blame.report(faults)
    for unit in units:
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
    names = named_symbols(elf)
    by_number = {raw.number: (name, raw) for name, raw in names}
    needed = set()
    for number in _referenced(elf):
        name, raw = by_number.get(number, ("", None))
        if raw is not None and raw.section == UNDEFINED and raw.info >> 4 != _WEAK and name:
            needed.add(name)
    return sorted(needed)


def _referenced(elf: Elf) -> Iterator[int]:
    """Yield the numbers of the symbols of relocations in sections in memory."""
    wide = elf.layout.bits == 64
    for section in elf.sections:
        if section.kind not in (SHT_REL, SHT_RELA) or not 0 < section.info < len(elf.sections):
            continue
        if not elf.sections[section.info].flags & SHF_ALLOC:
            continue
        addend = "" if section.kind == SHT_REL else "q" if wide else "i"
        row = struct.Struct(elf.layout.order + ("QQ" if wide else "II") + addend)
        data = elf.data(section)
        for fields in row.iter_unpack(data[: len(data) // row.size * row.size]):
            yield fields[1] >> 32 if wide else fields[1] >> 8


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

    def __init__(
        self, model: Model, units: Sequence[CompileUnit], libraries: Libraries, known: Collection[tuple[str, str]]
    ) -> None:
        self.known = known
        self.model = model
        self.units = units
        self.libraries = libraries
        self.defined = {name: unit for unit in units for name in unit.member.defined}
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
            faults.error(
                f"{unit.origin!r} calls {function!r}, which needs {needs[0]}{others}: a bundle has none",
                unit.location,
                hint="call a function without state, errno, heap and files",
            )
        for what in self.unknown:
            faults.error(f"the generated code of model {self.model.name!r} has {what}", self.model.location)

    def is_constant(self, section: Section, objects: Sequence[tuple[str, int]]) -> bool:
        """Whether a section has only constants of the C library."""
        own = {name for unit in self.units for name in unit.member.stateful_symbols}
        foreign = {name for name, _ in objects} - own
        complete = sum(size for _, size in objects) == section.size
        return bool(objects) and complete and foreign == {name for name, _ in objects} and foreign <= _VOLATILE

    def shown(self, symbol: str) -> str:
        """Return the name of a symbol in the source."""
        prefix = CNames(self.model.name).operator("")
        return symbol.removeprefix(prefix)

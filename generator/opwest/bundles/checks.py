# SPDX-License-Identifier: Apache-2.0
"""The refusals: operators that an image cannot contain, before compilation and after the link."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from opwest.bundles.image import Unit
from opwest.bundles.libraries import Libraries
from opwest.bundles.linked import named_symbols
from opwest.diagnostics import Diagnostics, Location
from opwest.model.builds import TargetBuild
from opwest.model.c_names import CNames
from opwest.model.model import Model
from opwest.objects.elf import SHF_ALLOC, SHF_TLS, SHF_WRITE, SHT_REL, SHT_RELA, UNDEFINED, Elf, Section

_READ_ONLY = (".data.rel.ro", ".data.rel.local.DW.ref", ".got", ".igot", ".opwest_bundle")
_START = (".init_array", ".preinit_array", ".fini_array", ".ctors", ".dtors")
_ERRNO = ("__errno", "_impure_ptr", "errno")
_WEAK = 2


def check_model(model: Model, build: TargetBuild, faults: Diagnostics) -> None:
    """Report what is known before compilation."""
    for operator in model.operators:
        if operator.stateful:
            faults.error(
                f"operator {operator.name!r} has writable state: a bundle has none",
                operator.location,
                expected="operators without 'stateful: true'",
                hint="keep the state in a tensor: 'states' in the manifest",
            )
        elif operator.uses_tvm:
            faults.error(
                f"operator {operator.name!r} uses functions of TVM's runtime, which a bundle cannot call",
                operator.location,
                expected="an operator without a workspace of TVM",
            )
    for source in build.sources:
        if source.compiled and source.permits_state:
            faults.error(
                f"{str(source.path)!r} may have writable state ('stateful: true'): a bundle has none",
                Location(model.manifest, source.line, source.column),
                hint="keep the state in a tensor: 'states' in the manifest",
            )
    for device in model.devices:
        if device.handle is not None:
            faults.error(
                f"device {device.name!r} has a handle of type {device.handle.type!r}, which a bundle cannot declare",
                device.location,
                expected="a device of the devicetree: 'const struct device *'",
            )
    if not model.suite.vectors:
        faults.error(
            f"model {model.name!r} has no golden vectors: firmware refuses a bundle without them",
            model.location,
            expected="tests: {vectors: FILE.npz}",
            hint="store the inputs and expected outputs of some runs in an .npz file",
        )


def check_linked(elf: Elf, model: Model, units: Sequence[Unit], libraries: Libraries, faults: Diagnostics) -> None:
    """Report undefined symbols, writable data and constructors of the relocatable object, each at its operator."""
    blame = _Blame(model, units, libraries)
    for symbol in _needed(elf):
        blame.report(symbol, f"undefined symbol {symbol!r}", faults, _undefined_hint(symbol))
    for section, objects in _writable(elf):
        what = "thread-local data" if section.flags & SHF_TLS else "writable data"
        if not objects:
            faults.error(
                f"the image has {section.size} bytes of {what} in {section.name!r}: a bundle has none", model.location
            )
        for name, size in objects:
            blame.report(name, f"{what} {name!r} ({size} bytes)", faults, _data_hint(name))
    for section in elf.sections:
        if section.flags & SHF_ALLOC and section.size and section.name.startswith(_START):
            blame.report_section(section.name, faults)


def _needed(elf: Elf) -> list[str]:
    """Return the undefined symbols that a relocation of the image refers to, without weak ones, sorted."""
    names = named_symbols(elf)
    by_number = {raw.number: (name, raw) for name, raw in names}
    found = set()
    for number in _referenced(elf):
        name, raw = by_number.get(number, ("", None))
        if raw is not None and raw.section == UNDEFINED and raw.info >> 4 != _WEAK and name:
            found.add(name)
    return sorted(found)


def _referenced(elf: Elf) -> Iterator[int]:
    """Yield the numbers of the symbols of relocations in sections in memory."""
    wide = elf.layout.bits == 64
    for section in elf.sections:
        if section.kind not in (SHT_REL, SHT_RELA) or not 0 < section.info < len(elf.sections):
            continue
        if not elf.sections[section.info].flags & SHF_ALLOC:
            continue
        row = struct.Struct(elf.layout.order + ("QQ" if wide else "II") + _addend(section, wide=wide))
        data = elf.data(section)
        for fields in row.iter_unpack(data[: len(data) // row.size * row.size]):
            yield fields[1] >> 32 if wide else fields[1] >> 8


def _addend(section: Section, *, wide: bool) -> str:
    return "" if section.kind == SHT_REL else "q" if wide else "i"


def _writable(elf: Elf) -> Iterator[tuple[Section, list[tuple[str, int]]]]:
    """Yield the sections of writable data with the names and sizes of their objects, the largest first."""
    symbols = named_symbols(elf)
    for index, section in enumerate(elf.sections):
        if not (section.flags & SHF_ALLOC and section.flags & SHF_WRITE and section.size):
            continue
        if section.name.startswith((*_READ_ONLY, *_START)):
            continue
        found = {name: raw.size for name, raw in symbols if name and raw.section == index and raw.size}
        yield section, sorted(found.items(), key=lambda row: (-row[1], row[0]))


def _undefined_hint(symbol: str) -> str:
    if symbol.startswith(("TVM", "halide_")):
        return "functions of TVM's and Halide's runtimes are not part of bundles: compile the operator without them"
    return "add an object or a source with its definition to the operator's entry of 'objects'"


def _data_hint(symbol: str) -> str:
    if symbol in _ERRNO or symbol.startswith(("impure", "_impure")):
        return "the function of the C library writes errno or keeps state: call another one"
    return "keep the state in a tensor: 'states' in the manifest"


class _Blame:
    """Finds the operators that need a symbol."""

    def __init__(self, model: Model, units: Sequence[Unit], libraries: Libraries) -> None:
        self.model = model
        self.units = units
        self.libraries = libraries
        self.defined = {name: unit for unit in units for name in unit.member.defined}

    def report(self, symbol: str, what: str, faults: Diagnostics, hint: str) -> None:
        """Report a symbol at each object of the manifest that needs or defines it."""
        shown = self._shown(symbol)
        found = False
        for unit in self.units:
            if unit.origin is None:
                continue
            if symbol in unit.member.undefined or any(
                one.name == symbol and one.section != "undefined" for one in unit.member.symbols
            ):
                chain: list[str] | None = [symbol]
            else:
                chain = self.libraries.path_to(symbol, unit.member.undefined_strong, self.defined)
            if chain is None:
                continue
            found = True
            through = f", through {' and '.join(repr(name) for name in chain[:-1][:3])}" if len(chain) > 1 else ""
            faults.error(
                f"{unit.origin!r} needs {what.replace(symbol, shown)}{through}: a bundle cannot contain it"
                if "undefined" not in what
                else f"{unit.origin!r}: {what.replace(symbol, shown)}{through}: a bundle calls only its own functions",
                unit.location,
                hint=hint,
            )
        if not found:
            faults.error(f"{what} in the generated code of model {self.model.name!r}", self.model.location, hint=hint)

    def report_section(self, section: str, faults: Diagnostics) -> None:
        """Report a section that runs at the start of a program."""
        for unit in self.units:
            if unit.origin is not None and section.encode() in unit.member.content:
                faults.error(
                    f"{unit.origin!r} has functions that run when a program starts, in {section!r}: a bundle has none",
                    unit.location,
                    hint="initialise at the first call, or in constants",
                )

    def _shown(self, symbol: str) -> str:
        prefix = CNames(self.model.name).operator("")
        return symbol.removeprefix(prefix)

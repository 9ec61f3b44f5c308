# SPDX-License-Identifier: Apache-2.0
"""Compare the signature of a compiled function with the operator that a manifest declares.

Compared are the kind, size and sign of values, and the types that pointers refer to. Equal are: `char`
and any 8-bit integer; `void *` and any pointer; `_Bool` and `uint8_t`; an enumeration and an integer of its
size; integers of one size and sign with any name (`long` and `int32_t` on a 32-bit target); a half-precision
float and `uint16_t` behind a pointer (the bits of a float16). `const` is a difference only for outputs,
which the function must write. `model/checks/prototypes.py` warns of inputs without `const`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from opwest.base.frozen_dataclass import dataclass
from opwest.objects import dwarf_units as units_
from opwest.objects.dwarf_types import DESCRIPTOR, NORMAL, DwarfSignature, DwarfType, Types
from opwest.objects.dwarf_units import Abbreviation, Budget, DebugData, Entry, Unit, read_entry, string
from opwest.objects.elf import SHF_COMPRESSED, STT_FUNC, STT_NOTYPE, Elf, StringTable, parse_elf
from opwest.objects.facts import Member, ObjectError
from opwest.objects.relocations import Relocations

_STATUS_SIZE = 4
# llvm/include/llvm/BinaryFormat/Dwarf.def
_CONVENTIONS = {
    0xC0: "vectorcall", 0xC1: "ms_abi", 0xC2: "sysv_abi", 0xC3: "aapcs", 0xC4: "aapcs-vfp", 0xC9: "preserve_most",
    0xCA: "preserve_all", 0xCB: "regcall",
}  # fmt: skip
_AAPCS = (0xC3, 0xC4)
"""Differ only in floats passed by value."""
C_SCALARS: dict[str, DwarfType] = {
    **{f"int{8 * n}_t": DwarfType("integer", n, True, f"int{8 * n}_t") for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}_t": DwarfType("integer", n, False, f"uint{8 * n}_t") for n in (1, 2, 4, 8)},
    "char": DwarfType("integer", 1, None, "char"),
    "signed char": DwarfType("integer", 1, True, "signed char"),
    "unsigned char": DwarfType("integer", 1, False, "unsigned char"),
    "short": DwarfType("integer", 2, True, "short"),
    "unsigned short": DwarfType("integer", 2, False, "unsigned short"),
    "int": DwarfType("integer", 4, True, "int"),
    "unsigned": DwarfType("integer", 4, False, "unsigned"),
    "unsigned int": DwarfType("integer", 4, False, "unsigned int"),
    "_Float16": DwarfType("float", 2, True, "_Float16"),
    "__fp16": DwarfType("float", 2, True, "__fp16"),
    "float": DwarfType("float", 4, True, "float"),
    "double": DwarfType("float", 8, True, "double"),
    "bool": DwarfType("bool", 1, False, "bool"),
    "_Bool": DwarfType("bool", 1, False, "_Bool"),
    "void": DwarfType("void", 0, None, "void"),
}
"""C types whose size no target changes."""


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """A parameter as declared by the manifest."""

    name: str
    c_type: str
    """`const int8_t *`, `int32_t`, `const struct device *`; unknown names fit any type of that name."""
    what: str = ""
    """The description in messages: `int8 tensor`; empty if only the C type is known."""

    @property
    def words(self) -> str:
        """The description with the C type: `int8 tensor (const int8_t *)`, `int32_t`."""
        return f"{self.what} ({self.c_type})" if self.what else self.c_type


def parse_c_type(text: str) -> DwarfType:
    """Parse a C type made of qualifiers, a name and stars."""
    levels = [part.split() for part in text.split("*")]
    base = [word for word in levels[0] if word not in ("const", "volatile", "restrict")]
    name = " ".join(base)
    scalar = C_SCALARS.get(name)
    kind = DwarfType("struct", 0, None, name, frozenset({name})) if scalar is None else scalar
    result = DwarfType(kind.kind, kind.size, kind.signed, kind.name, kind.names, "const" in levels[0])
    for level in levels[1:]:
        result = DwarfType("pointer", const="const" in level, target=result)
    return result


def compare(signature: DwarfSignature, returns: str, arguments: Sequence[DeclaredParameter]) -> list[str]:
    """Return the differences between a function and its declaration; empty if calls are compatible.

    `returns` is `status`, `void` or the C type of a value.
    """
    differences = _return_differences(signature.returns, returns)
    floats = any(type_.kind == "float" for type_ in (signature.returns, *signature.parameters))
    if signature.convention != NORMAL and (floats or signature.convention not in _AAPCS):
        name = _CONVENTIONS.get(signature.convention, f"{signature.convention:#x} (DW_AT_calling_convention)")
        differences.append(f"its calling convention is {name}, expected that of C")
    count = len(signature.parameters)
    if signature.variadic:
        differences.append(f"the function takes variable arguments: {signature}")
    elif count != len(arguments):
        declared = f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}"
        differences.append(f"{declared} declared, the function takes {count}: {signature}")
    else:
        for number, (expected, seen) in enumerate(zip(arguments, signature.parameters, strict=True), start=1):
            problem = _parameter_difference(parse_c_type(expected.c_type), seen)
            if problem:
                differences.append(f"argument {number} {expected.name!r} is {expected.words}, {problem}")
    return differences


def _return_differences(returns: DwarfType, declared: str) -> list[str]:
    if returns.kind == "unknown" or returns.kind == declared == "void":
        return []
    if declared == "void":
        return [f"declared with `returns: void`, the function returns {returns}"]
    if declared != "status":
        expected = parse_c_type(declared)
        fits = returns.kind != "void" and _values_alike(expected, returns)
        return [] if fits else [f"declared to return the value {declared}, the function returns {returns}"]
    if returns.kind == "void":
        return ["declared to return a status (int32_t), the function returns void (declare it with `returns: void`)"]
    if returns.kind == "integer" and returns.size in (0, _STATUS_SIZE):
        return []
    return [f"declared to return a status (int32_t), the function returns {returns}"]


def _parameter_difference(expected: DwarfType, seen: DwarfType) -> str | None:
    """Return a description of a parameter that differs, None if it is compatible."""
    takes = f"the function takes {seen}"
    if expected.kind == "pointer" and seen.kind == "pointer" and expected.target and seen.target:
        if not _points_alike(expected.target, seen.target):
            return takes
        written = expected.target.kind not in ("struct", "void", "pointer") and not expected.target.const
        if written and seen.target.const:
            return f"{takes} and does not write it"
        return None
    return None if _values_alike(expected, seen) else takes


def _points_alike(expected: DwarfType, seen: DwarfType) -> bool:
    """Whether pointers to two types are interchangeable."""
    if "void" in (expected.kind, seen.kind) or "unknown" in (expected.kind, seen.kind):
        return True
    if expected.kind == "pointer" and seen.kind == "pointer" and expected.target and seen.target:
        return _points_alike(expected.target, seen.target)
    half = seen.kind == "float" and seen.size == 2
    if half and expected.kind == "integer" and expected.size == 2 and expected.signed is False:
        return True
    return _values_alike(expected, seen)


def _values_alike(expected: DwarfType, seen: DwarfType) -> bool:
    """Whether two values have the same kind, size and sign."""
    if seen.kind == "unknown":
        return True
    if "bool" in (expected.kind, seen.kind):
        unsigned = expected.signed is not True and seen.signed is not True
        return {expected.kind, seen.kind} <= {"bool", "integer"} and expected.size == seen.size == 1 and unsigned
    if expected.kind == "struct":  # an unknown type name
        return expected.name in seen.names or expected.name == seen.name
    if expected.kind != seen.kind:
        return False
    if expected.size and seen.size and expected.size != seen.size:
        return False
    return (
        expected.kind != "integer" or expected.signed is None or seen.signed is None or expected.signed == seen.signed
    )


NOT_CHECKED = "signature not checked: "
_ABSENT = "the object has no debug information (compile with -g)"
NO_DEBUG_INFORMATION = f"{NOT_CHECKED}{_ABSENT}"
_INFO = ".debug_info"
_LOCATIONS = (".debug_loclists", ".debug_loc")
_SECTIONS = (_INFO, ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets")
_COMPRESSED = "the debug information is compressed (compile with -gz=none)"
_MAX_CHAIN_LENGTH = 8
_T = TypeVar("_T")
_MAX_BYTES = 1 << 28


def signatures(member: Member, *, names: bool = False) -> dict[str, DwarfSignature] | str:
    """Return the signatures of the global functions by symbol; with `names`, including parameter names.

    Functions without debug information (assembly, other members of a partial link) are absent. Without
    usable debug information the result is a sentence that starts with "signature not checked: ".
    """
    requested = {n for n, s in member.defined.items() if s.kind == "function" or s.section == "code"}

    def read(elf: Elf) -> dict[str, DwarfSignature]:
        wanted = _Wanted(requested, _same_addresses(elf, requested))
        described: dict[str, DwarfSignature] = {}
        for data in _debug_data(elf):
            for name, signature in _section_signatures(data, wanted, names, elf.machine_name):
                described.setdefault(name, signature)
        return described

    return _without_errors(member, read)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The functions whose signatures are read."""

    symbols: set[str]
    """Global functions."""
    aliases: Mapping[str, set[str]]
    """By symbol, the global functions at its address."""

    def of(self, linkage: str, name: str, external: bool) -> Iterator[str]:
        """Yield the symbols that an entry with two names (`DW_AT_linkage_name` or empty, `DW_AT_name`) describes.

        Zig defines an exported function as a local symbol (`file.name`) with a global one at the same address. The
        name alone is no proof: that of a C++ function (`conv` of `_ZN3foo4convEv`) can be another function's symbol.
        """
        symbol = linkage or name
        if symbol in self.symbols and external:
            yield symbol
        if name in self.aliases.get(linkage, ()) and name != linkage:
            yield name


def _same_addresses(elf: Elf, requested: set[str]) -> dict[str, set[str]]:
    """Return, by symbol, the requested symbols with its section and value."""
    names = elf.symbol_names()
    places: dict[tuple[int, int], set[str]] = {}
    every: list[tuple[str, tuple[int, int]]] = []
    for raw in elf.symbols():
        if raw.section > 0 and raw.kind in (STT_NOTYPE, STT_FUNC) and raw.name:
            name = names.name(raw.name)
            place = raw.section, raw.value
            every.append((name, place))
            if name in requested:
                places.setdefault(place, set()).add(name)
    return {name: places[place] for name, place in every if place in places}


def producers(member: Member) -> tuple[str, ...] | str:
    """Return the producers of the units (compilers, often with their options), or the reason why they are unknown."""

    def read(elf: Elf) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for data in _debug_data(elf):
            for unit in units_.read_units(data):
                root = read_entry(data, unit, unit.first)
                value = root.attributes.get(units_.AT_PRODUCER) if root else None
                names[string(data, unit, value) if value else ""] = None
        return tuple(names)

    seen = _without_errors(member, read)
    return seen.removeprefix(NOT_CHECKED) if isinstance(seen, str) else seen


def _without_errors(member: Member, read: Callable[[Elf], _T]) -> _T | str:
    """Return what `read` finds in an object, or a sentence that starts with "signature not checked: "."""
    try:
        return read(parse_elf(member.content))
    except ObjectError as fault:
        return f"{NOT_CHECKED}{fault.message}"
    except RecursionError:
        return f"{NOT_CHECKED}types are nested too deeply"


def _debug_data(elf: Elf) -> Iterator[DebugData]:
    """Yield the data of each `.debug_info`; raise ObjectError if there is none."""
    names = {name: [i for i, s in enumerate(elf.sections) if s.name == name] for name in _SECTIONS}
    if not names[_INFO]:
        if any(s.name.startswith(".zdebug_info") for s in elf.sections):
            raise ObjectError(_COMPRESSED)
        raise ObjectError(units_.SPLIT if any(s.name == ".debug_info.dwo" for s in elf.sections) else _ABSENT)
    used = [elf.sections[i] for indexes in names.values() for i in indexes]
    if any(s.flags & SHF_COMPRESSED for s in used):
        raise ObjectError(_COMPRESSED)
    if sum(s.size for s in used) > _MAX_BYTES:
        raise ObjectError(f"the object has more than {_MAX_BYTES >> 20} MiB of debug information")
    relocations = Relocations(elf)
    parts = {
        name: relocations.patched(indexes[0]) if indexes else b"" for name, indexes in names.items() if name != _INFO
    }
    # Sections that overlap bring no more steps than the file has bytes.
    size = sum(elf.sections[i].size for i in names[_INFO]) + len(parts[".debug_abbrev"])
    budget = Budget(4 * min(size, len(elf.content)) + (1 << 20))
    tables: dict[tuple[int, int, int, int], dict[int, Abbreviation]] = {}
    located = [next((elf.data(s) for s in elf.sections if s.name == name), b"") for name in _LOCATIONS]
    for index in names[_INFO]:
        yield DebugData(
            relocations.patched(index),
            parts[".debug_abbrev"],
            StringTable(parts[".debug_str"], ".debug_str"),
            StringTable(parts[".debug_line_str"], ".debug_line_str"),
            parts[".debug_str_offsets"],
            (located[0], located[1]),
            elf.layout.order,
            budget,
            tables,
        )


def _section_signatures(
    data: DebugData, wanted: _Wanted, with_names: bool, machine: str
) -> Iterator[tuple[str, DwarfSignature]]:
    """Yield the signatures of one `.debug_info`, entries with code first."""
    units = units_.read_units(data)
    types = Types(data, units, machine)
    later: list[tuple[str, DwarfSignature]] = []
    for unit in units:
        for offset in units_.subprograms(data, unit):
            chain = _chain(data, unit, units, offset)
            if units_.AT_DECLARATION in chain[0][1].attributes:
                continue
            external = any(units_.AT_EXTERNAL in entry.attributes for _, entry in chain)
            attributes = chain[0][1].attributes
            # Only a function whose symbol differs from its name in the source has a linkage name.
            linkage = _text(data, chain, units_.AT_LINKAGE_NAME) or _text(data, chain, units_.AT_MIPS_LINKAGE_NAME)
            for name in wanted.of(linkage, _text(data, chain, units_.AT_NAME), external):
                signature = _signature(data, name, chain, types, with_names)
                if units_.AT_LOW_PC in attributes or units_.AT_RANGES in attributes:
                    yield name, signature
                else:
                    later.append((name, signature))
    yield from later


def _chain(data: DebugData, unit: Unit, units: list[Unit], offset: int) -> list[tuple[Unit, Entry]]:
    """Return an entry and those that it completes: the declaration, or the abstract instance."""
    chain: list[tuple[Unit, Entry]] = []
    place: tuple[Unit, int] | None = (unit, offset)
    while place is not None and len(chain) < _MAX_CHAIN_LENGTH:
        unit, offset = place
        entry = read_entry(data, unit, offset)
        if entry is None:
            break
        chain.append((unit, entry))
        origin = entry.attributes.get(units_.AT_ABSTRACT_ORIGIN) or entry.attributes.get(units_.AT_SPECIFICATION)
        place = units_.reference(unit, units, origin) if origin else None
    return chain


def _text(data: DebugData, chain: list[tuple[Unit, Entry]], attribute: int) -> str:
    """Return the text of an attribute of the first entry that has it; empty without one."""
    for unit, entry in chain:
        value = entry.attributes.get(attribute)
        if value is not None:
            return string(data, unit, value)
    return ""


def _type(data: DebugData, unit: Unit, entry: Entry, types: Types) -> DwarfType:
    """Return the type of an entry, or else of the entry that it completes."""
    for owner, described in _chain(data, unit, types.units, entry.offset):
        if units_.AT_TYPE in described.attributes:
            return types.of(owner, described)
    return types.of(unit, entry)


def _passed(data: DebugData, unit: Unit, entry: Entry, type_: DwarfType) -> DwarfType:
    """Return the C type of a parameter. Fortran describes the type of the value although its address is passed."""
    if unit.language not in units_.FORTRAN:
        return DwarfType("other", name=f"an array of {type_} by value") if type_.is_array else type_
    if type_.name == "an unnamed struct":
        return DESCRIPTOR
    from opwest.objects.dwarf_locations import is_by_reference  # of Fortran only

    is_address = True if type_.is_array else is_by_reference(data, unit, entry)
    if is_address is None and type_.kind in ("integer", "float", "bool", "struct"):
        return DwarfType("unknown", name=f"{type_}, by value or by reference")
    return DwarfType("pointer", unit.address, target=type_) if is_address and type_ != DESCRIPTOR else type_


def _signature(
    data: DebugData, name: str, chain: list[tuple[Unit, Entry]], types: Types, with_names: bool
) -> DwarfSignature:
    parameters: list[DwarfType] = []
    names: list[str] = []
    variadic = False
    for unit, entry in chain:
        for child in units_.children(data, unit, entry):
            tag = child.abbreviation.tag
            if tag == units_.TAG_PARAMETER:
                type_ = _type(data, unit, child, types)
                parameters.append(_passed(data, unit, child, type_))
                if with_names:
                    names.append(_text(data, _chain(data, unit, types.units, child.offset), units_.AT_NAME))
            elif tag == units_.TAG_UNSPECIFIED_PARAMETERS:
                variadic = True
        if parameters or variadic:
            break
    conventions = (e.attributes.get(units_.AT_CALLING_CONVENTION) for _, e in chain)
    convention = next((value.number for value in conventions if value is not None), NORMAL)
    returns = _type(data, *chain[0], types)
    records_const = chain[0][0].language not in units_.FROM_ONE
    return DwarfSignature(name, returns, tuple(parameters), variadic, tuple(names), convention, records_const)

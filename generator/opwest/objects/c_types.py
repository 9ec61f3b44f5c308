# SPDX-License-Identifier: Apache-2.0
"""The types that declarations in C denote, with the sizes that one target gives them.

They are those of `dwarf_types`, so that a header and debug information describe a function alike. Sizes and alignments
are those of the ABIs of GCC's targets; a size of 0 is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.dwarf_signatures import C_SCALARS
from opwest.objects.dwarf_types import VOID, DwarfType
from opwest.objects.facts import Abi


@dataclass(frozen=True, slots=True)
class DataModel:
    """What a target determines of C types."""

    macros: tuple[str, ...] = ()
    """Those that name the machine."""
    pointer: int = 0
    """Bytes of a pointer, `long` and `size_t`; 0: they differ between targets."""
    largest_alignment: int = 16
    short_enums: bool | None = False
    """None: unknown."""


ANY_MODEL = DataModel()
"""For sources, which are compiled for every target."""
SEVERAL_MODELS = DataModel(short_enums=None)
"""For objects of targets with different models."""
_MACROS: dict[str, tuple[str, ...]] = {
    "arm": ("__arm__", "__ARM_EABI__", "__thumb__"),
    "aarch64": ("__aarch64__", "__LP64__"),
    "x86-64": ("__x86_64__", "__LP64__"),
    "i386": ("__i386__",),
    "riscv": ("__riscv",),
}


def data_model(abi: Abi) -> DataModel:
    """Return the data model of an object."""
    alignment = {"i386": 4, "arm": 8}.get(abi.machine, 16)
    short = abi.machine == "arm" and abi.enum_size != "int"  # the default of AAPCS
    return DataModel(_MACROS.get(abi.machine, ()), abi.bits // 8, alignment, short)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array; DWARF's types have it only as the target of a pointer."""

    element: CType
    length: int | None
    """None: unknown."""


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function."""

    returns: CType
    parameters: tuple[CType, ...]
    names: tuple[str, ...]
    variadic: bool = False
    declares_parameters: bool = True
    """False for `()`."""


CType = DwarfType | ArrayType | FunctionType


@dataclass(frozen=True, slots=True)
class Layout:
    """The size and the alignment of a type; 0 if unknown."""

    size: int
    align: int


def layout_of(type_: CType, model: DataModel) -> Layout:
    """Return the layout of a type."""
    if isinstance(type_, ArrayType):
        element = layout_of(type_.element, model)
        return Layout(element.size * (type_.length or 0), element.align)
    if isinstance(type_, FunctionType):
        return Layout(0, 0)
    if type_.kind == "struct":
        return Layout(type_.size, type_.align)
    return Layout(type_.size, min(type_.size, model.largest_alignment))


def record_layout(members: Sequence[Layout], *, is_union: bool, packed: bool) -> Layout:
    """Return the layout of a structure or union; unknown if that of a member is."""
    size, largest = 0, 1
    for member in members:
        if not member.size or not member.align:
            return Layout(0, 0)
        align = 1 if packed else member.align
        largest = max(largest, align)
        size = max(size, member.size) if is_union else -(-size // align) * align + member.size
    return Layout(-(-size // largest) * largest, largest)


def points_to(target: CType, model: DataModel) -> DwarfType:
    """Return a pointer; one to an array refers to the elements, as in `dwarf_types`."""
    while isinstance(target, ArrayType):
        target = target.element
    if isinstance(target, FunctionType):
        target = DwarfType("function", name="function")
    return DwarfType("pointer", model.pointer, target=target)


def decayed(type_: CType, model: DataModel) -> DwarfType:
    """Return the type of a parameter: arrays and functions are passed as pointers."""
    if isinstance(type_, ArrayType):
        return points_to(type_.element, model)
    return points_to(type_, model) if isinstance(type_, FunctionType) else type_


def dimensions(type_: CType) -> tuple[int, ...] | None:
    """Return the dimensions of an array; None if one is unknown, or for another type."""
    sizes: list[int] = []
    while isinstance(type_, ArrayType):
        if type_.length is None:
            return None
        sizes.append(type_.length)
        type_ = type_.element
    valid = 0 < len(sizes) <= 16 and all(0 < size < 1 << 31 for size in sizes)
    return tuple(sizes) if valid else None


def qualified(type_: CType) -> CType:
    """Return a type with `const`; an array has that of its elements."""
    if isinstance(type_, ArrayType):
        return replace(type_, element=qualified(type_.element))
    return type_ if isinstance(type_, FunctionType) else replace(type_, const=True)


def named(type_: CType, name: str) -> CType:
    """Return a type with the name of a typedef."""
    if not isinstance(type_, DwarfType) or type_.kind == "pointer":
        return type_
    return replace(type_, name=name, names=type_.names | {name})


_WORDS = ("unsigned", "signed", "short", "long", "char", "int", "float", "double", "_Bool", "bool", "void")


def base_type(words: Sequence[str], model: DataModel) -> DwarfType | None:
    """Return the type of type words in any order (`long unsigned int`); None if a word is another name."""
    if any(word not in _WORDS for word in words):
        return None
    longs = list(words).count("long")
    kinds = [w for w in words if w in ("char", "float", "double", "_Bool", "bool", "void")]
    if kinds and kinds[0] not in ("char", "double"):
        return VOID if kinds == ["void"] else C_SCALARS[kinds[0]]
    if kinds == ["double"]:
        return DwarfType("float", 0, True, "long double") if longs else C_SCALARS["double"]
    sign = "unsigned " if "unsigned" in words else ""
    if kinds == ["char"]:
        return C_SCALARS[sign + "char" if sign else "signed char" if "signed" in words else "char"]
    if "short" in words:
        return C_SCALARS[f"{sign}short"]
    if longs > 1:
        return _integer(8, f"{sign}long long")
    if longs:
        return _integer(model.pointer, f"{sign}long")
    return C_SCALARS[f"{sign}int"]


def _integer(size: int, name: str) -> DwarfType:
    return DwarfType("integer", size, not name.startswith("unsigned"), name, frozenset({name}))


def library_type(name: str, model: DataModel) -> DwarfType | None:
    """Return a type of the C library's headers, or of CMSIS; None for another name."""
    known = C_SCALARS.get(name)
    if known is not None:
        return replace(known, names=frozenset({name})) if known.kind != "void" else VOID
    if name in ("size_t", "ssize_t", "ptrdiff_t", "intptr_t", "uintptr_t"):
        unsigned = name in ("size_t", "uintptr_t")
        word = "long" if model.pointer != 4 else "int"
        alias = f"unsigned {word}" if unsigned else word
        size = model.pointer
        return DwarfType("integer", size, not unsigned, name, frozenset({name, alias}))
    return _LIBRARY.get(name)


def _alias(name: str, of: str) -> DwarfType:
    return replace(C_SCALARS[of], name=name, names=frozenset({name, of}))


_LIBRARY = {
    **{f"{sign}int_{kind}{8 * n}_t": _alias(f"{sign}int_{kind}{8 * n}_t", f"{sign}int{8 * n}_t")
       for sign in ("", "u") for kind in ("least",) for n in (1, 2, 4, 8)},
    **{name: _alias(name, of) for name, of in (
        ("intmax_t", "int64_t"), ("uintmax_t", "uint64_t"), ("float32_t", "float"), ("float64_t", "double"),
        ("float16_t", "_Float16"), ("q7_t", "int8_t"), ("q15_t", "int16_t"), ("q31_t", "int32_t"), ("q63_t", "int64_t"),
    )},
    "__bf16": DwarfType("float", 2, True, "__bf16", frozenset({"__bf16"})),
}  # fmt: skip

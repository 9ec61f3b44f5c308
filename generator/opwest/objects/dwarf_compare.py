# SPDX-License-Identifier: Apache-2.0
"""Compare the signature of a compiled function with the operator that a manifest declares.

Compared are the kind, size and sign of values, and the types that pointers refer to. Equal are: `char`
and any 8-bit integer; `void *` and any pointer; `_Bool` and `uint8_t`; an enumeration and an integer of its
size; integers of one size and sign with any name (`long` and `int32_t` on a 32-bit target); a half-precision
float and `uint16_t` behind a pointer (the bits of a float16). `const` is a difference only for outputs,
which the function must write. `model/prototypes.py` warns of inputs without `const`.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwest.objects.dwarf_types import NORMAL, DwarfSignature, DwarfType
from opwest.records import dataclass

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
    found = _return_differences(signature.returns, returns)
    floats = any(type_.kind == "float" for type_ in (signature.returns, *signature.parameters))
    if signature.convention != NORMAL and (floats or signature.convention not in _AAPCS):
        name = _CONVENTIONS.get(signature.convention, f"{signature.convention:#x} (DW_AT_calling_convention)")
        found.append(f"its calling convention is {name}, expected that of C")
    count = len(signature.parameters)
    if signature.variadic:
        found.append(f"the function takes variable arguments: {signature}")
    elif count != len(arguments):
        declared = f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}"
        found.append(f"{declared} declared, the function takes {count}: {signature}")
    else:
        for number, (expected, seen) in enumerate(zip(arguments, signature.parameters, strict=True), start=1):
            problem = _parameter_difference(parse_c_type(expected.c_type), seen)
            if problem:
                found.append(f"argument {number} {expected.name!r} is {expected.words}, {problem}")
    return found


def _return_differences(returns: DwarfType, declared: str) -> list[str]:
    if returns.kind == "unknown":
        return []
    if declared == "void":
        if returns.kind == "void":
            return []
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
        written = expected.target.kind not in ("struct", "void") and not expected.target.const
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

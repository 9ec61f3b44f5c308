# SPDX-License-Identifier: Apache-2.0
"""The description of the runtime's layouts as a C program that compiles only if the headers agree with it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opwest.render.c.printer import c_type
from opwest.render.records import layout
from opwest.render.records.types import (
    Abi,
    Constant,
    Enumeration,
    FieldType,
    Flags,
    Index,
    Nested,
    Struct,
    Union,
    offsets,
    size_and_alignment,
)


@dataclass(frozen=True)
class Description:
    """The description that is compared with the headers."""

    structs: tuple[Struct, ...] = layout.STRUCTS
    enumerations: tuple[Enumeration, ...] = layout.ENUMERATIONS
    flags: tuple[Flags, ...] = layout.FLAGS
    constants: tuple[Constant, ...] = layout.CONSTANTS


def layout_program(description: Description, abi: Abi) -> str:
    """Return the program. It needs C11 and the warnings about missing initialisers and enumerators as errors."""
    headers = sorted({one.header for one in (*description.structs, *description.constants)})
    lines = ["#include <stddef.h>", "#include <stdint.h>", *(f"#include <{header}>" for header in headers)]
    for struct in description.structs:
        lines += _of_struct(struct, abi)
    for enumeration in description.enumerations:
        lines += _of_enumeration(enumeration)
    for flags in description.flags:
        lines += (_assert(flags.constant(m), f"{1 << bit}U") for bit, m in enumerate(flags.members))
    lines += (_assert(constant.constant, f"{constant.value}U") for constant in description.constants)
    lines.append(_assert(f"OPWEST_TENSOR_ALIGN(5U << {layout.TENSOR_ALIGN_SHIFT})", "32U"))
    return "\n".join([*lines, ""])


def _of_struct(struct: Struct, abi: Abi) -> Iterator[str]:
    yield _assert(f"sizeof({struct.c_type})", str(size_and_alignment(struct, abi)[0]))
    for name, offset in offsets(struct, abi).items():
        yield _assert(f"offsetof({struct.c_type}, {name})", str(offset))
        if type_ := c_type(struct.field(name).type):
            yield _assert(f"_Generic((({struct.c_type} *)0)->{name}, {type_}: 1, default: 0)", "1")
    # An initialiser for every field: one more is an error, one less a warning.
    values = ("{0}" if _is_compound(field.type) else "0" for field in struct.fields)
    yield f"extern const {struct.c_type} whole_{struct.name};"
    yield f"const {struct.c_type} whole_{struct.name} = {{{', '.join(values)}}};"


def _is_compound(type_: FieldType) -> bool:
    """Whether the initialiser of a member is in braces."""
    return isinstance(type_, (Union, Nested)) or (isinstance(type_, Index) and type_.count is not None)


def _of_enumeration(enumeration: Enumeration) -> Iterable[str]:
    names = [enumeration.constant(code) for code in range(len(enumeration.members))]
    cases = " ".join(f"case {name}:" for name in names)
    function = f"cases_{enumeration.c_type.split()[-1]}"
    return [
        *(_assert(name, str(code)) for code, name in enumerate(names)),
        f"int {function}({enumeration.c_type} which);",
        f"int {function}({enumeration.c_type} which)",
        f"{{ switch (which) {{ {cases} return 1; }} return 0; }}",
    ]


def _assert(found: str, expected: str) -> str:
    return f'_Static_assert({found} == {expected}, "{found} is not {expected}");'

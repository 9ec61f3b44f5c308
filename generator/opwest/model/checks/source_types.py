# SPDX-License-Identifier: Apache-2.0
"""Compare operators with the types that their C sources take from typedefs, macros and structures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from opwest.base.diagnostics import Diagnostics
from opwest.base.result import counted
from opwest.model.checks.prototypes import check_types
from opwest.model.inputs.files import Linkable
from opwest.model.types.model import Operator
from opwest.objects.dwarf_signatures import C_SCALARS
from opwest.objects.facts import CSource, ObjectError

Reader = Callable[[PurePosixPath], bytes | None]


def check_source(faults: Diagnostics, operator: Operator, owner: Linkable, read: Reader) -> str | None:
    """Compare an operator with a function of a source, besides the types that C itself has.

    `read` returns the content of a header. Return the reason why a part is not verified, or None.
    """
    item, symbol = owner.item, operator.symbol
    assert isinstance(item, CSource)
    function = owner.c_functions.get(symbol)
    if function is None:
        return f"{owner.name}: not readable without a compiler; compile it with -g, or add 'signatures: [HEADER]'"
    seen = [parameter.base for parameter in function.parameter_types]
    unread = [base for base in seen if base not in C_SCALARS and not base.startswith(("struct ", "union "))]
    has_arrays = any("[" in parameter.text for parameter in function.parameter_types)
    if not unread and not has_arrays and not any(argument.struct for argument in operator.args):
        return None
    if item.language != "C":
        return f"{owner.name}: types of C++ are not read; compile it with -g, or add 'signatures: [HEADER]'"
    from opwest.objects.c_prototypes import read_declarations
    from opwest.objects.c_types import ANY_MODEL

    file, options = PurePosixPath(owner.name), owner.options
    try:
        found = read_declarations(
            {file: item.text}, read, ANY_MODEL, folders=options.include_dirs, defines=options.defines
        ).functions.get(symbol)
    except ObjectError as error:
        return f"{owner.name}: {error.message}"
    if found is None:
        return f"{owner.name}: not readable without a compiler; compile it with -g, or add 'signatures: [HEADER]'"
    place = f"{owner.name}:{function.line}"
    check_types(faults, operator, place, found.signature, single=False, qualifiers=False)
    check_lengths(faults, operator, place, found.shapes)
    if found.unknown_types:
        return f"{owner.name}: unknown type {', '.join(map(repr, found.unknown_types))}"
    unsized = sorted(found.structures)
    return f"{owner.name}: unknown size of {unsized[0]!r}; compile it with -g" if unsized else None


def check_lengths(
    faults: Diagnostics, operator: Operator, place: str, shapes: Sequence[tuple[int, ...] | None]
) -> None:
    """Warn of tensors with fewer elements than the array of their parameter, which the function may read or write."""
    for parameter, shape in zip(operator.passing, shapes, strict=False):  # the device follows
        if parameter.argument is None or shape is None:
            continue
        argument = operator.args[parameter.argument]
        elements = argument.type.elements
        if argument.struct is None and not argument.scalar and elements < math.prod(shape):
            dimensions = "".join(f"[{n}]" for n in shape)
            faults.warning(
                f"{place}: function {operator.symbol!r} declares {argument.name}{dimensions}, "
                f"and the tensor has {counted(elements, 'element')}",
                argument.location,
                expected=f"at least {math.prod(shape)} elements",
            )

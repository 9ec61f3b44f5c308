# SPDX-License-Identifier: Apache-2.0
"""A program as calls of C functions, and the C file with these functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import Call, Function
from opwest.compiler.emission.helpers import helpers_of
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.names import free_name
from opwest.compiler.output.variants import joint_calls

PREFIX = "op_"
"""The start of the symbols of operators; the build adds the model's name."""


@dataclass(frozen=True, eq=False)
class Step:
    """One call with values for all arguments."""

    function: Function
    symbol: str
    arguments: tuple[Value, ...]
    label: str
    variant: str
    scalars: tuple[int | float | bool, ...] = ()
    """The scalars of an operator of the user, in order."""
    program: str | None = None
    """The file of the program that its device runs."""


@dataclass(frozen=True, eq=False)
class Emitted:
    """The operators of a program and their calls."""

    steps: tuple[Step, ...]
    source: str
    """The C file; empty without functions."""
    external: tuple[str, ...]
    """The functions of CMSIS-NN that it needs."""


def emit_program(
    program: Program, heading: str, preferred: str | Mapping[Operation, str] = "portable", prefix: str = PREFIX
) -> Emitted:
    """Return the operators; equal functions and equal constants are emitted once.

    `preferred`: a variant or a class of processors for all operations, or a variant for each.
    """
    names = [preferred if isinstance(preferred, str) else preferred[operation] for operation in program.operations]
    calls = joint_calls(zip(program.operations, names, strict=True))
    symbols: dict[Function, str] = {}
    taken: set[str] = set()
    for _, call in calls:
        if call.function not in symbols:
            symbols[call.function] = free_name(prefix + call.function.base, taken)
    constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
    steps = []
    for variant, call in calls:
        arguments = tuple(_value(one, name, constants) for one, name in zip(call.arguments, _names(call), strict=True))
        steps.append(Step(call.function, symbols[call.function], arguments, call.label, variant, call.scalars))
    own = {function: symbol for function, symbol in symbols.items() if function.user is None}
    external = sorted({name for function in symbols for name in function.external})
    return Emitted(tuple(steps), source_of(own, heading) if own or not steps else "", tuple(external))


def _names(call: Call) -> Iterator[str]:
    """Yield the name of the parameter of each argument."""
    yield from (one.name for one in call.function.parameters if one.direction != "scratch")


def _value(argument: Any, name: str, constants: dict[tuple[str, tuple[int, ...], bytes], Value]) -> Value:
    """Return an argument as a value; equal arrays are one constant."""
    if isinstance(argument, Value):
        if argument.role != "constant" or argument.root is not None:
            return argument
        array = argument.content
    else:
        array = argument
    key = (str(array.dtype), tuple(array.shape), np.ascontiguousarray(array).tobytes())
    if key not in constants:
        constants[key] = Value(name, "constant", str(array.dtype), tuple(array.shape), None, array)
    return constants[key]


def source_of(symbols: dict[Function, str], heading: str) -> str:
    """Return the C file."""
    headers = sorted({"stdint.h", *(h for function in symbols for h in function.headers)})
    parts = [
        f"/* SPDX-License-Identifier: Apache-2.0 */\n/*{_comment(heading)}\n */\n",
        "".join(f"#include <{one}>\n" for one in headers),
        *helpers_of(name for function in symbols for name in function.helpers),
        *dict.fromkeys(text for function in symbols for text in function.definitions),
        *(function.text(symbol) for function, symbol in symbols.items()),
    ]
    return "\n".join(parts)


def _comment(text: str) -> str:
    lines, line = [], " *"
    for word in text.replace("*/", "* /").split():
        if len(line) + 1 + len(word) > 100:
            lines.append(line)
            line = " *"
        line += f" {word}"
    return "".join(f"\n{one}" for one in [*lines, line])
